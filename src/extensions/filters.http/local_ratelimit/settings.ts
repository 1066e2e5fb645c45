// What the local_ratelimit filter and its configuration share.

import type { KeyedTokenBucketsSettings } from '../../../base/keyed-token-buckets.ts';
import type { TokenBucketSettings } from '../../../base/token-bucket.ts';
import type { Fraction, HeaderEdits, RateLimitSettings, RuntimeSetting } from '../../../snapshot/index.ts';

/** Whole names. */
export interface LocalRateLimitCounters {
  readonly enabled: string;
  readonly enforced: string;
  readonly limited: string;
  readonly ok: string;
}

interface AnyDescriptor {
  /** Keys and values in their order. An empty value stands for any. */
  readonly entries: readonly (readonly [key: string, value: string])[];
  /** Those beyond its limit are only counted. */
  readonly isShadow: boolean;
}

/** With a value for each key. */
export interface DescriptorSettings extends AnyDescriptor {
  readonly bucket: TokenBucketSettings;
}

/** Without a value for one key at least: what requests have there makes buckets of their own. */
export interface OpenDescriptorSettings extends AnyDescriptor {
  readonly buckets: KeyedTokenBucketsSettings;
}

/** Of the filter itself, or what one level of a route says instead. */
export interface LocalRateLimitSettings {
  readonly counters: LocalRateLimitCounters;
  readonly status: number;
  /** Of requests that no descriptor stands for; null for no limit. */
  readonly bucket: TokenBucketSettings | null;
  readonly descriptors: readonly DescriptorSettings[];
  readonly openDescriptors: readonly OpenDescriptorSettings[];
  /** Shares of requests that are counted, and of those beyond the limit that are refused. Null for none. */
  readonly enabled: RuntimeSetting<Fraction> | null;
  readonly enforced: RuntimeSetting<Fraction> | null;
  /** Of the limits of routes. */
  readonly stage: number;
  /** In place of those of routes, where there are any. */
  readonly rateLimits: readonly RateLimitSettings[];
  /** What becomes of the limits of virtual hosts: read where the route has none, always, never. */
  readonly hostLimits: 'override' | 'include' | 'ignore';
  /** Requests with a descriptor of their own take a token of all, too. */
  readonly alwaysTakesDefault: boolean;
  /** Each connection has buckets of its own. */
  readonly isPerConnection: boolean;
  /** Responses say how much is left. */
  readonly tellsLimits: boolean;
  /** gRPC clients hear of a resource that is exhausted, not of a service that is away. */
  readonly isResourceExhausted: boolean;
  /** Of refusals. */
  readonly responseEdits: readonly HeaderEdits[];
  /** Of requests that go on although they are beyond the limit. */
  readonly requestEdits: readonly HeaderEdits[];
}
