// The parts in which a message goes through filters: its head, pieces of its body, its trailers.

import { WeirError } from '../../base/errors.ts';
import { freeGiven } from '../network/given-memory.ts';
import type { BodyData } from './filter.ts';
import { Trailers } from './trailers.ts';

export type PartKind = 'head' | 'data' | 'trailers';

const NO_BYTES = Buffer.alloc(0);

export class MessagePart implements BodyData {
  readonly kind: PartKind;
  /** As it came, framing included; what travels when no filter edits the body. */
  raw: Buffer;
  /** Of trailers; or those that were added behind data. */
  trailers: Trailers | null = null;
  /** The message ends with this part. */
  isEnd: boolean;
  /** Index of the first filter that has not seen it; one more than there are once the last has let it go. */
  next = 0;
  /** Index of the filter that lets it go although it holds back what is behind; -1 for none. */
  releasedBy = -1;
  /** The filter that is looking at it may edit it. */
  isEditable = false;
  /** What it lies in, to be freed with it; null where others may. */
  #memory: Buffer | null = null;
  #bytes: Buffer;

  private constructor(kind: PartKind, raw: Buffer, bytes: Buffer, isEnd: boolean) {
    this.kind = kind;
    this.raw = raw;
    this.#bytes = bytes;
    this.isEnd = isEnd;
  }

  static head(isEnd: boolean): MessagePart {
    return new MessagePart('head', NO_BYTES, NO_BYTES, isEnd);
  }

  static data(raw: Buffer, bytes: Buffer, isEnd: boolean): MessagePart {
    return new MessagePart('data', raw, bytes, isEnd);
  }

  /** @param raw what has come of the body's framing behind them. */
  static ofTrailers(trailers: Trailers, raw: Buffer): MessagePart {
    const part = new MessagePart('trailers', raw, NO_BYTES, true);
    part.trailers = trailers;
    return part;
  }

  get bytes(): Buffer {
    return this.#bytes;
  }

  set bytes(bytes: Buffer) {
    this.#checkEditable('change the body');
    this.#bytes = bytes;
  }

  /** What it holds up. */
  get size(): number {
    return Math.max(this.raw.length, this.#bytes.length);
  }

  /** It lies in this memory, and is alone there. */
  own(memory: Buffer): void {
    this.#memory = memory;
  }

  /** What it held has been taken, and nobody reads it any more. */
  empty(): void {
    this.raw = NO_BYTES;
    this.#bytes = NO_BYTES;
    if (this.#memory !== null) freeGiven(this.#memory);
    this.#memory = null;
  }

  /** Data: takes so many bytes off its beginning, to go on apart. @param size less than its own. */
  splitOff(size: number): MessagePart {
    const part = MessagePart.data(this.raw.subarray(0, size), this.#bytes.subarray(0, size), false);
    part.next = this.next;
    this.drop(size);
    // Neither knows when the other has left.
    this.#memory = null;
    return part;
  }

  /** Data: without so many bytes of its beginning, which have been taken. @param size less than its own. */
  drop(size: number): void {
    this.raw = this.raw.subarray(size);
    this.#bytes = this.#bytes.subarray(size);
  }

  addTrailers(): Trailers {
    this.#checkEditable('add trailers');
    if (!this.isEnd) throw editError('cannot add trailers before the end of the message');
    this.trailers ??= new Trailers();
    return this.trailers;
  }

  #checkEditable(what: string): void {
    if (!this.isEditable) throw editError(`cannot ${what}: its kind does not say that it edits this body`);
  }
}

export function editError(what: string): WeirError {
  return new WeirError('WEIR_FILTER_EDIT', `a filter ${what}`);
}
