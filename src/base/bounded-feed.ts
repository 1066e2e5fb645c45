// What one side produces when it likes and the other takes when it can, with a bound on what waits in between: the producer is
// never held up, and learns what found no room. One consumer.

export interface BoundedFeedOptions<Item> {
  /** Cost of all that may wait. An item that costs more than all of it is taken when nothing else waits. */
  readonly limit: number;
  readonly costOf: (item: Item) => number;
  /** The consumer has gone; called once, and not after `end`. */
  readonly onClosed?: () => void;
}

export class BoundedFeed<Item> implements AsyncIterableIterator<Item, undefined> {
  readonly #options: BoundedFeedOptions<Item>;
  #waiting: Item[] = [];
  #cost = 0;
  #wake: (() => void) | undefined;
  #state: 'open' | 'ended' | 'closed' = 'open';

  constructor(options: BoundedFeedOptions<Item>) {
    this.#options = options;
  }

  /** @returns false when there is no room for it, or nobody who takes it. */
  offer(item: Item): boolean {
    const cost = this.#options.costOf(item);
    if (this.#state !== 'open' || (this.#cost > 0 && this.#cost + cost > this.#options.limit)) return false;
    this.#cost += cost;
    this.#waiting.push(item);
    this.#wake?.();
    return true;
  }

  /** What waits is still to be taken; nothing follows. Idempotent. */
  end(): void {
    if (this.#state !== 'open') return;
    this.#state = 'ended';
    this.#wake?.();
  }

  /** The consumer takes no more. Idempotent. */
  close(): void {
    const wasOpen = this.#state === 'open';
    this.#state = 'closed';
    this.#waiting = [];
    this.#cost = 0;
    this.#wake?.();
    if (wasOpen) this.#options.onClosed?.();
  }

  async next(): Promise<IteratorResult<Item, undefined>> {
    while (this.#waiting.length === 0 && this.#state === 'open') {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
      this.#wake = undefined;
    }
    const item = this.#waiting.shift();
    if (item === undefined) return { done: true, value: undefined };
    this.#cost -= this.#options.costOf(item);
    return { done: false, value: item };
  }

  async return(): Promise<IteratorResult<Item, undefined>> {
    this.close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
