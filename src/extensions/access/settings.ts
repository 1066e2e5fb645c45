// Rules of access as configurations say them: who may do what, of requests and of connections.

import type { CidrRange, HeaderMatch, MetadataMatch, StringMatch } from '../../snapshot/index.ts';

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
