// What the rbac filter and its configuration share.

import type { CidrRange, HeaderMatch, MetadataMatch, StringMatch } from '../../../snapshot/index.ts';

export interface MetadataRule extends MetadataMatch {
  readonly kind: 'metadata';
  readonly source: 'DYNAMIC' | 'ROUTE';
}

/** Which address of the connection: the peer's, that behind a PROXY protocol, the client's by trusted hops, or the own one. */
export type AddressOf = 'direct-remote' | 'source' | 'remote' | 'local';

/** A permission or a principal: what must hold of a request. */
export type AccessRule =
  | { readonly kind: 'any' }
  | { readonly kind: 'all-of' | 'any-of'; readonly rules: readonly AccessRule[] }
  | { readonly kind: 'not'; readonly rule: AccessRule }
  | { readonly kind: 'header'; readonly match: HeaderMatch }
  /** Of the path without its query. */
  | { readonly kind: 'path'; readonly match: StringMatch }
  | { readonly kind: 'address'; readonly of: AddressOf; readonly range: CidrRange }
  /** Of this side, from `start` up to but not including `end`. */
  | { readonly kind: 'port'; readonly start: number; readonly end: number }
  | { readonly kind: 'server-name'; readonly match: StringMatch }
  /** The client has a verified certificate; null for any. */
  | { readonly kind: 'authenticated'; readonly name: StringMatch | null }
  | MetadataRule;

export interface AccessPolicy {
  readonly name: string;
  /** One of them. */
  readonly permissions: readonly AccessRule[];
  /** And one of them. */
  readonly principals: readonly AccessRule[];
}

export interface AccessRules {
  readonly action: 'allow' | 'deny' | 'log';
  /** By their names. */
  readonly policies: readonly AccessPolicy[];
}

/** Of the filter itself, or what one level of a route says instead. */
export interface RbacSettings {
  /** Null: everybody may do everything. */
  readonly rules: AccessRules | null;
  /** Judged and counted, no more. */
  readonly shadowRules: AccessRules | null;
  /** In front of the keys of metadata. */
  readonly rulesPrefix: string;
  readonly shadowPrefix: string;
  /** Counts each policy by itself. */
  readonly countsPolicies: boolean;
}

/** Names behind `http.<stat_prefix>.`. */
export interface RbacCounters {
  readonly allowed: string;
  readonly denied: string;
  readonly shadowAllowed: string;
  readonly shadowDenied: string;
}

export interface RbacFilterSettings {
  readonly own: RbacSettings;
  readonly counters: RbacCounters;
  /** In front of a policy's name and of what has been decided by it. */
  readonly policyScope: string;
  readonly shadowPolicyScope: string;
}
