// Resources of one type that come from outside and may change while the proxy runs: what those who want some ask, whatever brings
// them. Main thread.
//
//   owner ──start──▶ subscription ──onResponse──▶ owner takes what it can of it, and says why it refuses the rest
//                                └──onFailed───▶ there is nothing new; what was before stays
//
// The first of either is what the start of the server waits for.

import type { DiscoveredResponse, ResourceType } from '../../config/index.ts';
import type { ConfigSourceSettings } from '../../snapshot/index.ts';
import type { SubscriptionStats } from './subscription-stats.ts';

export interface SubscriptionOwner<Resource> {
  /**
   * What there is now of what was asked for, or what has changed of it. The next response is told when this one is done with.
   * @returns why some of them are refused, one reason each; none when all have taken effect.
   */
  onResponse(response: DiscoveredResponse<Resource>): readonly string[] | Promise<readonly string[]>;
  /**
   * The one resource that it wants has come again, byte for byte as it was told last.
   * @returns false where it has to be told of it as of any other, which it is each time where this is absent.
   */
  onRepeated?(version: string): boolean;
  /** They could not be had, and the reason has been logged. */
  onFailed(): void;
}

export interface Subscription {
  /** Once. */
  start(): void;
  /**
   * A name is wanted beside all that the source tells by itself; absent where only some are told of. Whoever asks for one again has the
   * source asked again: it may have told of it before.
   */
  ask?(name: string): void;
  /** It is not wanted any more. */
  unask?(name: string): void;
  close(): void;
}

export interface SubscriptionRequest<Resource> {
  readonly source: ConfigSourceSettings;
  /** Those that are asked for; undefined for all there are. Responses tell of no others. */
  readonly names: ReadonlySet<string> | undefined;
  /** Of all there are, those that begin so; all when absent. */
  readonly prefix?: string;
  /** How resources are read, as things are at the moment. */
  readonly type: () => ResourceType<Resource>;
  /** Counts attempts and how they end. */
  readonly stats: SubscriptionStats;
  readonly owner: SubscriptionOwner<Resource>;
  /** Files are read again when they are written in place as well, or behind links that lead elsewhere; false when absent. */
  readonly followsWrites?: boolean;
}

/** Where everybody who wants resources from outside asks for them. */
export interface Subscriptions {
  /** @returns one that is still to be started. */
  subscribe<Resource>(request: SubscriptionRequest<Resource>): Subscription;
}
