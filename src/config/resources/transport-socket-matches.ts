// TransportSocketMatch messages → which hosts have which transport socket, by the metadata of their endpoints.

import type { TransportSocketMatch } from '../../snapshot/index.ts';
import { structPairs } from './balancer-metadata.ts';
import type { Conversion } from './conversion.ts';
import type { Cluster } from './messages.ts';
import { convertTransportSocket } from './upstream-transport.ts';

/** @returns nothing for none, to be spread into settings. */
export function convertTransportSocketMatches(
  { transport_socket_matches: matches }: Cluster,
  at: string,
  conversion: Conversion,
): { readonly transportSocketMatches?: readonly TransportSocketMatch[] } {
  if (matches.length === 0) return {};
  const transportSocketMatches = matches.map(
    ({ name, match, transport_socket: socket }, index): TransportSocketMatch => {
      const socketAt = `${at}.transport_socket_matches[${index}].transport_socket`;
      // The support table leaves no room for a PROXY header in it.
      const { tls } = socket === null ? {} : convertTransportSocket(socket, socketAt, conversion);
      return { name, criteria: structPairs(match), ...(tls && { tls }) };
    },
  );
  return { transportSocketMatches };
}
