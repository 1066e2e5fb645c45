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
  /** What these are a part of, and what is counted there as well: of one attempt, those of its request. */
  readonly #whole: WireBytes | null;

  constructor(whole: WireBytes | null = null) {
    this.#whole = whole;
  }

  sentBytes(bytes: number): void {
    this.sent += bytes;
    this.#whole?.sentBytes(bytes);
  }

  receivedBytes(bytes: number): void {
    this.received += bytes;
    this.#whole?.receivedBytes(bytes);
  }

  /** A head of text, whose bytes are counted with all that is written. */
  sentText(bytes: number): void {
    this.headSent += bytes;
    this.headTextSent += bytes;
    this.#whole?.sentText(bytes);
  }

  receivedText(bytes: number): void {
    this.headReceived += bytes;
    this.headTextReceived += bytes;
    this.#whole?.receivedText(bytes);
  }

  /** A header block of HTTP/2. */
  sentBlock(bytes: number): void {
    this.headSent += bytes;
    this.sent += bytes + FRAME_HEAD_BYTES;
    this.#whole?.sentBlock(bytes);
  }

  receivedBlock(bytes: number): void {
    this.headReceived += bytes;
    this.received += bytes + FRAME_HEAD_BYTES;
    this.#whole?.receivedBlock(bytes);
  }

  /** The text that such a block stands for. */
  sentBlockText(bytes: number): void {
    this.headTextSent += bytes;
    this.#whole?.sentBlockText(bytes);
  }

  receivedBlockText(bytes: number): void {
    this.headTextReceived += bytes;
    this.#whole?.receivedBlockText(bytes);
  }

  /** A frame of content. */
  sentFrame(bytes: number): void {
    this.sentBytes(bytes + FRAME_HEAD_BYTES);
  }

  receivedFrame(bytes: number): void {
    this.receivedBytes(bytes + FRAME_HEAD_BYTES);
  }
}

/** What of them is counted. */
export type WireCount = Exclude<keyof WireBytes, `${string}${'Text' | 'Block' | 'Frame' | 'Bytes'}`>;

let areWanted = false;

/** A format asks for them from now on, of requests that begin then. Of this thread. */
export function wantWireBytes(): void {
  areWanted = true;
}

/** @param whole what they are a part of. @returns null where no format asks. */
export function newWireBytes(whole: WireBytes | null = null): WireBytes | null {
  return areWanted ? new WireBytes(whole) : null;
}
