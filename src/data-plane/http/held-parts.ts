// The parts of a message that have not left yet, and the filters that hold them: a queue, the head first. Each part knows
// which filter is to see it next. A part goes on while the filter that saw it last lets it, and never overtakes the part
// before it; those that every filter has let through leave together. Most messages have no such queue.
//
//               filter 0    filter 1 (has stopped)    filter 2      out
//   head           ✓             ✓                       ·
//   data 1         ✓             ✓                       ·
//   data 2         ✓             · (sees it next)        ·
//   trailers       ·             ·                       ·

import { Framing } from '../../wasm/http1.ts';
import { Dechunker, join } from './chunk-framing.ts';
import type { BodyUse, FilterStatus } from './filter.ts';
import { MessagePart } from './message-part.ts';
import type { Trailers } from './trailers.ts';

const EMPTY_LINE = Buffer.from('\r\n');
const NO_BYTES = Buffer.alloc(0);

/** A message with a head elsewhere. */
export interface HeldMessage {
  /** Framing included. */
  readonly bytes: Buffer;
  readonly isEnd: boolean;
  readonly trailers: Trailers | null;
}

export class HeldParts {
  readonly #parts: MessagePart[] = [];
  readonly #count: number;
  readonly #first: number;
  /** The line that ends chunks stays behind the trailers. */
  readonly #lastLine: Buffer;
  /** Null where nobody looks into chunks. */
  #dechunker: Dechunker | null = null;
  /** Of each filter; null as long as all continue. */
  #statuses: FilterStatus[] | null = null;
  #stopCount = 0;

  /** @param count of filters. @param first that takes part. @param framing one of Framing, of the body as it comes. */
  constructor(count: number, first: number, framing: number) {
    this.#count = count;
    this.#first = first;
    this.#lastLine = framing === Framing.CHUNKED ? EMPTY_LINE : NO_BYTES;
  }

  /** Filters are to see what is in the chunks. To be said before any come. */
  takeOffChunks(): void {
    this.#dechunker = new Dechunker();
  }

  /** In their order. Borrowed: another call may change them. */
  get parts(): readonly MessagePart[] {
    return this.#parts;
  }

  /** Undefined once it has left. */
  get head(): MessagePart | undefined {
    const first = this.#parts[0];
    return first?.kind === 'head' ? first : undefined;
  }

  /** Of the body. */
  get bytes(): number {
    return this.#parts.reduce((sum, part) => sum + part.size, 0);
  }

  /** Nothing is held, and nothing will be. */
  get isIdle(): boolean {
    return this.#parts.length === 0 && this.#stopCount === 0;
  }

  statusOf(index: number): FilterStatus {
    return this.#statuses === null ? 'continue' : this.#statuses[index]!;
  }

