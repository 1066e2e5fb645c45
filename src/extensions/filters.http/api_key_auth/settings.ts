// What the api_key_auth filter and its configuration share.

/** Clients, by the SHA-256 digests of their keys in base64. */
export type Clients = ReadonlyMap<string, string>;

export interface KeySource {
  readonly kind: 'header' | 'query' | 'cookie';
  /** Of a header in lower case. */
  readonly name: string;
}

export interface Forwarding {
  /** Lower-case name of the request header that tells the upstream the client; empty for none. */
  readonly clientHeader: string;
  readonly hidesKeys: boolean;
}

/** What a route says in place of the filter; null for what it leaves to that. */
export interface KeySettings {
  readonly clients: Clients | null;
  readonly sources: readonly KeySource[] | null;
  readonly forwarding: Forwarding | null;
}

export interface RouteKeySettings extends KeySettings {
  /** Null for all. */
  readonly allowed: ReadonlySet<string> | null;
}

/** Names behind `http.<stat_prefix>.`. */
export interface ApiKeyAuthCounters {
  readonly allowed: string;
  readonly unauthorized: string;
  readonly forbidden: string;
}

/** Of the filter itself. */
export interface ApiKeyAuthSettings extends KeySettings {
  readonly counters: ApiKeyAuthCounters;
}
