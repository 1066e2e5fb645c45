// What waits to be told to a collector, and how it gets there: gathered, sent in one call when there is enough of it or it
// has waited long enough. Nothing here ever stops a request. What there is no room for is dropped and counted, and so is
// what a collector that fails, hangs or is away has not taken: nothing is told twice.
//
//   add ──► waiting ──enough, or time──► call under way ──answer, failure, time out──► over
//              └── while too many calls are under way it goes on waiting, within its bound

import type { CallAnswer, CallRequest } from '../http/filter-call.ts';
import type { ReportContext } from './tracer.ts';

/** Bytes that wait for a call. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** One that hangs must not hold up the others at once. */
const MAX_CALLS = 4;

export interface ReportQueueOptions {
  /** Cluster that is called. */
  readonly cluster: string;
  /** Asked with each item: the values may be the runtime's. */
  readonly flushIntervalMs: () => number;
  /** Whether what waits is enough for a call. */
  readonly isEnough: (items: number, bytes: number) => boolean;
  readonly request: (items: readonly Buffer[]) => CallRequest;
  /** How many of the items the collector has taken. */
  readonly takenOf: (answer: CallAnswer, items: number) => number;
  /** Further ones are dropped. */
  readonly maxItems?: number;
  readonly count: Readonly<Record<ReportEvent, (items: number) => void>>;
}

/**
 *   sent     a call has begun
 *   timed    … because time was over
 *   skipped  there is no such cluster: nobody was called
 *   taken    the collector has them
 *   refused  it has answered otherwise
 *   failed   it has not answered
 *   dropped  there was no room for an item
 */
export type ReportEvent = 'sent' | 'timed' | 'skipped' | 'taken' | 'refused' | 'failed' | 'dropped';

export class ReportQueue {
  readonly #context: ReportContext;
  readonly #options: ReportQueueOptions;
  #items: Buffer[] = [];
  #bytes = 0;
  #calls = 0;
  #cancelTimer: (() => void) | null = null;
  #onSettled: (() => void) | null = null;

  constructor(context: ReportContext, options: ReportQueueOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** @param item given away. */
  add(item: Buffer): void {
    const { maxItems = Number.POSITIVE_INFINITY } = this.#options;
    if (this.#bytes + item.length > MAX_WAITING_BYTES || this.#items.length >= maxItems) {
      this.#options.count.dropped(1);
      return;
    }
    this.#items.push(item);
    this.#bytes += item.length;
    if (this.#options.isEnough(this.#items.length, this.#bytes)) this.flush();
    else this.#startTimer();
  }

  /** Sends what waits, unless too many calls are under way. */
  flush(): void {
    if (this.#items.length === 0 || this.#calls === MAX_CALLS) return;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    const items = this.#items;
    this.#items = [];
    this.#bytes = 0;
    const { count, cluster, request } = this.#options;
    if (!this.#context.hasCluster(cluster)) {
      count.skipped(items.length);
      return;
    }
    count.sent(items.length);
    this.#calls += 1;
    this.#context.call(request(items), {
      onAnswer: (answer) => {
        this.#judge(answer, items.length);
        this.#endCall();
      },
      onCallFailure: () => {
        count.failed(items.length);
        this.#endCall();
      },
    });
  }

  /** Of the worker's end, or of the configuration's: what waits is sent if it can be. Once. Resolves behind the last call. */
  close(): Promise<void> {
    this.flush();
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#items.length > 0) this.#options.count.dropped(this.#items.length);
    this.#items = [];
    this.#bytes = 0;
    return new Promise((resolve) => {
      if (this.#calls === 0) resolve();
      else this.#onSettled = resolve;
    });
  }

  #judge(answer: CallAnswer, items: number): void {
    const { count, takenOf } = this.#options;
    const taken = Math.min(takenOf(answer, items), items);
    if (taken <= 0) {
      count.refused(items);
      return;
    }
    count.taken(taken);
    if (taken < items) count.dropped(items - taken);
  }

  /** What has been enough while no call could be made goes out as soon as one can. */
  #endCall(): void {
    this.#calls -= 1;
    if (this.#calls === 0) this.#onSettled?.();
    if (this.#items.length > 0 && this.#options.isEnough(this.#items.length, this.#bytes)) this.flush();
    else if (this.#items.length > 0) this.#startTimer();
  }

  #startTimer(): void {
    this.#cancelTimer ??= this.#context.clock.after(this.#options.flushIntervalMs(), () => {
      this.#cancelTimer = null;
      if (this.#items.length === 0 || this.#calls === MAX_CALLS) return;
      this.#options.count.timed(this.#items.length);
      this.flush();
    });
  }
}
