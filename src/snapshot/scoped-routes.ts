// Several route tables under one connection manager: a key made of a request's headers says which scope it belongs to, and a scope which
// table it goes by. Connection managers refer to the set of their scopes by an id; which scopes there are changes under them.

import type { ConfigSourceSettings } from './config-source.ts';
import type { DiscoveredRoutes } from './published-routes.ts';
import type { RouteTableSnapshot } from './route-table.ts';

/** One part of a key: an element of a header's first value. */
export interface ScopeKeyPart {
  /** In lower case. */
  readonly header: string;
  /** Empty where the whole value is the only element. */
  readonly elementSeparator: string;
  readonly take: TakenElement;
}

export type TakenElement =
  | { readonly kind: 'index'; readonly index: number }
  /** What follows the first separator, of the first element that has this key before it. */
  | { readonly kind: 'key'; readonly key: string; readonly separator: string };

export interface ScopeSettings {
  readonly name: string;
  readonly key: readonly string[];
  readonly routes: RouteTableSnapshot | DiscoveredTableName;
  /** The table is asked for when a request wants it. */
  readonly isOnDemand: boolean;
}

/** A table that comes by discovery. */
export interface DiscoveredTableName {
  readonly tableName: string;
}

export interface ScopedRoutesSettings extends Pick<DiscoveredRoutes, 'filters' | 'isOutbound'> {
  readonly name: string;
  readonly keyParts: readonly ScopeKeyPart[];
  /** Where the tables of scopes come from that only name theirs; undefined where all scopes have their own. */
  readonly routeSource: ConfigSourceSettings | undefined;
  readonly scopes:
    | { readonly kind: 'fixed'; readonly scopes: readonly ScopeSettings[] }
    | { readonly kind: 'discovered'; readonly source: ConfigSourceSettings };
}

/** What changes about a set of scopes; the first of an id makes it. */
export interface PublishedScopes {
  readonly id: number;
  readonly put: readonly PublishedScope[];
  /** Keys of those that there are no longer. */
  readonly removed: readonly (readonly string[])[];
}

export interface PublishedScope {
  /** One of before with this key goes. */
  readonly key: readonly string[];
  /** Null for one that is asked for when a request wants it. */
  readonly routeTableId: number | null;
}
