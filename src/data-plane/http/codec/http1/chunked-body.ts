// One chunked body as a connection reads it: finds its end, and takes the trailers off, which then go their own way
// or nowhere. Without trailers nothing is touched: the bytes are those that came. Whether trailers pass or not, they
// must be well-formed, allowed as trailers and within the limits of a head: what breaks HTTP is not handed on, and
// what would be taken for framing, routing or identity by a reader that merges trailers is not hidden by dropping it.

import { ChunkScanner, HEADER_ID, type HeadLimits, type MessageHead } from '../../../../wasm/http1.ts';
import { Trailers } from '../../trailers.ts';

const END = Buffer.from('\r\n');

export class ChunkedBody {
  readonly #scanner = new ChunkScanner();
  #passesTrailers = false;
  /** What Connection has named: fields that end at this hop, among the trailers as well (RFC 9110 section 7.6.1). */
  #nominated = '';
  #text = '';

  /** Prepares for the body behind this head. @param limits of the trailers. */
  begin(head: MessageHead, limits: HeadLimits, passesTrailers: boolean): void {
    this.#scanner.reset(limits);
    this.#passesTrailers = passesTrailers;
    this.#nominated = passesTrailers ? (head.header(HEADER_ID.connection) ?? '') : '';
    this.#text = '';
  }

  /** As ChunkScanner.scan. */
  read(bytes: Buffer, start: number, end: number): number {
    const next = this.#scanner.scan(bytes, start, end);
    if (this.#passesTrailers && next >= 0 && this.hasTrailers) {
      this.#text += bytes.toString('latin1', this.#scanner.trailersAt, next);
    }
    return next;
  }

  get isDone(): boolean {
    return this.#scanner.isDone;
  }

  /** Trailers have begun: `withoutTrailers` stands in for the bytes that were read last. */
  get hasTrailers(): boolean {
    return this.#scanner.trailersAt >= 0;
  }

  /** The bytes of the last read, which began at `start`, as they would be without trailers. */
  withoutTrailers(bytes: Buffer, start: number): Buffer {
    const body = bytes.subarray(start, this.#scanner.trailersAt);
    return this.isDone ? Buffer.concat([body, END]) : body;
  }

  /** The trailers of a body that is done; null when there are none or none that pass. */
  takeTrailers(): Trailers | null {
    if (!this.#passesTrailers || this.#text === '') return null;
    const trailers = Trailers.parse(this.#text);
    this.#text = '';
    for (const option of this.#nominated.toLowerCase().split(',')) trailers.remove(option.trim());
    return trailers.size === 0 ? null : trailers;
  }
}
