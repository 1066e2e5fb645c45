// What the cors filter and its configuration share.

import type { Fraction, RuntimeSetting, StringMatch } from '../../../snapshot/index.ts';

/** Of the filter itself: the names of its counters. */
export interface CorsSettings {
  readonly validCounter: string;
  readonly invalidCounter: string;
}

/** What one level of a route says; what is empty or null is left to the levels around it. */
export interface CorsPolicySettings {
  readonly origins: readonly StringMatch[];
  // Values of response fields as they are sent.
  readonly methods: string;
  readonly headers: string;
  readonly exposedHeaders: string;
  readonly maxAge: string;
  readonly allowsCredentials: boolean | null;
  readonly allowsPrivateNetwork: boolean | null;
  /** Preflights of origins that are not allowed go to the upstream. */
  readonly forwardsStrangers: boolean | null;
  /** Shares of requests; null for all, and for none. */
  readonly enabled: RuntimeSetting<Fraction> | null;
  /** Of those that are not enabled: origins are judged and counted, no more. */
  readonly shadowed: RuntimeSetting<Fraction> | null;
}
