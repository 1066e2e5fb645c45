// Who may use how many of the process's descriptors, so that a crowd of clients leaves some to the admin interface, to log
// files and to everything else. Either thread.
//
//   0 ────────────────── acceptBelow ───── connectBelow ───── administerBelow ───── limit
//      clients, upstreams         upstreams         admin clients       files, DNS, threads
//
// The system hands out the lowest number that is free. So the number of a new descriptor says that all below it are in
// use, by whichever thread; nothing has to be counted.

import type { Socket as DatagramSocket } from 'node:dgram';
import type { Server, Socket } from 'node:net';

export interface DescriptorBudget {
  /** A client whose descriptor is not below this is the last one for now: its listener pauses. */
  readonly acceptBelow: number;
  /** A connection to an upstream whose descriptor is not below this has failed; a client there is refused. */
  readonly connectBelow: number;
  /** A client of the admin interface whose descriptor is not below this is refused. */
  readonly administerBelow: number;
}

/** What share of the limit is held back from clients and upstreams, within these bounds. */
const RESERVE_SHARE = 1 / 16;
const MIN_RESERVE = 8;
const MAX_RESERVE = 32;
/** What share of the limit is held back from clients, for the upstreams that those may need who are there. */
const UPSTREAM_SHARE = 1 / 8;
const MAX_UPSTREAMS = 1024;

/** @param limit descriptors that the process may have open; undefined when it is not known, then nothing is held back. */
export function descriptorBudget(limit: number | undefined): DescriptorBudget {
  const most = limit ?? Number.POSITIVE_INFINITY;
  const reserve = Math.min(Math.max(Math.floor(most * RESERVE_SHARE), MIN_RESERVE), MAX_RESERVE);
  const upstreams = Math.min(Math.floor(most * UPSTREAM_SHARE), MAX_UPSTREAMS);
  const connectBelow = most - reserve;
  return {
    acceptBelow: connectBelow - upstreams,
    connectBelow,
    administerBelow: most - (reserve >> 1),
  };
}

/** The descriptor of a socket, -1 when it has none; Node does not show it otherwise. */
export function descriptorOf(socket: Socket | Server): number {
  const { _handle: handle } = socket as unknown as { readonly _handle?: { readonly fd?: number } | null };
  return handle?.fd ?? -1;
}

interface DatagramState {
  readonly handle?: { readonly fd?: number } | null;
}

/** The same of a socket of datagrams, which keeps its handle below a symbol of its own. */
export function descriptorOfDatagrams(socket: DatagramSocket): number {
  const symbol = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'state symbol');
  const states = socket as unknown as Readonly<Record<symbol, DatagramState | undefined>>;
  return symbol === undefined ? -1 : (states[symbol]?.handle?.fd ?? -1);
}
