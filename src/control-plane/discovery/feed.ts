// What comes by discovery for one who wants it: asks for it, counts that under a prefix of its own, and tells when the first answer has
// come, or is waited for no longer. What becomes of a response is the business of whoever wants it. Main thread.

import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { DiscoverableResources, DiscoveredResponse } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import { Holdings, type HoldingsSource } from '../holdings.ts';
import { FirstAnswer } from '../subscription/first-answer.ts';
import type {
  Subscription,
  SubscriptionOwner,
  SubscriptionRequest,
  Subscriptions,
} from '../subscription/subscription.ts';
import { SubscriptionStats } from '../subscription/subscription-stats.ts';

/** What everybody is given who takes something by discovery. */
export interface DiscoveryDependencies extends HoldingsSource {
  readonly subscriptions: Subscriptions;
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
  /** XXH64. */
  readonly hash: (text: string) => bigint;
  /** Of the bootstrap in force. */
  readonly discoverable: () => DiscoverableResources;
  readonly onDeprecatedFields: (fields: ReadonlyMap<string, number>) => void;
}

/** The same where it refers to clusters. */
export interface ReferringDependencies extends DiscoveryDependencies {
  readonly clusterNames: () => Iterable<string>;
}

type Refusals = readonly string[];

export interface FeedRequest<Resource>
  extends Pick<SubscriptionRequest<Resource>, 'source' | 'names' | 'prefix' | 'type' | 'followsWrites'> {
  /** As the log names what is waited for. */
  readonly what: string;
  /** Of its stats, with its dot. */
  readonly statPrefix: string;
  /** @returns as SubscriptionOwner.onResponse. */
  take(response: DiscoveredResponse<Resource>): Refusals | Promise<Refusals>;
  /** Whoever waits has waited for this response; for any when absent. */
  isAnswer?(response: DiscoveredResponse<Resource>): boolean;
  /** Told once of the first answer, or that it is waited for no longer; perhaps not behind `stop`. */
  onAnswered?(): void;
}

export class Feed<Resource> implements SubscriptionOwner<Resource> {
  /** Goes with the feed. */
  readonly holdings: Holdings;
  readonly stats: SubscriptionStats;
  readonly #request: FeedRequest<Resource>;
  readonly #answer: FirstAnswer;
  readonly #subscription: Subscription;
  #isStopped = false;

  constructor(request: FeedRequest<Resource>, deps: Omit<DiscoveryDependencies, 'discoverable'>) {
    const { clock, faults, hash, log, subscriptions } = deps;
    const { what, statPrefix, source, onAnswered } = request;
    this.#request = request;
    this.holdings = new Holdings(deps);
    this.stats = SubscriptionStats.under(this.holdings, statPrefix, clock, hash);
    this.#answer = new FirstAnswer(what, source.initialFetchTimeoutMs, { clock, log, stats: this.stats });
    if (onAnswered !== undefined) {
      faults.run(`the first answer about ${what}`, () => this.#answer.promise.then(() => onAnswered()));
    }
    this.#subscription = subscriptions.subscribe({ ...request, stats: this.stats, owner: this });
  }

  /** Once. */
  start(): void {
    this.#subscription.start();
  }

  /** Nothing is asked for any more. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** The first answer has come, or is waited for no longer. */
  get isReady(): boolean {
    return this.#answer.isOver;
  }

  /** Resolves with that; perhaps never behind `stop`. */
  get whenReady(): Promise<void> {
    return this.#answer.promise;
  }

  /** The first answer has come, though not all has been made of it. Idempotent. */
  answered(): void {
    this.#answer.came();
  }

  /** As Subscription.ask. */
  ask(name: string): void {
    this.#subscription.ask?.(name);
  }

  /** As Subscription.unask. */
  unask(name: string): void {
    this.#subscription.unask?.(name);
  }

  onFailed(): void {
    this.#answer.came();
  }

  onResponse(response: DiscoveredResponse<Resource>): Refusals | Promise<Refusals> {
    if (this.#isStopped) return [];
    let taken: Refusals | Promise<Refusals> | undefined;
    try {
      taken = this.#request.take(response);
    } finally {
      if (!(taken instanceof Promise)) this.#noteAnswer(response);
    }
    return taken instanceof Promise ? taken.finally(() => this.#noteAnswer(response)) : taken;
  }

  #noteAnswer(response: DiscoveredResponse<Resource>): void {
    if (this.#request.isAnswer?.(response) !== false) this.#answer.came();
  }

  /** Idempotent. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#subscription.close();
    this.#answer.close();
  }

  /** Nobody wants it any more. Once. */
  close(): void {
    this.stop();
    this.holdings.close();
  }
}
