// What the ratelimit filter and its configuration share.

import type { Fraction, HeaderEdits, RateLimitSettings, RuntimeSetting } from '../../../snapshot/index.ts';
import type { VersionedTarget } from '../grpc/target.ts';

/** In the scope of the cluster that a request goes to. */
export interface RateLimitStatNames {
  readonly ok: string;
  readonly overLimit: string;
  readonly error: string;
  readonly failureModeAllowed: string;
}

/** What becomes of the limits of virtual hosts: read where the route has none, always, never. */
export type HostLimits = 'override' | 'include' | 'ignore';

export interface RateLimitFilterSettings {
  readonly stats: RateLimitStatNames;
  readonly service: VersionedTarget;
  readonly domain: string;
  /** Of the limits of routes. */
  readonly stage: number;
  readonly requests: 'internal' | 'external' | 'both';
  readonly enabled: RuntimeSetting<Fraction>;
  readonly enforced: RuntimeSetting<Fraction>;
  /** Share of requests that do not go on where the service fails. */
  readonly deniesFailure: RuntimeSetting<Fraction>;
  readonly status: number;
  readonly statusOnError: number;
  readonly isResourceExhausted: boolean;
  readonly tellsLimits: boolean;
  /** Refusals say that they are some, for clients that are proxies. */
  readonly marksRefusals: boolean;
  /** Of refusals. */
  readonly responseEdits: readonly HeaderEdits[];
  /** In place of those of routes, where there are any. */
  readonly rateLimits: readonly RateLimitSettings[];
}

/** What one level of a route says. */
export interface RouteLimitSettings {
  readonly hostLimits: HostLimits;
  /** In place of all others, where there are any. */
  readonly rateLimits: readonly RateLimitSettings[];
  /** Empty for that of the filter. */
  readonly domain: string;
}
