// What one request and its response are on the wire of one of its sides: heads as they are sent, with whatever frames them. Counted
// by codecs, where a format asks for it; others are spared it.

/** Of an HTTP/2 frame. */
const FRAME_HEAD_BYTES = 9;

export class WireBytes {
  sent = 0;
  received = 0;
  /** Of these, heads and trailers: as HTTP/2 compresses them, without the heads of their frames. */
  headSent = 0;
  headReceived = 0;
  /** The same as the text that HTTP/1 would have sent. */
  headTextSent = 0;
  headTextReceived = 0;

  /** A head of text, whose bytes are counted with all that is written. */
  sentText(bytes: number): void {
    this.headSent += bytes;
    this.headTextSent += bytes;
  }

  receivedText(bytes: number): void {
    this.headReceived += bytes;
    this.headTextReceived += bytes;
  }

  /** A header block of HTTP/2. */
  sentBlock(bytes: number): void {
    this.headSent += bytes;
    this.sent += bytes + FRAME_HEAD_BYTES;
  }

  receivedBlock(bytes: number): void {
    this.headReceived += bytes;
    this.received += bytes + FRAME_HEAD_BYTES;
  }

  /** A frame of content. */
  sentFrame(bytes: number): void {
    this.sent += bytes + FRAME_HEAD_BYTES;
  }

  receivedFrame(bytes: number): void {
    this.received += bytes + FRAME_HEAD_BYTES;
  }
}

/** What of them is counted. */
export type WireCount = Exclude<keyof WireBytes, `${string}${'Text' | 'Block' | 'Frame'}`>;

let areWanted = false;

/** A format asks for them from now on, of requests that begin then. Of this thread. */
export function wantWireBytes(): void {
  areWanted = true;
}

/** @returns null where no format asks. */
export function newWireBytes(): WireBytes | null {
  return areWanted ? new WireBytes() : null;
}
