// What the cache filter and its configuration share.

import type { QueryParameterMatch, StringMatch } from '../../../snapshot/index.ts';

/** What tells responses apart beside their path. */
export interface CacheKeySettings {
  readonly hasScheme: boolean;
  readonly hasHost: boolean;
  /** Of the query only these parameters count; empty for all. */
  readonly included: readonly QueryParameterMatch[];
  readonly excluded: readonly QueryParameterMatch[];
}

/** Names behind `http.<stat_prefix>.`; each request counts once in one of them. */
export interface CacheCounters {
  /** Answered from the cache as it was; after the upstream had said that it still holds. */
  readonly hit: string;
  readonly validated: string;
  /** … although it was stale: another request asks the upstream. */
  readonly staleWhileRevalidating: string;
  /** The upstream had another answer than the one that was asked about. */
  readonly failedValidation: string;
  /** There was nothing, or nothing that this request takes. */
  readonly miss: string;
  /** The request may not be answered from a cache. */
  readonly uncacheable: string;
  /** Beside these: an upstream that has failed had a stale answer take the place of its own. */
  readonly staleIfError: string;
  /** Responses that were kept, that made room for others, that a change has taken out. */
  readonly inserted: string;
  readonly evicted: string;
  readonly invalidated: string;
}

export interface CacheSettings {
  readonly counters: CacheCounters;
  readonly key: CacheKeySettings;
  readonly allowedVary: readonly StringMatch[];
  readonly maxBodyBytes: number;
  readonly ignoresRequestDirectives: boolean;
}
