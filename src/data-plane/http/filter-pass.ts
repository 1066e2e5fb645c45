// One direction of one stream through the filters. The message is a queue of parts, the head first; each part knows
// which filter is to see it next. A part goes on while the filter that saw it last lets it, and never overtakes the
// part before it; those that every filter has let through leave together.
//
//            filter 0    filter 1 (has stopped)    filter 2      out
//   head        ✓             ✓                       ·
//   body 1      ✓             ✓                       ·
//   body 2      ✓             · (sees it next)        ·

import type { FilterStatus, Trailers } from './filter.ts';
import { join, type Payload, PayloadReader } from './payload-reader.ts';

interface Part {
  readonly isHead: boolean;
  /** As they came, framing included. */
  readonly bytes: Buffer;
  readonly payload: Payload | null;
  /** The message ends with this part. */
  readonly isEnd: boolean;
  /** Index of the first filter that has not seen it. */
  next: number;
}

const NOBODY = -1;
const NO_BYTES = Buffer.alloc(0);

export abstract class FilterPass {
  readonly #count: number;
  readonly #readsBody: boolean;
  readonly #limitBytes: number;
  readonly #queue: Part[] = [];
  readonly #isStopped: boolean[];
  #stopCount = 0;
  #payloads: PayloadReader | null = null;
  #visiting = NOBODY;
  /** The filter that is being visited has asked to go on before it returned. */
  #goesOnAtOnce = false;
  #isPumping = false;
  /** The codec holds this message's head, not that of another. */
  #isHeadLive = true;
  #isOver = false;

  /** @param limitBytes of what filters may hold up. */
  constructor(count: number, readsBody: boolean, limitBytes: number) {
    this.#count = count;
    this.#readsBody = readsBody;
    this.#limitBytes = limitBytes;
    this.#isStopped = new Array<boolean>(count).fill(false);
  }

  /** True while filters keep back the head. */
  get holdsHead(): boolean {
    return this.#queue[0]?.isHead ?? false;
  }

  /** The head lies in the codec. Bytes are given away. @returns false when no more should come for now. */
  begin(bytes: Buffer, isEnd: boolean, isChunked: boolean): boolean {
    if (this.#readsBody) this.#payloads = new PayloadReader(isChunked);
    const hasBody = bytes.length > 0;
    this.#queue.push({ isHead: true, bytes: NO_BYTES, payload: null, isEnd: isEnd && !hasBody, next: 0 });
    if (hasBody) this.#enqueue(bytes, isEnd);
    return this.#pumpAndHold();
  }

  /** More of the body; bytes are given away. @returns false when no more should come for now. */
  push(bytes: Buffer, isEnd: boolean): boolean {
    if (this.#isOver) return true;
    this.#enqueue(bytes, isEnd);
    return this.#pumpAndHold();
  }

  /** True when what comes goes through unseen. */
  get isTransparent(): boolean {
    return !this.#readsBody && this.#queue.length === 0 && this.#stopCount === 0;
  }

  goOn(index: number): void {
    if (this.#isOver) return;
    if (this.#visiting === index) {
      this.#goesOnAtOnce = true;
      return;
    }
    this.#setStopped(index, false);
    if (!this.#isPumping) this.#pumpAndHold();
  }

  /** The message is of no interest any more. */
  abandon(): void {
    this.#isOver = true;
    this.#queue.length = 0;
  }

  protected abstract visitHead(index: number, isEnd: boolean): FilterStatus;
  /** Undefined for a filter that has no opinion. */
  protected abstract visitData(index: number, bytes: Buffer, isEnd: boolean): FilterStatus | undefined;
  protected abstract visitTrailers(index: number, trailers: Trailers): FilterStatus | undefined;
  /** Takes the head with its edits out of the codec, which others will use. False when it cannot be kept. */
  protected abstract saveHead(): boolean;
  protected abstract restoreHead(): void;
  /** Sends on what has passed. @returns false when no more should come for now. */
  protected abstract deliver(withHead: boolean, bytes: Buffer, isEnd: boolean): boolean;
  protected abstract onOverflow(): void;

  #enqueue(bytes: Buffer, isEnd: boolean): void {
    const payload = this.#payloads?.read(bytes) ?? null;
    this.#queue.push({ isHead: false, bytes, payload, isEnd, next: 0 });
  }

  #pumpAndHold(): boolean {
    this.#isPumping = true;
    while (this.#moveParts()) {
      // A filter that has let go may have freed parts before the one it saw.
    }
    this.#isPumping = false;
    if (this.#isOver) return true;
    const goesOn = this.#deliverPassed();
    if (this.#isOver) return true;
    if (this.holdsHead && this.#isHeadLive) {
      this.#isHeadLive = false;
      if (!this.saveHead()) return true;
    }
    const heldBytes = this.#queue.reduce((sum, part) => sum + part.bytes.length, 0);
    if (heldBytes > this.#limitBytes) this.onOverflow();
    return goesOn;
  }

  /** @returns true when any part has moved. */
  #moveParts(): boolean {
    let hasMoved = false;
    let ahead = this.#count;
    for (const part of this.#queue) {
      while (part.next < ahead && (part.next === 0 || !this.#isStopped[part.next - 1])) {
        this.#visit(part);
        if (this.#isOver) return false;
        hasMoved = true;
      }
      ahead = part.next;
    }
    return hasMoved;
  }

  #visit(part: Part): void {
    const index = part.next;
    part.next = index + 1;
    this.#visiting = index;
    this.#goesOnAtOnce = false;
    const before: FilterStatus = this.#isStopped[index] ? 'stop' : 'continue';
    const status = part.isHead ? this.#visitHead(index, part.isEnd) : (this.#visitBody(index, part) ?? before);
    this.#visiting = NOBODY;
    this.#setStopped(index, status === 'stop' && !this.#goesOnAtOnce);
  }

  #visitHead(index: number, isEnd: boolean): FilterStatus {
    this.#reviveHead();
    return this.visitHead(index, isEnd);
  }

  #visitBody(index: number, { payload, isEnd }: Part): FilterStatus | undefined {
    if (payload === null) return undefined;
    const { bytes, trailers } = payload;
    let status: FilterStatus | undefined;
    const endsHere = isEnd && trailers === null;
    if (bytes.length > 0 || endsHere) status = this.visitData(index, bytes, endsHere);
    if (trailers !== null && !this.#isOver) status = this.visitTrailers(index, trailers) ?? status;
    return status;
  }

  #deliverPassed(): boolean {
    const lastHolds = this.#isStopped[this.#count - 1];
    let passed = 0;
    while (!lastHolds && passed < this.#queue.length && this.#queue[passed]!.next === this.#count) passed += 1;
    if (passed === 0) return true;
    const parts = this.#queue.splice(0, passed);
    const withHead = parts[0]!.isHead;
    if (withHead) this.#reviveHead();
    const pieces = parts.map(({ bytes }) => bytes).filter(({ length }) => length > 0);
    return this.deliver(withHead, join(pieces), parts.at(-1)!.isEnd);
  }

  #reviveHead(): void {
    if (this.#isHeadLive) return;
    this.restoreHead();
    this.#isHeadLive = true;
  }

  #setStopped(index: number, isStopped: boolean): void {
    if (this.#isStopped[index] === isStopped) return;
    this.#isStopped[index] = isStopped;
    this.#stopCount += isStopped ? 1 : -1;
  }
}
