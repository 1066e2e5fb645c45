// TransportSocketMatch messages → which hosts have which transport socket, by the metadata of their endpoints. All of them
// are plain TCP in this build, so what is left is which match a host comes under.

import type { TransportSocketMatch } from '../../snapshot/index.ts';
import { structPairs } from './balancer-metadata.ts';
import type { Cluster } from './messages.ts';

/** @returns nothing for none, to be spread into settings. */
export function convertTransportSocketMatches({ transport_socket_matches: matches }: Cluster): {
  readonly transportSocketMatches?: readonly TransportSocketMatch[];
} {
  if (matches.length === 0) return {};
  return { transportSocketMatches: matches.map(({ name, match }) => ({ name, criteria: structPairs(match) })) };
}
