// What the basic_auth filter and its configuration share.

/** SHA-1 digests of passwords in base64, by the names of users; both as byte text. */
export type Users = ReadonlyMap<string, string>;

export interface BasicAuthCounters {
  readonly allowed: string;
  readonly denied: string;
}

/** Of the filter itself; routes have users of their own. */
export interface BasicAuthSettings {
  readonly users: Users;
  /** Lower-case name of the request header that tells the upstream the user's name; empty for none. */
  readonly userHeader: string;
  /** Lower-case name of the request header that brings name and password. */
  readonly credentialsHeader: string;
  /** Names behind `http.<stat_prefix>.`. */
  readonly counters: BasicAuthCounters;
}
