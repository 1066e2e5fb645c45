// How a route describes its requests to filters that limit them: a limit makes a descriptor, a list of keys and values, or
// none.

import type { FormatSegments } from './format.ts';
import type { HeaderMatch, QueryParameterMatch } from './route-table.ts';

/** What an entry says of a request, and what it says where that is nothing; empty for nothing. */
export interface DescribedValue {
  readonly value: FormatSegments;
  readonly byDefault: string;
}

/** What adds one entry to a descriptor; one that finds nothing to say ends it, unless it is to be left out then. */
export type RateLimitAction =
  | ({ readonly kind: 'fixed'; readonly key: string } & DescribedValue)
  | { readonly kind: 'destination-cluster' }
  | {
      readonly kind: 'request-header' | 'query-parameter';
      readonly key: string;
      /** Of a header in lower case. */
      readonly name: string;
      readonly isLeftOutIfAbsent: boolean;
    }
  | { readonly kind: 'remote-address' }
  /** First bits that count. */
  | { readonly kind: 'masked-remote-address'; readonly v4Bits: number; readonly v6Bits: number }
  | ({
      readonly kind: 'match';
      readonly key: string;
      readonly expects: boolean;
      /** All of them. */
      readonly headers: readonly HeaderMatch[];
      readonly queryParameters: readonly QueryParameterMatch[];
    } & DescribedValue)
  | {
      readonly kind: 'metadata';
      readonly key: string;
      readonly source: 'DYNAMIC' | 'ROUTE';
      readonly namespace: string;
      readonly path: readonly string[];
      /** Empty for none. */
      readonly byDefault: string;
      readonly isLeftOutIfAbsent: boolean;
    };

export interface RateLimitSettings {
  /** 0 to 10: filters read those of their own stage. */
  readonly stage: number;
  /** At least one. */
  readonly actions: readonly RateLimitAction[];
  /** What one request counts for, or what says it; null where nothing is said, which is 1. */
  readonly hits: number | FormatSegments | null;
  /** Key of the runtime that can turn it off; empty for none. */
  readonly disableKey: string;
  /** Where the metadata of a request has a limit of its own; null for nowhere. */
  readonly limitAt: { readonly namespace: string; readonly path: readonly string[] } | null;
  /** Counted when the request is over, whatever has become of it. */
  readonly isAtEnd: boolean;
  /** Responses say how much is left; null where the filter decides. */
  readonly tellsLimits: boolean | null;
}

/** What a route has to say; the same lists for all routes of a host that add nothing. */
export interface RouteRateLimits {
  readonly ofRoute: readonly RateLimitSettings[];
  readonly ofHost: readonly RateLimitSettings[];
  /** Both count, whatever a filter says. */
  readonly includesHost: boolean;
}
