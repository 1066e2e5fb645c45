// What the configuration says of clusters, hosts, routes and listeners for whoever cares: formats name values in it by
// namespace and key.

import type { JsonObject } from '../base/json.ts';

/** By namespace. */
export type Metadata = Readonly<Record<string, JsonObject>>;

/** Whose metadata a format asks for; DYNAMIC is what filters say of a request. */
export type MetadataSource =
  | 'CLUSTER'
  | 'DYNAMIC'
  | 'LISTENER'
  | 'LISTENER_FILTER_CHAIN'
  | 'ROUTE'
  | 'UPSTREAM_HOST'
  | 'VIRTUAL_HOST';
