// What waits to be told to a service over one stream that stays: gathered, sent in one message when there is enough of it or it
// has waited long enough, and only over a connection that takes it. Nothing here ever stops a request. A stream that ends is
// followed by another one with the next message, after a wait where it has failed; what waits stays meanwhile, within its bound.
//
//   NONE ──message──► OPENING ──connection──► OPEN ──stale, closed──► ENDING (beside the next one) ──► over
//    ▲                   └────failure────────────┴──answer, failure, stall──► over
//    └──the wait is over──────────────────────────────────────────────────────┘
//
// Nobody says what of a stream has been taken before it ends. So what was sent is held to be taken when its stream has
// lived on for one to two checks, or has ended well; what was sent shortly before a failure counts as lost.

import { JitteredBackoff } from '../../base/backoff.ts';
import type { OutgoingStream, StreamAnswer, StreamReceiver, StreamRequest } from '../http/outgoing-stream.ts';
import type { ReportContext } from './tracer.ts';

/** Bytes that wait to be sent. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** Of a message, but for one with a single item: so much may be on its way beside what waits. */
const MAX_MESSAGE_BYTES = 64 * 1024;
const CHECK_MS = 1000;
/** Bounds of the wait behind failures. */
const [MIN_WAIT_MS, MAX_WAIT_MS] = [500, 10_000];

export interface ReportStreamOptions {
  readonly request: StreamRequest;
  readonly flushIntervalMs: number;
  /** What waits is sent at once when it is as long together. */
  readonly bufferBytes: number;
  /** A stream that takes nothing for as long is given up, and so is one that is not answered behind its end. */
  readonly timeoutMs: number;
  /** @param isFirst of its stream. */
  readonly message: (items: readonly Buffer[], isFirst: boolean) => Buffer;
  readonly isWell: (answer: StreamAnswer) => boolean;
  readonly count: {
    readonly taken: (items: number) => void;
    readonly lost: (items: number) => void;
  };
}

export class ReportStream {
  readonly #context: ReportContext;
  readonly #options: ReportStreamOptions;
  readonly #backoff: JitteredBackoff;
  #items: Buffer[] = [];
  #bytes = 0;
  /** What waits is to go as soon as it can. */
  #isDue = false;
  #cancelTimer: (() => void) | null = null;
  /** Set while nothing is tried behind a failure. */
  #cancelWait: (() => void) | null = null;
  #current: Sending | null = null;
  /** Those that this side has ended, and perhaps the current one. */
  readonly #live = new Set<Sending>();
  #isClosing = false;
  #onSettled: () => void = () => {};

  constructor(context: ReportContext, options: ReportStreamOptions) {
    this.#context = context;
    this.#options = options;
    this.#backoff = new JitteredBackoff(context.random, MIN_WAIT_MS, MAX_WAIT_MS);
  }

