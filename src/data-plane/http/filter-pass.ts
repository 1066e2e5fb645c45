// One direction of one stream through the filters. The message is a queue of parts, the head first; each part knows
// which filter is to see it next. A part goes on while the filter that saw it last lets it, and never overtakes the
// part before it; those that every filter has let through leave together.
//
//               filter 0    filter 1 (has stopped)    filter 2      out
//   head           ✓             ✓                       ·
//   data 1         ✓             ✓                       ·
//   data 2         ✓             · (sees it next)        ·
//   trailers       ·             ·                       ·
//
// Bodies leave as they came, framing included, unless a filter of the chain edits them: then they lose their framing
// on the way in, and leave without, announced with their length where all of it leaves at once. Which filters edit this
// one is settled once each has seen the head; what comes before that is kept in both forms.

import { Framing } from '../../wasm/http1.ts';
import type { BodyPlan } from './body-uses.ts';
import { Dechunker, join } from './chunk-framing.ts';
import type { BodyUse, FilterStatus } from './filter.ts';
import { editError, MessagePart } from './message-part.ts';
import type { Trailers } from './trailers.ts';

/** A message with a head elsewhere. */
export interface HeldMessage {
  /** Framing included. */
  readonly bytes: Buffer;
  readonly isEnd: boolean;
  readonly trailers: Trailers | null;
}

const NOBODY = -1;
const EMPTY_LINE = Buffer.from('\r\n');
const NO_BYTES = Buffer.alloc(0);

export abstract class FilterPass {
  /** What the filters do with the body, as far as they have said. */
  #wanted: BodyPlan;
  /** What holds for what has come of it: the same, once each filter has seen the head. */
  #plan: BodyPlan;
  /** Every filter has seen the head, so that what each does with the body stays as it is. */
  #isSettled = false;
  #limitBytes: number;
  #queue: MessagePart[] = [];
  /** Of each filter; null as long as all continue. */
  #statuses: FilterStatus[] | null = null;
  #stopCount = 0;
  #dechunker: Dechunker | null = null;
  #visiting = NOBODY;
  #visited: MessagePart | null = null;
  /** The filter that is being visited has asked to go on before it returned. */
  #goesOnAtOnce = false;
  #isPumping = false;
  /** The codec holds this message's head, not that of another. */
  #isHeadLive = true;
  #hasBegun = false;
  /** One of Framing: of the body as it came. */
  #framing: number = Framing.NONE;
  /** More is held than should be; what comes has been asked to wait. */
  #isAboveLimit = false;
  /** Whoever gets what has passed wants no more for now. */
  #isReceiverFull = false;
  /** Filters that wait until more may go on; null as long as none has. */
  #awaitingRoom: Set<number> | null = null;
  /** The body is what a tunnel carries, and leaves as it is. */
  #isUnframed = false;
  #isOver = false;
  /** The filters before this one take no part. */
  readonly #first: number;
  /** How many had seen the head when the message was abandoned. */
  #seenBy: number;

  /**
   * @param plan what each filter does with the body.
   * @param limitBytes of what filters may hold up. @param first filter that takes part.
   */
  constructor(plan: BodyPlan, limitBytes: number, first = 0) {
    this.#first = first;
    this.#seenBy = first;
    this.#plan = first === 0 ? plan : plan.from(first);
    this.#wanted = this.#plan;
    this.#limitBytes = limitBytes;
  }

  /** Filters have seen the message's head, or could have. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Of the body, while filters keep it back. */
  get heldBytes(): number {
    return this.#queue.reduce((sum, part) => sum + part.size, 0);
  }

