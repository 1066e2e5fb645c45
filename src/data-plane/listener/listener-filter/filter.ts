// A listener filter looks at a connection, in most cases at its first bytes, before its filter chain is chosen. It keeps
// nothing of a connection: each time it is shown all bytes that have come so far.

import type { DownstreamConnection } from '../../network/downstream-connection.ts';

/** More bytes are needed for a decision. */
export const NEED_MORE = -1;
/** The bytes are not what they must be: close the connection. */
export const REFUSED = -2;

export interface ListenerFilter {
  /** False: it decides without any, so that it need not wait for a client that lets the server speak first. */
  readonly readsBytes: boolean;
  /** It does not look at this connection. */
  isDisabledFor?(connection: DownstreamConnection): boolean;
  /**
   * @param bytes all that has come and that no earlier filter has taken, from `start` to `end`; borrowed until return.
   * @returns how many of them the filter takes for itself, being done, or NEED_MORE or REFUSED.
   */
  inspect(bytes: Buffer, start: number, end: number, connection: DownstreamConnection): number;
}