  /** @param item given away. */
  add(item: Buffer): void {
    if (this.#bytes + item.length > MAX_WAITING_BYTES) {
      this.#options.count.lost(1);
      return;
    }
    this.#items.push(item);
    this.#bytes += item.length;
    if (this.#bytes >= this.#options.bufferBytes) this.#flush();
    else if (!this.#isDue) this.#startTimer();
  }

  /** Nothing is added any more. Once. Resolves when what waited has been sent, and the service has ended the stream, or it is lost. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#cancelTimer?.();
    this.#cancelWait?.();
    this.#cancelWait = null;
    this.#flush();
    if (this.#items.length === 0) this.#retire();
    // A connection that does not come is not waited for longer than an answer.
    const callOff = this.#context.clock.after(this.#options.timeoutMs, () => this.#giveUp());
    if (this.#live.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onSettled = resolve;
      });
    }
    callOff();
  }

  // ---- From streams ----

  onWritable(): void {
    if (this.#isDue) this.#flush();
  }

  onOver(sending: Sending, isWell: boolean): void {
    const wasCurrent = this.#current === sending;
    this.#live.delete(sending);
    if (wasCurrent) this.#current = null;
    if (this.#isClosing) this.#forget();
    else if (wasCurrent) this.#goOn(isWell);
    if (this.#live.size === 0) this.#onSettled();
  }

  /** Its successor goes to where its cluster is now. */
  onStale(sending: Sending): void {
    if (this.#current !== sending) return;
    this.#retire();
    // It may have had no connection yet.
    if (this.#isDue) this.#flush();
  }

  onProven(): void {
    this.#backoff.reset();
  }

  // ---- Inside ----

  #flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#items.length === 0) return;
    this.#isDue = true;
    if (this.#cancelWait !== null) return;
    if (this.#current?.isStale === true) this.#retire();
    if (this.#current === null) this.#open();
    while (this.#items.length > 0) {
      if (this.#current === null || !this.#current.canSend) return;
      this.#current.send(this.#nextItems());
    }
    this.#isDue = false;
    if (this.#isClosing) this.#retire();
  }

  #nextItems(): readonly Buffer[] {
    let count = 0;
    let bytes = 0;
    for (const { length } of this.#items) {
      if (count > 0 && bytes + length > MAX_MESSAGE_BYTES) break;
      count += 1;
      bytes += length;
    }
    this.#bytes -= bytes;
    return this.#items.splice(0, count);
  }

  #open(): void {
    const sending = new Sending(this, this.#context, this.#options);
    this.#current = sending;
    this.#live.add(sending);
    // It may be over by then.
    sending.start();
  }

  /** No message goes out over the current one any more. */
  #retire(): void {
    const sending = this.#current;
    this.#current = null;
    sending?.end();
  }

  #goOn(isWell: boolean): void {
    if (isWell) {
      if (this.#items.length > 0 && !this.#isDue) this.#startTimer();
      // One that is ended at once, again and again, is begun no more often than with each message.
      else if (this.#isDue) this.#waitFor(this.#options.flushIntervalMs);
      return;
    }
    this.#waitFor(this.#backoff.nextMs());
  }

  #waitFor(waitMs: number): void {
    this.#cancelWait = this.#context.clock.after(waitMs, () => {
      this.#cancelWait = null;
      if (this.#isDue) this.#flush();
    });
  }

  #giveUp(): void {
    this.#forget();
    for (const sending of [...this.#live]) sending.giveUp();
  }

  /** What waits is lost. */
  #forget(): void {
    this.#cancelWait?.();
    this.#cancelWait = null;
    if (this.#items.length > 0) this.#options.count.lost(this.#items.length);
    this.#items = [];
    this.#bytes = 0;
    this.#isDue = false;
  }

  #startTimer(): void {
    if (this.#isClosing) return;
    this.#cancelTimer ??= this.#context.clock.after(this.#options.flushIntervalMs, () => {
      this.#cancelTimer = null;
      this.#flush();
    });
  }
}

/** One stream, and what was sent over it. */
class Sending implements StreamReceiver {
  readonly #owner: ReportStream;
  readonly #context: ReportContext;
  readonly #options: ReportStreamOptions;
  #stream: OutgoingStream | null = null;
  #isFirst = true;
  /** Items sent since the last check, and before it, which nobody has counted. */
  #young = 0;
  #old = 0;
  /** Monotonic; since when it has taken nothing, infinite while it does. */
  #stalledMs = Number.POSITIVE_INFINITY;
  #cancelCheck: (() => void) | null = null;
  #isOver = false;

  constructor(owner: ReportStream, context: ReportContext, options: ReportStreamOptions) {
    this.#owner = owner;
    this.#context = context;
    this.#options = options;
  }

  get canSend(): boolean {
    return this.#stream?.canSend === true;
  }

  get isStale(): boolean {
    return this.#stream?.isStale === true;
  }

  start(): void {
    this.#stalledMs = this.#context.clock.monotonicMs();
    this.#checkLater();
    const stream = this.#context.stream(this.#options.request, this);
    if (!this.#isOver) this.#stream = stream;
  }

  /** While it takes more. */
  send(items: readonly Buffer[]): void {
    this.#young += items.length;
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    this.#stream!.send(this.#options.message(items, isFirst));
    if (!this.canSend) this.#stalledMs = this.#context.clock.monotonicMs();
  }

  end(): void {
    this.#stalledMs = Number.POSITIVE_INFINITY;
    this.#stream?.end(this.#options.timeoutMs);
  }

  giveUp(): void {
    this.#stream?.cancel();
    this.#finish(false);
  }

  onStreamWritable(): void {
    this.#stalledMs = Number.POSITIVE_INFINITY;
    this.#owner.onWritable();
  }

  onStreamAnswer(answer: StreamAnswer): void {
    this.#finish(this.#options.isWell(answer));
  }

  onStreamFailure(): void {
    this.#finish(false);
  }

  #checkLater(): void {
    this.#cancelCheck = this.#context.clock.after(CHECK_MS, () => this.#check());
  }

  #check(): void {
    if (this.#old > 0) {
      this.#options.count.taken(this.#old);
      this.#owner.onProven();
    }
    this.#old = this.#young;
    this.#young = 0;
    if (this.#context.clock.monotonicMs() - this.#stalledMs >= this.#options.timeoutMs) {
      this.giveUp();
      return;
    }
    this.#checkLater();
    if (this.isStale) this.#owner.onStale(this);
  }

  #finish(isWell: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stream = null;
    this.#cancelCheck?.();
    const items = this.#young + this.#old;
    if (items > 0) this.#options.count[isWell ? 'taken' : 'lost'](items);
    this.#owner.onOver(this, isWell);
  }
}