  /** How many filters have seen the head, with those that take no part. */
  get headSeenBy(): number {
    if (this.#isOver || !this.#hasBegun) return this.#seenBy;
    const [head] = this.#queue;
    return head?.kind === 'head' ? Math.min(head.next, this.#wanted.uses.length) : this.#wanted.uses.length;
  }

  limitHeld(bytes: number): void {
    this.#limitBytes = bytes;
  }

  /** True while filters keep back the head. */
  get holdsHead(): boolean {
    return this.#queue[0]?.kind === 'head';
  }

  /**
   * The head lies in the codec, what has come of the body in bytes[start..end). With a message that ends here come its
   * trailers, if there are any.
   * @returns false when no more should come for now.
   */
  begin(
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    framing: number,
    trailers: Trailers | null,
    isTunnel: boolean,
  ): boolean {
    this.#hasBegun = true;
    this.#isUnframed = isTunnel;
    this.#framing = framing;
    const hasBody = end > start;
    const head = this.#entering(MessagePart.head(isEnd && !hasBody));
    // Nothing has come before it; room for what comes behind is made when it comes.
    this.#queue = [head];
    this.#isPumping = true;
    const isThrough = this.#showToAll(head);
    this.#isPumping = false;
    if (this.#isOver) return true;
    const { CHUNKED } = Framing;
    if (this.#plan.isRead && framing === CHUNKED) this.#dechunker = new Dechunker();
    if (isThrough && (!this.#plan.isRead || !hasBody)) return this.#deliverAtOnce(bytes, start, end, isEnd, trailers);
    if (hasBody) this.#enqueue(this.keepBytes(bytes, start, end), isEnd, trailers);
    return this.#pumpAndHold();
  }

  /** More of the body; as for `begin`. */
  push(bytes: Buffer, start: number, end: number, isEnd: boolean, trailers: Trailers | null): boolean {
    if (this.#isOver) return true;
    this.#enqueue(this.keepBytes(bytes, start, end), isEnd, trailers);
    return this.#pumpAndHold();
  }

  /** True when what comes goes through unseen. */
  get isTransparent(): boolean {
    return !this.#plan.isRead && this.#queue.length === 0 && this.#stopCount === 0;
  }

  goOn(index: number): void {
    if (this.#isOver) return;
    if (this.#visiting === index) {
      this.#goesOnAtOnce = true;
      return;
    }
    this.#setStatus(index, 'continue');
    this.#pumpAgain();
  }

  /** As FilterCallbacks.releaseResponse. */
  release(index: number, bytes: number): number {
    if (this.#isOver) return 0;
    let left = bytes;
    let held = 0;
    for (let at = 0; at < this.#queue.length; at += 1) {
      const part = this.#queue[at]!;
      // The head and the trailers go on with the filter.
      if (part.kind !== 'data' || part.next !== index + 1 || part.releasedBy === index) continue;
      if (left === 0) held += part.size;
      else if (part.size > left) {
        this.#queue.splice(at, 0, part.splitOff(left));
        this.#queue[at]!.releasedBy = index;
        left = 0;
      } else {
        part.releasedBy = index;
        left -= part.size;
      }
    }
    this.#pumpAgain();
    return held;
  }

  /** As FilterCallbacks.exchangeResponse. */
  exchange(index: number, taken: number, bytes: Buffer, isLast: boolean): boolean {
    if (this.#isOver) return false;
    if (this.#isPumping) throw editError('can exchange data only from an event of its own');
    if (this.#wanted.uses[index] !== 'edits') throw editError('cannot exchange data: it has left this body alone');
    this.#take(index, taken);
    if (bytes.length > 0) {
      const part = MessagePart.data(NO_BYTES, bytes, false);
      part.next = index + 1;
      part.releasedBy = index;
      const at = this.#queue.findIndex((other) => other.kind !== 'head' && !this.#isBehind(index, other));
      this.#queue.splice(at < 0 ? this.#queue.length : at, 0, part);
    }
    const [head] = this.#queue;
    const isMoving = bytes.length > 0 || isLast;
    if (isMoving && head?.kind === 'head' && this.#isHeldBy(index, head)) head.releasedBy = index;
    if (isLast) this.#setStatus(index, 'continue');
    this.#pumpAgain();
    if (this.#isOver) return false;
    const hasRoom = this.#hasRoomBehind(index);
    if (!hasRoom) {
      this.#awaitingRoom ??= new Set();
      this.#awaitingRoom.add(index);
    }
    return hasRoom;
  }

  /** The receiver of what has passed takes more again. */
  onReceiverDrain(): void {
    if (this.#isOver) return;
    this.#isReceiverFull = false;
    this.#tellOfRoom();
    if (!this.#isAboveLimit && !this.#isOver) this.resumeReading();
  }

  /** Takes so many bytes off what a filter holds back. Its parts stay where something ends with them. */
  #take(index: number, taken: number): void {
    let left = taken;
    for (let at = 0; at < this.#queue.length && left > 0; at += 1) {
      const part = this.#queue[at]!;
      if (part.kind !== 'data' || !this.#isHeldBy(index, part)) continue;
      const { length } = part.bytes;
      if (length > left) part.drop(left);
      else {
        part.empty();
        if (!part.isEnd) {
          this.#queue.splice(at, 1);
          at -= 1;
        }
      }
      left -= Math.min(left, length);
    }
  }

  #isHeldBy(index: number, part: MessagePart): boolean {
    return part.next === index + 1 && part.releasedBy !== index;
  }

  /** It has gone on from a filter, and not yet to the receiver. */
  #isBehind(index: number, part: MessagePart): boolean {
    return part.next > index && !this.#isHeldBy(index, part);
  }

  /** What has gone on from a filter, and not yet to the receiver, may become more. */
  #hasRoomBehind(index: number): boolean {
    if (this.#isReceiverFull) return false;
    let waiting = 0;
    for (const part of this.#queue) if (this.#isBehind(index, part)) waiting += part.size;
    return waiting <= this.#limitBytes;
  }

  #tellOfRoom(): void {
    const awaiting = this.#awaitingRoom;
    if (awaiting === null) return;
    for (const index of awaiting) {
      if (this.#isOver) return;
      if (!this.#hasRoomBehind(index)) continue;
      awaiting.delete(index);
      this.visitWithRoom(index);
    }
  }

  /** The head lies in the codec, and has not gone on. */
  get hasLiveHead(): boolean {
    return this.#isHeadLive && this.holdsHead;
  }

  /** Takes the live head out of the codec, which others use before `takeHeadBack`. @returns false when it cannot be kept. */
  putHeadAside(): boolean {
    this.#isHeadLive = false;
    return this.saveHead();
  }

  takeHeadBack(): void {
    if (!this.#isOver && this.holdsHead) this.#reviveHead();
  }

  #pumpAgain(): void {
    if (this.#isPumping) return;
    const wasAboveLimit = this.#isAboveLimit;
    const goesOn = this.#pumpAndHold();
    if (!this.#isOver) this.#tellOfRoom();
    if (wasAboveLimit && goesOn && !this.#isOver) this.resumeReading();
  }

  /** As FilterCallbacks.leaveResponse and onlyReadResponse. */
  leave(index: number, use: BodyUse = 'none'): void {
    if (this.#isOver) return;
    if (this.#visiting !== index || this.#visited?.kind !== 'head') {
      throw editError('can leave the body alone only while it looks at the head');
    }
    this.#wanted = this.#wanted.with(index, use);
  }

  /** All filters have seen the head. */
  #settle(): void {
    this.#isSettled = true;
    this.#plan = this.#wanted;
  }

  /** Puts the head, which no filter behind this one has seen, where it can be edited until this one returns. */
  protected reviveHeadFor(index: number): void {
    const head = this.#queue[0];
    if (head?.kind !== 'head' || head.next > index + 1) throw editError('cannot edit a head that has gone on');
    this.#reviveHead();
  }

  /** Adds data for the filters behind this one, which is being visited with the head or the trailers. */
  addData(index: number, bytes: Buffer): void {
    if (this.#isOver) return;
    const visited = this.#visited;
    if (this.#visiting !== index || visited === null || visited.kind === 'data') {
      throw editError('can add data only while it looks at the head or the trailers');
    }
    if (this.#wanted.uses[index] !== 'edits')
      throw editError('cannot add data: its kind does not say that it edits this body');
    if (!this.mayHaveBody()) throw editError('cannot add data to a message that has no body');
    const part = MessagePart.data(NO_BYTES, bytes, visited.kind === 'head' && visited.isEnd);
    part.next = index + 1;
    const at = this.#queue.indexOf(visited) + (visited.kind === 'head' ? 1 : 0);
    if (visited.kind === 'head') visited.isEnd = false;
    this.#queue.splice(at, 0, part);
  }

  /**
   * All that has come of a message whose head is held back: as it came, but for the edits of its head. To be asked of an event.
   * @returns undefined where that cannot be had, as something has gone on, or a filter has changed the body.
   */
  collectHeld(): HeldMessage | undefined {
    const [head, ...rest] = this.#queue;
    if (this.#isOver || this.#isPumping || head?.kind !== 'head') return undefined;
    if (rest.some(({ next }) => this.#wanted.uses.slice(0, next).includes('edits'))) return undefined;
    const last = rest.at(-1);
    return {
      bytes: join(rest.map(({ raw }) => raw)),
      isEnd: (last ?? head).isEnd,
      trailers: last?.trailers ?? null,
    };
  }

  /** The message is of no interest any more. */
  abandon(): void {
    this.#seenBy = this.headSeenBy;
    this.#isOver = true;
    if (this.#queue.length > 0) this.#queue = [];
  }

  /** One of Framing: of the body as it came. */
  protected get framing(): number {
    return this.#framing;
  }

  protected abstract visitHead(index: number, isEnd: boolean): FilterStatus;
  /** Undefined for a filter that has no opinion. */
  protected abstract visitData(index: number, data: MessagePart): FilterStatus | undefined;
  protected abstract visitTrailers(index: number, trailers: Trailers): FilterStatus | undefined;
  /** More may go on from a filter that has been told to wait. */
  protected abstract visitWithRoom(index: number): void;
  /** Takes the head with its edits out of the codec, which others will use. False when it cannot be kept. */
  protected abstract saveHead(): boolean;
  protected abstract restoreHead(): void;
  protected abstract mayHaveBody(): boolean;
  /** Makes the head, which lies in the codec, announce a body of this length, or of one that is not known for null. */
  protected abstract reframe(length: number | null): void;
  /** Sends on what has passed. @returns false when no more should come for now. */
  protected abstract deliver(
    withHead: boolean,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    trailers: Trailers | null,
  ): boolean;
  /** What may wait here, of bytes that have come. */
  protected abstract keepBytes(bytes: Buffer, start: number, end: number): Buffer;
  protected abstract resumeReading(): void;
  protected abstract onOverflow(): void;

  #enqueue(bytes: Buffer, isEnd: boolean, trailers: Trailers | null): void {
    // The line that ends chunks stays behind the trailers.
    const endsWithLine = trailers !== null && this.#framing === Framing.CHUNKED;
    const raw = endsWithLine ? bytes.subarray(0, bytes.length - EMPTY_LINE.length) : bytes;
    const data = this.#dechunker === null ? raw : this.#dechunker.decode(raw, 0, raw.length);
    const isBare = this.#plan.isEdited && this.#isSettled;
    const part = this.#entering(MessagePart.data(isBare ? NO_BYTES : raw, data, isEnd && trailers === null));
    part.own(bytes);
    this.#queue.push(part);
    if (trailers === null) return;
    this.#queue.push(this.#entering(MessagePart.ofTrailers(trailers, endsWithLine ? EMPTY_LINE : NO_BYTES)));
  }

  #entering(part: MessagePart): MessagePart {
    part.next = this.#first;
    return part;
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
    return this.#checkHeld() && goesOn && !this.#isReceiverFull;
  }

  /** @returns false when reading should stop until less is held. */
  #checkHeld(): boolean {
    this.#isAboveLimit = this.heldBytes > this.#limitBytes;
    if (!this.#isAboveLimit) return true;
    if (this.#stoppedBytes() <= this.#limitBytes) return false;
    this.onOverflow();
    return true;
  }

  /** Of the body, what is held by filters that must see all of it, so that waiting would not help. */
  #stoppedBytes(): number {
    const statuses = this.#statuses;
    if (statuses === null || !statuses.includes('stop')) return 0;
    let bytes = 0;
    for (const part of this.#queue) {
      let holder = Math.max(0, part.next - 1);
      while (holder < statuses.length - 1 && statuses[holder] === 'continue') holder += 1;
      if (statuses[holder] === 'stop') bytes += part.size;
    }
    return bytes;
  }

  /** @returns false when a filter has stopped or has added something, so that the queue has to say what is next. */
  #showToAll(head: MessagePart): boolean {
    const count = this.#wanted.uses.length;
    while (head.next < count) {
      this.#visit(head);
      if (this.#isOver || this.#stopCount > 0 || this.#queue.length > 1) return false;
    }
    return true;
  }

  /** @returns true when any part has moved. */
  #moveParts(): boolean {
    let hasMoved = false;
    const count = this.#wanted.uses.length;
    const queue = this.#queue;
    let ahead = count + 1;
    for (let at = 0; at < queue.length; at += 1) {
      const part = queue[at]!;
      while (part.next < ahead && this.#mayPass(part)) {
        const { length } = queue;
        if (part.next < count) this.#visit(part);
        else part.next = count + 1;
        if (this.#isOver) return false;
        hasMoved = true;
        // What the filter has added comes into its own order.
        if (queue.length !== length) return true;
      }
      ahead = part.next;
    }
    return hasMoved;
  }

  /** The filter that saw it last lets it go on. */
  #mayPass({ next, releasedBy }: MessagePart): boolean {
    return next === 0 || this.#statusOf(next - 1) === 'continue' || releasedBy === next - 1;
  }

  #visit(part: MessagePart): void {
    const index = part.next;
    part.next = index + 1;
    this.#visiting = index;
    this.#visited = part;
    this.#goesOnAtOnce = false;
    const status = this.#show(index, part) ?? this.#statusOf(index);
    this.#visiting = NOBODY;
    this.#visited = null;
    this.#setStatus(index, this.#goesOnAtOnce ? 'continue' : status);
    if (part.kind === 'head' && part.next === this.#wanted.uses.length) this.#settle();
  }

  #statusOf(index: number): FilterStatus {
    return this.#statuses === null ? 'continue' : this.#statuses[index]!;
  }

  #setStatus(index: number, status: FilterStatus): void {
    if (this.#statuses === null) {
      if (status === 'continue') return;
      this.#statuses = new Array<FilterStatus>(this.#wanted.uses.length).fill('continue');
    }
    if (this.#statuses[index] !== 'continue') this.#stopCount -= 1;
    if (status !== 'continue') this.#stopCount += 1;
    this.#statuses[index] = status;
  }

  #show(index: number, part: MessagePart): FilterStatus | undefined {
    if (part.kind === 'head') {
      this.#reviveHead();
      return this.visitHead(index, part.isEnd);
    }
    const use = this.#wanted.uses[index]!;
    if (use === 'none') return undefined;
    if (part.kind === 'trailers') return this.visitTrailers(index, part.trailers!);
    if (part.bytes.length === 0 && !part.isEnd) return undefined;
    part.isEditable = use === 'edits';
    const status = this.visitData(index, part);
    part.isEditable = false;
    if (part.trailers !== null) this.#splitOffTrailers(index, part);
    return status;
  }

  /** Trailers that a filter has added are a part of their own for those behind it. */
  #splitOffTrailers(index: number, part: MessagePart): void {
    const trailers = MessagePart.ofTrailers(part.trailers!, NO_BYTES);
    trailers.next = index + 1;
    part.trailers = null;
    part.isEnd = false;
    this.#queue.splice(this.#queue.indexOf(part) + 1, 0, trailers);
  }

  #deliverPassed(): boolean {
    const count = this.#wanted.uses.length;
    let passed = 0;
    while (passed < this.#queue.length && this.#queue[passed]!.next > count) passed += 1;
    if (passed === 0) return true;
    const parts = this.#queue.splice(0, passed);
    const withHead = parts[0]!.kind === 'head';
    if (withHead) this.#reviveHead();
    const { isEnd, trailers } = parts.at(-1)!;
    const kept = trailers === null || trailers.size === 0 ? null : trailers;
    const isRaw = !this.#plan.isEdited && !this.#isUnframed;
    const bytes = join(parts.map((part) => (isRaw ? part.raw : part.bytes)).filter(({ length }) => length > 0));
    if (withHead && this.#plan.isEdited && !this.#isUnframed)
      this.reframe(isEnd && kept === null ? bytes.length : null);
    if (!withHead && !isEnd && bytes.length === 0) return true;
    return this.#hand(withHead, bytes, 0, bytes.length, isEnd, kept);
  }

  /** Of a head that all have let go at once, which is the rule: what came with it goes on untouched. */
  #deliverAtOnce(bytes: Buffer, start: number, end: number, isEnd: boolean, trailers: Trailers | null): boolean {
    // Setting the length of an array is a call into the engine's runtime.
    this.#queue.pop();
    const kept = trailers === null || trailers.size === 0 ? null : trailers;
    if (this.#plan.isEdited && !this.#isUnframed) this.reframe(isEnd && kept === null ? 0 : null);
    return this.#hand(true, bytes, start, end, isEnd, kept);
  }

  #hand(
    withHead: boolean,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    trailers: Trailers | null,
  ): boolean {
    const goesOn = this.deliver(withHead, bytes, start, end, isEnd, trailers);
    this.#isReceiverFull = !goesOn;
    return goesOn;
  }

  #reviveHead(): void {
    if (this.#isHeadLive) return;
    this.restoreHead();
    this.#isHeadLive = true;
  }
}
