// Rules of access as configurations say them: who may do what, of requests and of connections.

import type {
  CidrRange,
  FilterStateMatch,
  HeaderMatch,
  MatchTree,
  MetadataMatch,
  StringMatch,
} from '../../snapshot/index.ts';

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
  /** What filters have said of it. */
  | { readonly kind: 'filter-state'; readonly match: FilterStateMatch }
  | MetadataRule;

export interface AccessPolicy {
  readonly name: string;
  /** One of them. */
  readonly permissions: readonly AccessRule[];
  /** And one of them. */
  readonly principals: readonly AccessRule[];
}

export type AccessAction = 'allow' | 'deny' | 'log';

/** Policies, the first of which that fits is the one that counts. */
export interface AccessPolicies {
  readonly kind: 'policies';
  /** What it means that one fits. */
  readonly action: AccessAction;
  /** By their names. */
  readonly policies: readonly AccessPolicy[];
}

/** Where a decision tree leads. */
export interface AccessVerdict {
  readonly name: string;
  readonly action: AccessAction;
}

/** A decision tree; who leads nowhere is denied. */
export interface AccessTree {
  readonly kind: 'tree';
  readonly tree: MatchTree<AccessVerdict>;
}

export type AccessRules = AccessPolicies | AccessTree;
