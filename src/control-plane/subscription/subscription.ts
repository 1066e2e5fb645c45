// Resources of one type that come from outside and may change while the proxy runs: what those who want some ask, whatever brings
// them. Main thread.
//
//   owner ──start──▶ subscription ──onResponse──▶ owner takes what it can of it, and says why it refuses the rest
//                                └──onFailed───▶ there is nothing new; what was before stays
//
// The first of either is what the start of the server waits for.

import type { DiscoveredResponse } from '../../config/index.ts';

export interface SubscriptionOwner<Resource> {
  /**
   * All resources there are now. The next response is told when this one is done with.
   * @returns why some of them are refused, one reason each; none when all have taken effect.
   */
  onResponse(response: DiscoveredResponse<Resource>): readonly string[] | Promise<readonly string[]>;
  /** They could not be had, and the reason has been logged. */
  onFailed(): void;
}

export interface Subscription {
  /** Once. */
  start(): void;
  close(): void;
}