  setStatus(index: number, status: FilterStatus): void {
    if (this.#statuses === null) {
      if (status === 'continue') return;
      this.#statuses = new Array<FilterStatus>(this.#count).fill('continue');
    }
    if (this.#statuses[index] !== 'continue') this.#stopCount -= 1;
    if (status !== 'continue') this.#stopCount += 1;
    this.#statuses[index] = status;
  }

  /** The filter that saw it last lets it go on. */
  mayPass({ next, releasedBy }: MessagePart): boolean {
    return next === 0 || this.statusOf(next - 1) === 'continue' || releasedBy === next - 1;
  }

  add(part: MessagePart): void {
    this.#parts.push(part);
  }

  /** What has come of the body, and its trailers. @param bytes given away. @param isBare it will leave without its framing. */
  enter(bytes: Buffer, isEnd: boolean, trailers: Trailers | null, isBare: boolean): void {
    const raw = trailers === null ? bytes : bytes.subarray(0, bytes.length - this.#lastLine.length);
    const data = this.#dechunker === null ? raw : this.#dechunker.decode(raw, 0, raw.length);
    const part = MessagePart.data(isBare ? NO_BYTES : raw, data, isEnd && trailers === null);
    part.own(bytes);
    part.next = this.#first;
    this.#parts.push(part);
    if (trailers === null) return;
    const last = MessagePart.ofTrailers(trailers, this.#lastLine);
    last.next = this.#first;
    this.#parts.push(last);
  }

  addBehind(other: MessagePart, part: MessagePart): void {
    this.#parts.splice(this.#parts.indexOf(other) + 1, 0, part);
  }

  addBefore(other: MessagePart, part: MessagePart): void {
    this.#parts.splice(this.#parts.indexOf(other), 0, part);
  }

  /** Of the body, what a filter holds goes on up to so many bytes. @returns bytes that it still holds. */
  release(index: number, bytes: number): number {
    let left = bytes;
    let held = 0;
    for (let at = 0; at < this.#parts.length; at += 1) {
      const part = this.#parts[at]!;
      // The head and the trailers go on with the filter.
      if (part.kind !== 'data' || !isHeldBy(index, part)) continue;
      if (left === 0) held += part.size;
      else if (part.size > left) {
        this.#parts.splice(at, 0, part.splitOff(left));
        this.#parts[at]!.releasedBy = index;
        left = 0;
      } else {
        part.releasedBy = index;
        left -= part.size;
      }
    }
    return held;
  }

  /** Takes so many bytes off what a filter holds back. Its parts stay where something ends with them. */
  take(index: number, taken: number): void {
    let left = taken;
    for (let at = 0; at < this.#parts.length && left > 0; at += 1) {
      const part = this.#parts[at]!;
      if (part.kind !== 'data' || !isHeldBy(index, part)) continue;
      const { length } = part.bytes;
      if (length > left) part.drop(left);
      else {
        part.empty();
        if (!part.isEnd) {
          this.#parts.splice(at, 1);
          at -= 1;
        }
      }
      left -= Math.min(left, length);
    }
  }

  /** What a filter has made of what it took goes on behind it, before all that it holds. */
  give(index: number, bytes: Buffer): void {
    const part = MessagePart.data(NO_BYTES, bytes, false);
    part.own(bytes);
    part.next = index + 1;
    part.releasedBy = index;
    const at = this.#parts.findIndex((other) => other.kind !== 'head' && !isBehind(index, other));
    this.#parts.splice(at < 0 ? this.#parts.length : at, 0, part);
  }

  /** Lets the head go on, if it is this filter that holds it. */
  releaseHead(index: number): void {
    const { head } = this;
    if (head !== undefined && isHeldBy(index, head)) head.releasedBy = index;
  }

  /** Of what has gone on from a filter, and has not left yet. */
  bytesBehind(index: number): number {
    let bytes = 0;
    for (const part of this.#parts) if (isBehind(index, part)) bytes += part.size;
    return bytes;
  }

  /** Of the body, what is held by filters that must see all of it, so that waiting would not help. */
  get stoppedBytes(): number {
    const statuses = this.#statuses;
    if (statuses === null || !statuses.includes('stop')) return 0;
    let bytes = 0;
    for (const part of this.#parts) {
      let holder = Math.max(0, part.next - 1);
      while (holder < statuses.length - 1 && statuses[holder] === 'continue') holder += 1;
      if (statuses[holder] === 'stop') bytes += part.size;
    }
    return bytes;
  }

  /** Nothing of them is of interest any more. */
  clear(): void {
    if (this.#parts.length > 0) this.#parts.length = 0;
  }

  /** As FilterPass.collectHeld. @param uses of the body, by each filter. */
  collect(uses: readonly BodyUse[]): HeldMessage | undefined {
    const { head } = this;
    const rest = this.#parts.slice(1);
    if (head === undefined || rest.some(({ next }) => uses.slice(0, next).includes('edits'))) return undefined;
    // Without chunks, what is in the body is the body.
    const isBare = rest.some(({ raw, bytes }) => raw.length === 0 && bytes.length > 0);
    if (isBare && this.#dechunker !== null) return undefined;
    const last = rest.at(-1);
    return {
      bytes: join(rest.map(({ raw, bytes }) => (isBare ? bytes : raw))),
      isEnd: (last ?? head).isEnd,
      trailers: last?.trailers ?? null,
    };
  }

  /** Takes out those that all filters have let through. */
  takePassed(): MessagePart[] {
    let passed = 0;
    while (passed < this.#parts.length && this.#parts[passed]!.next > this.#count) passed += 1;
    return this.#parts.splice(0, passed);
  }
}

function isHeldBy(index: number, part: MessagePart): boolean {
  return part.next === index + 1 && part.releasedBy !== index;
}

/** It has gone on from a filter. */
function isBehind(index: number, part: MessagePart): boolean {
  return part.next > index && !isHeldBy(index, part);
}
