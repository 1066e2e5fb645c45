// One direction of one stream through the filters. A message that all of them let through at once, which is the rule, is
// shown to one after the other and leaves. From the moment on when one of them stops it, adds to it or reads its body, its
// parts queue (held-parts.ts).
//
// Bodies leave as they came, framing included, unless a filter of the chain edits them: then they lose their framing
// on the way in, and leave without, announced with their length where all of it leaves at once. Which filters edit this
// one is settled once each has seen the head; what comes before that is kept in both forms.

import { Framing } from '../../wasm/http1.ts';
import { freeGiven } from '../network/given-memory.ts';
import type { BodyPlan } from './body-uses.ts';
import { join } from './chunk-framing.ts';
import type { BodyUse, FilterStatus } from './filter.ts';
import { type HeldMessage, HeldParts } from './held-parts.ts';
import { editError, MessagePart } from './message-part.ts';
import type { Trailers } from './trailers.ts';

const NOBODY = -1;
const NO_BYTES = Buffer.alloc(0);

export abstract class FilterPass {
  /** What the filters do with the body, as far as they have said. */
  #wanted: BodyPlan;
  /** What holds for what has come of it: the same, once each filter has seen the head. */
  #plan: BodyPlan;
  /** Every filter has seen the head, so that what each does with the body stays as it is. */
  #isSettled = false;
  #limitBytes: number;
  /** Null as long as all has gone through at once. */
  #held: HeldParts | null = null;
  #visiting = NOBODY;
  /** The part that it looks at; null for a head that is in no queue. */
  #visited: MessagePart | null = null;
  /** The filter that is being visited has asked to go on before it returned. */
  #goesOnAtOnce = false;
  #isPumping = false;
  /** Filters are being shown the head, which is in no queue. */
  #isShowingHead = false;
  /** The message ends with its head. */
  #isHeadEnd = false;
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
  /** How many filters have seen a head that is in no queue, with those that take no part. */
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
    return this.#held === null ? 0 : this.#held.bytes;
  }

  /** How many filters have seen the head, with those that take no part. */
  get headSeenBy(): number {
    const head = this.#held?.head;
    return head === undefined ? this.#seenBy : Math.min(head.next, this.#count);
  }

  limitHeld(bytes: number): void {
    this.#limitBytes = bytes;
  }

  /** True while filters keep back the head. */
  get holdsHead(): boolean {
    return this.#isShowingHead || this.#held?.head !== undefined;
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
    this.#isHeadEnd = isEnd && !hasBody;
    this.#isPumping = true;
    const isThrough = this.#showHead();
    this.#isPumping = false;
    if (this.#isOver) return true;
    const { isRead } = this.#plan;
    if (isRead && framing === Framing.CHUNKED) this.#queue.takeOffChunks();
    if (isThrough && !(isRead && hasBody)) return this.#deliverAtOnce(bytes, start, end, isEnd, trailers);
    if (isThrough) this.#holdHead();
    return hasBody ? this.push(bytes, start, end, isEnd, trailers) : this.#pumpAndHold();
  }

  /** More of the body; as for `begin`. */
  push(bytes: Buffer, start: number, end: number, isEnd: boolean, trailers: Trailers | null): boolean {
    if (this.#isOver) return true;
    const isBare = this.#plan.isEdited && this.#isSettled;
    this.#queue.enter(this.keepBytes(bytes, start, end), isEnd, trailers, isBare);
    return this.#pumpAndHold();
  }

  /** True when what comes goes through unseen. */
  get isTransparent(): boolean {
    return !this.#plan.isRead && !this.#isShowingHead && (this.#held === null || this.#held.isIdle);
  }

  goOn(index: number): void {
    if (this.#isOver) return;
    if (this.#visiting === index) {
      this.#goesOnAtOnce = true;
      return;
    }
    if (this.#held === null) return;
    this.#held.setStatus(index, 'continue');
    this.#pumpAgain();
  }

  /** As FilterCallbacks.releaseResponse. */
  release(index: number, bytes: number): number {
    if (this.#isOver || this.#held === null) return 0;
    const held = this.#held.release(index, bytes);
    this.#pumpAgain();
    return held;
  }

  /** As FilterCallbacks.exchangeResponse. */
  exchange(index: number, taken: number, bytes: Buffer, isLast: boolean): boolean {
    if (this.#isOver) return false;
    if (this.#isPumping) throw editError('can exchange data only from an event of its own');
    if (this.#wanted.uses[index] !== 'edits') throw editError('cannot exchange data: it has left this body alone');
    const held = this.#queue;
    held.take(index, taken);
    if (bytes.length > 0) held.give(index, bytes);
    if (bytes.length > 0 || isLast) held.releaseHead(index);
    if (isLast) held.setStatus(index, 'continue');
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

  /** What has gone on from a filter, and not yet to the receiver, may become more. */
  #hasRoomBehind(index: number): boolean {
    if (this.#isReceiverFull) return false;
    return this.#held === null || this.#held.bytesBehind(index) <= this.#limitBytes;
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
    if (this.#visiting !== index || (this.#visited !== null && this.#visited.kind !== 'head')) {
      throw editError('can leave the body alone only while it looks at the head');
    }
    this.#wanted = this.#wanted.with(index, use);
  }

  /** All filters have seen the head. */
  #settle(): void {
    this.#isSettled = true;
    this.#plan = this.#wanted;
    this.#seenBy = this.#count;
  }

  /** Puts the head, which no filter behind this one has seen, where it can be edited until this one returns. */
  protected reviveHeadFor(index: number): void {
    const next = this.#held?.head?.next ?? this.#seenBy;
    if (!this.holdsHead || next > index + 1) throw editError('cannot edit a head that has gone on');
    this.#reviveHead();
  }

  /** Adds data for the filters behind this one, which is being visited with the head or the trailers. */
  addData(index: number, bytes: Buffer): void {
    if (this.#isOver) return;
    if (this.#visiting !== index || this.#visited?.kind === 'data') {
      throw editError('can add data only while it looks at the head or the trailers');
    }
    if (this.#wanted.uses[index] !== 'edits')
      throw editError('cannot add data: its kind does not say that it edits this body');
    if (!this.mayHaveBody()) throw editError('cannot add data to a message that has no body');
    const visited = this.#visited ?? this.#holdHead();
    const isAtHead = visited.kind === 'head';
    const part = MessagePart.data(NO_BYTES, bytes, isAtHead && visited.isEnd);
    part.next = index + 1;
    if (isAtHead) {
      visited.isEnd = false;
      this.#queue.addBehind(visited, part);
    } else this.#queue.addBefore(visited, part);
  }

  /**
   * All that has come of a message whose head is held back: as it came, but for the edits of its head. To be asked of an event.
   * @returns undefined where that cannot be had, as something has gone on, or a filter has changed the body.
   */
  collectHeld(): HeldMessage | undefined {
    if (this.#held === null || this.#isPumping) return undefined;
    return this.#held.collect(this.#wanted.uses);
  }

  /** The message is of no interest any more. What a filter has stopped stays so: what still comes does not go past it. */
  abandon(): void {
    this.#seenBy = this.headSeenBy;
    this.#isOver = true;
    this.#isShowingHead = false;
    if (this.#held !== null) this.#held.clear();
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
  /** Whoever it is delivered to keeps none of its memory; else it is given away. */
  protected abstract readonly isCopiedOnDelivery: boolean;
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

  get #count(): number {
    return this.#plan.uses.length;
  }

  /** Made when something is to queue. */
  get #queue(): HeldParts {
    this.#held ??= new HeldParts(this.#count, this.#first, this.#framing);
    return this.#held;
  }

  /** Puts a head that filters are being shown, or have been, at the beginning of the queue. */
  #holdHead(): MessagePart {
    const head = MessagePart.head(this.#isHeadEnd);
    head.next = this.#seenBy;
    this.#isShowingHead = false;
    if (this.#visiting !== NOBODY) this.#visited = head;
    this.#queue.add(head);
    return head;
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
    if (this.#queue.stoppedBytes <= this.#limitBytes) return false;
    this.onOverflow();
    return true;
  }

  /** Of a message that begins. @returns false when a filter has stopped it or added to it, so that it queues, or it is over. */
  #showHead(): boolean {
    const count = this.#count;
    this.#isShowingHead = true;
    while (this.#seenBy < count) {
      const index = this.#seenBy;
      this.#seenBy = index + 1;
      this.#visiting = index;
      this.#goesOnAtOnce = false;
      this.#reviveHead();
      const status = this.visitHead(index, this.#isHeadEnd);
      if (status !== 'continue' && !this.#goesOnAtOnce) {
        if (this.#held === null && !this.#isOver) this.#holdHead();
        this.#queue.setStatus(index, status);
      }
      this.#visiting = NOBODY;
      this.#visited = null;
      if (index + 1 === count) this.#settle();
      if (this.#isOver || this.#held !== null) return false;
    }
    this.#isShowingHead = false;
    return true;
  }

  /** @returns true when any part has moved. */
  #moveParts(): boolean {
    let hasMoved = false;
    const count = this.#count;
    const held = this.#held;
    if (held === null) return false;
    const queue = held.parts;
    let ahead = count + 1;
    for (let at = 0; at < queue.length; at += 1) {
      const part = queue[at]!;
      while (part.next < ahead && held.mayPass(part)) {
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

  #visit(part: MessagePart): void {
    const index = part.next;
    part.next = index + 1;
    this.#visiting = index;
    this.#visited = part;
    this.#goesOnAtOnce = false;
    const status = this.#show(index, part);
    this.#visiting = NOBODY;
    this.#visited = null;
    if (this.#goesOnAtOnce) this.#queue.setStatus(index, 'continue');
    else if (status !== undefined) this.#queue.setStatus(index, status);
    if (part.kind === 'head' && part.next === this.#count) this.#settle();
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
    if (part.trailers !== null && !this.#isOver) this.#splitOffTrailers(index, part);
    return status;
  }

  /** Trailers that a filter has added are a part of their own for those behind it. */
  #splitOffTrailers(index: number, part: MessagePart): void {
    const trailers = MessagePart.ofTrailers(part.trailers!, NO_BYTES);
    trailers.next = index + 1;
    part.trailers = null;
    part.isEnd = false;
    this.#queue.addBehind(part, trailers);
  }

  #deliverPassed(): boolean {
    const parts = this.#held === null ? [] : this.#held.takePassed();
    if (parts.length === 0) return true;
    const withHead = parts[0]!.kind === 'head';
    if (withHead) this.#reviveHead();
    const { isEnd, trailers } = parts.at(-1)!;
    const kept = trailers === null || trailers.size === 0 ? null : trailers;
    const isRaw = !this.#plan.isEdited && !this.#isUnframed;
    const pieces = parts.map((part) => (isRaw ? part.raw : part.bytes)).filter(({ length }) => length > 0);
    const bytes = join(pieces);
    if (withHead && this.#plan.isEdited && !this.#isUnframed)
      this.reframe(isEnd && kept === null ? bytes.length : null);
    if (!withHead && !isEnd && bytes.length === 0) return true;
    const goesOn = this.#hand(withHead, bytes, 0, bytes.length, isEnd, kept);
    if (this.isCopiedOnDelivery) {
      for (const part of parts) part.empty();
      if (pieces.length > 1) freeGiven(bytes);
    }
    return goesOn;
  }

  /** Of a head that all have let go at once, which is the rule: what came with it goes on untouched. */
  #deliverAtOnce(bytes: Buffer, start: number, end: number, isEnd: boolean, trailers: Trailers | null): boolean {
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
