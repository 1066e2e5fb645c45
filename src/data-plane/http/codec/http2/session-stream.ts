// One stream of a session: its half-closed sides (RFC 9113 section 5.1), windows, and bytes that wait for one.
//
//   idle ──HEADERS──► open ──END_STREAM of one side──► half-closed ──of the other──► closed
//                      └────────────── RST_STREAM of either ────────────────────────►
//
// A stream is in its session's map until it is closed.

import type { WireBytes } from '../../../format/wire-bytes.ts';

/** Why a request was reset that a GOAWAY has named as not looked at: its connection has taken none, or others before it. */
export const LEFT_BEHIND = 'goaway';
export const LEFT_BEHIND_OTHERS = 'goaway_behind_others';

const NO_RESET = -1;

/** What a session tells the user of a stream. Heads lie in the worker's codec until the call returns. */
export interface StreamHandler {
  /** A final head; of a response perhaps behind interim ones. */
  onHead(isEnd: boolean): void;
  /** A head of 1xx, of a response. */
  onInterimHead(status: number): void;
  /** Content, borrowed; `consume` gives the peer its credit back. */
  onData(bytes: Buffer, start: number, end: number, isEnd: boolean): void;
  /** Fields behind the content, as lines; they end the message. */
  onTrailers(lines: string): void;
  /** The stream was broken off, by a reset or with its session. @param code ErrorCode */
  onReset(code: number, isLocal: boolean, reason: string): void;
  /** What waited has been written down. */
  onWritable(): void;
}

export class SessionStream {
  readonly id: number;
  /** Its place in the set of its session, which alone sets these. */
  isListed = false;
  nextInBucket: SessionStream | null = null;
  /** Null before there is one, and when nobody listens any more. */
  handler: StreamHandler | null = null;
  isLocalEnded = false;
  isRemoteEnded = false;
  /** The final head has come, and gone out. */
  hasRemoteHead = false;
  hasLocalHead = false;
  /** Its CONNECT has been answered with a 2xx: from here on it carries bytes, and nothing else (RFC 9113 section 8.5). */
  isTunnel = false;
  /** METHOD_* of its request. */
  requestMethod = 0;
  /** Where its bytes are counted; null where nobody asks. */
  wire: WireBytes | null = null;
  /** Of the header block of a request that has come. */
  blockBytes = 0;
  /** Bytes that may be sent beyond the window that each stream begins with: settings change that of all streams at once. */
  sendCredit = 0;
  /** Bytes that the peer may send. */
  receiveWindow: number;
  /** Consumed, but not yet given back. */
  creditBytes = 0;
  /** Of content: announced by Content-Length, -1 without one; received. */
  announcedBytes = -1;
  receivedBytes = 0;
  /** What comes is thrown away: its message is of no use any more. */
  isDiscarded = false;
  discardedBytes = 0;
  /** Content that waits for a window, null before any has, and whether the end follows it. */
  pending: Buffer[] | null = null;
  pendingBytes = 0;
  isEndPending = false;
  /** Code of the reset that follows it, negative for none. */
  pendingReset = NO_RESET;
  /** Trailers behind it, as lines; null for none. */
  pendingTrailers: string | null = null;

  constructor(id: number, receiveWindow: number) {
    this.id = id;
    this.receiveWindow = receiveWindow;
  }

  /** Its message is of no use any more, and nobody listens. */
  discard(): void {
    this.handler = null;
    this.isDiscarded = true;
  }

  get isClosed(): boolean {
    return this.isLocalEnded && this.isRemoteEnded;
  }

  get isResetPending(): boolean {
    return this.pendingReset !== NO_RESET;
  }

  /** Something waits to be sent. */
  get isWaiting(): boolean {
    return this.pendingBytes > 0 || this.isEndPending;
  }
}
