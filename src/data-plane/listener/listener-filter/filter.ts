// A listener filter looks at the first bytes of a connection before its filter chain is chosen. It keeps nothing of a
// connection: each time it is shown all bytes that have come so far.

import type { DownstreamConnection } from '../../network/downstream-connection.ts';

/** More bytes are needed for a decision. */
export const NEED_MORE = -1;
/** The bytes are not what they must be: close the connection. */
export const REFUSED = -2;

export interface ListenerFilter {
  /**
   * @param bytes all that has come and that no earlier filter has taken, from `start` to `end`; borrowed until return.
   * @returns how many of them the filter takes for itself, being done, or NEED_MORE or REFUSED.
   */
  inspect(bytes: Buffer, start: number, end: number, connection: DownstreamConnection): number;
}
