// What the csrf filter and its configuration share.

import type { Fraction, RuntimeSetting, StringMatch } from '../../../snapshot/index.ts';

/** Of the filter itself, or what one level of a route says instead. */
export interface CsrfPolicySettings {
  readonly enabled: RuntimeSetting<Fraction>;
  /** Of those that are not enabled: judged and counted, no more. Null for none. */
  readonly shadowed: RuntimeSetting<Fraction> | null;
  /** Beside the request's own host. */
  readonly origins: readonly StringMatch[];
}

/** Names behind `http.<stat_prefix>.`. */
export interface CsrfCounters {
  readonly missing: string;
  readonly invalid: string;
  readonly valid: string;
}

export interface CsrfSettings {
  readonly counters: CsrfCounters;
  /** Where a route says nothing. */
  readonly policy: CsrfPolicySettings;
}
