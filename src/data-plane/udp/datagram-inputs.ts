// Inputs of decision trees that datagrams have: where they come from, and where they have come to.

import type { RemoteInfo } from 'node:dgram';
import type { MatchInput } from '../../snapshot/index.ts';
import { constant } from '../matching/connection-inputs.ts';
import type { InputReaders, ReadInput } from '../matching/match-tree.ts';
import { plainAddress } from '../network/peer-address.ts';

export interface MetDatagram {
  readonly from: Pick<RemoteInfo, 'address' | 'port'>;
  readonly local: { readonly ip: string; readonly port: number };
}

const NOTHING = (): undefined => undefined;

export const DATAGRAM_INPUTS: InputReaders<MetDatagram> = { text: readerOf, metadata: NOTHING };

/** Main has let no other kind through. */
function readerOf(input: MatchInput): ReadInput<MetDatagram> {
  switch (input.kind) {
    case 'source-ip':
      return ({ from }) => plainAddress(from.address);
    case 'source-port':
      return ({ from }) => String(from.port);
    case 'destination-ip':
      return ({ local }) => local.ip;
    case 'destination-port':
      return ({ local }) => String(local.port);
    case 'constant':
      return constant(input.value);
    default:
      return NOTHING;
  }
}
