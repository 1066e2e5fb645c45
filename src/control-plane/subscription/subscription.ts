// Resources of one type that come from outside and may change while the proxy runs: what those who want some ask, whatever brings
// them. Main thread.
//
//   owner ──start──▶ subscription ──onResources──▶ owner takes all of them, or refuses them with a reason
//                                └──onFailed────▶ there is nothing new; what was before stays
//
// The first of either is what the start of the server waits for.

export interface SubscriptionOwner<Resource> {
  /**
   * All resources there are now.
   * @returns why they are refused; undefined when they have taken effect.
   */
  onResources(resources: readonly Resource[], version: string): string | undefined;
  /** They could not be had, and the reason has been logged; or they were refused. */
  onFailed(): void;
}

export interface Subscription {
  /** Once. */
  start(): void;
  close(): void;
}
