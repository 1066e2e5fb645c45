// Under which of its cluster's transport socket matches a host comes, by the metadata of its endpoint. Asked by main, which
// counts it, and by workers, which connect.

import { comparable } from '../base/subset-key.ts';
import type { TransportSocketMatch } from './cluster.ts';
import type { Metadata } from './metadata.ts';

/** Namespaces of metadata that matches go by, the canonical one first; the first that is there counts alone. */
const NAMESPACES = ['proxy.transport_socket_match', 'envoy.transport_socket_match'] as const;

type Criteria = TransportSocketMatch['criteria'];

/** @returns the place of the first match that takes a host with this metadata; -1 for none. */
export function socketMatchOf(
  matches: readonly { readonly criteria: Criteria }[],
  metadata: Metadata | undefined,
): number {
  return matches.findIndex(({ criteria }) => takes(criteria, metadata));
}

function takes(criteria: Criteria, metadata: Metadata | undefined): boolean {
  if (criteria.length === 0) return true;
  const namespace = NAMESPACES.find((name) => metadata !== undefined && Object.hasOwn(metadata, name));
  if (namespace === undefined) return false;
  const values = metadata![namespace]!;
  return criteria.every(([key, value]) => Object.hasOwn(values, key) && comparable(values[key]!) === value);
}
