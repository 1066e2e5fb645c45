// The bodies of the messages that a connection reads, one after the other: where each of them ends, by the framing that
// its head announces (RFC 9112 section 6). Of trailers it knows as much as ChunkedBody does.

import { Framing, type HeadLimits, type MessageHead } from '../../../../wasm/http1.ts';
import type { Trailers } from '../../trailers.ts';
import { ChunkedBody } from './chunked-body.ts';

export class MessageBody {
  #framing: number = Framing.NONE;
  /** Bytes to come under Framing.LENGTH. */
  #remaining = 0;
  /** Null before the first body in chunks. */
  #chunked: ChunkedBody | null = null;
  #isDone = true;

  /** One of Framing. */
  get framing(): number {
    return this.#framing;
  }

  /** Bytes to come under Framing.LENGTH; of no meaning otherwise. */
  get remaining(): number {
    return this.#remaining;
  }

  /** The message has come to its end. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** What comes next is the body behind this head, if only an empty one. @param limits of the trailers. */
  begin(head: MessageHead, limits: HeadLimits, passesTrailers: boolean): void {
    this.#framing = head.framing;
    this.#remaining = head.contentLength;
    this.#isDone = false;
    if (this.#framing !== Framing.CHUNKED) return;
    this.#chunked ??= new ChunkedBody();
    this.#chunked.begin(head, limits, passesTrailers);
  }

  /** What comes next is not HTTP any more. */
  openTunnel(): void {
    this.#framing = Framing.TUNNEL;
    this.#isDone = false;
  }

  /** The peer has ended a body that nothing else ends. */
  end(): void {
    this.#isDone = true;
  }

  /** @returns the index behind the last byte that belongs to the body, or a negative error of its framing. */
  read(bytes: Buffer, start: number, end: number): number {
    if (this.#framing === Framing.LENGTH) {
      const bodyEnd = Math.min(end, start + this.#remaining);
      this.#remaining -= bodyEnd - start;
      this.#isDone = this.#remaining === 0;
      return bodyEnd;
    }
    if (this.#framing === Framing.CHUNKED) {
      const bodyEnd = this.#chunked!.read(bytes, start, end);
      this.#isDone = bodyEnd >= 0 && this.#chunked!.isDone;
      return bodyEnd;
    }
    if (this.#framing !== Framing.NONE) return end;
    this.#isDone = true;
    return start;
  }

  /** Trailers have begun: `withoutTrailers` stands in for the bytes that were read last. */
  get hasTrailers(): boolean {
    return this.#framing === Framing.CHUNKED && this.#chunked!.hasTrailers;
  }

  /** As ChunkedBody.withoutTrailers. */
  withoutTrailers(bytes: Buffer, start: number): Buffer {
    return this.#chunked!.withoutTrailers(bytes, start);
  }

  /** The trailers of a body that is done; null when there are none or none that pass. */
  takeTrailers(): Trailers | null {
    return this.#chunked!.takeTrailers();
  }
}
