// What main tells the workers of a jwt_authn filter.

import type { PathMatch, RouteConditions, StringMatch } from '../../../snapshot/index.ts';

/** Names behind `http.<stat_prefix>.`. */
export interface JwtStatNames {
  readonly allowed: string;
  readonly denied: string;
  readonly preflightBypassed: string;
  readonly fetchSuccess: string;
  readonly fetchFailed: string;
  readonly cacheHit: string;
  readonly cacheMiss: string;
}

/** A server that publishes keys. */
export interface RemoteKeys {
  readonly kind: 'remote';
  readonly cluster: string;
  readonly host: string;
  /** With its query. */
  readonly path: string;
  readonly timeoutMs: number;
  readonly cacheMs: number;
  /** Keys are fetched before they are needed. */
  readonly isEager: boolean;
  /** From a fetch that has failed to the next, for an eager one. */
  readonly failedRefetchMs: number;
  /** After the first try. */
  readonly retries: number;
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
}

export interface LocalKeys {
  readonly kind: 'local';
  /** As parseKeySet reads it. */
  readonly text: string;
}

export interface TokenHeader {
  /** In lower case. */
  readonly name: string;
  /** Before the token. */
  readonly prefix: string;
}

export interface ProviderSettings {
  readonly name: string;
  /** Empty for any. */
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly subjects: StringMatch | null;
  readonly keys: RemoteKeys | LocalKeys;
  readonly fromHeaders: readonly TokenHeader[];
  readonly fromParameters: readonly string[];
  readonly fromCookies: readonly string[];
  /** The header of a token goes on. */
  readonly forwards: boolean;
  /** Empty for none. */
  readonly payloadHeader: string;
  readonly padsPayload: boolean;
  /** Keys in metadata; empty for none. */
  readonly payloadKey: string;
  readonly headerKey: string;
  readonly failureKey: string;
  /** Claims that become lists there. */
  readonly spacedClaims: readonly string[];
  readonly skewSeconds: number;
  readonly needsExpiration: boolean;
  /** Infinity for any. */
  readonly maxLifetimeMs: number;
  /** 0 for none. */
  readonly cachedTokens: number;
  readonly claimHeaders: readonly { readonly name: string; readonly path: readonly string[] }[];
  readonly clearsRoute: boolean;
}

export type Requirement =
  | { readonly kind: 'nothing' | 'missing' | 'missing-or-failed' | 'unverified' }
  /** @param audiences null for those of the provider. */
  | { readonly kind: 'provider'; readonly provider: string; readonly audiences: readonly string[] | null }
  | { readonly kind: 'any' | 'all'; readonly of: readonly Requirement[] };

export interface RuleSettings {
  readonly match: PathMatch;
  readonly conditions: RouteConditions | null;
  readonly requirement: Requirement;
}

export interface JwtAuthnSettings {
  readonly stats: JwtStatNames;
  readonly providers: readonly ProviderSettings[];
  readonly rules: readonly RuleSettings[];
  readonly named: ReadonlyMap<string, Requirement>;
  /** For requests that no rule is for: by what filters before have said. Null for none. */
  readonly byState: { readonly key: string; readonly requirements: ReadonlyMap<string, Requirement> } | null;
  readonly bypassesPreflight: boolean;
  readonly isSilent: boolean;
}

/** What a route says: a name of `named`. */
export interface RouteRequirement {
  readonly name: string;
}
