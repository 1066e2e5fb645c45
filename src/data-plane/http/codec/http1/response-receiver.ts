// The request that a connection to an upstream carries, as the connection knows it: where the response goes.

import type { UpstreamFailure } from '../../../upstream/pool/failure.ts';
import type { Trailers } from '../../trailers.ts';

export interface ResponseReceiver {
  /** How much of the response may wait on its way to the client. */
  readonly bufferLimitBytes: number;
  /** The request has asked for an upgrade, so that a 101 is a final head. */
  readonly awaitsUpgrade: boolean;
  /**
   * The final response head lies in the codec, the first body bytes (framing of a chunked body included) in
   * bytes[start..end). Interim 1xx heads never come here.
   * @param isSlab the bytes stay untouched until `resume` when false is returned; otherwise they do not.
   * @returns false when the other side cannot take more for now; `resume` goes on.
   */
  onResponseHead(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean;
  onResponseBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean;
  /** Trailers of the response that ends with the next call. */
  onResponseTrailers(trailers: Trailers): void;
  /** The connection is lost; nothing else follows. */
  onUpstreamReset(failure: UpstreamFailure, detail: string): void;
  /** What was sent has left; more may be sent. */
  onUpstreamDrain(): void;
}
