// What a Cluster message says of hosts that are those of other clusters (cluster type clusters.aggregate) → settings.

import type { Conversion } from './conversion.ts';
import { AGGREGATE_TYPE, aggregateOf } from './discovery-type.ts';
import type { FaultSink } from './fault-sink.ts';
import type { Cluster } from './messages.ts';

/** Whoever has the hosts says these of their connections and their health. */
const FIELDS_OF_MEMBERS = [
  'health_checks',
  'outlier_detection',
  'transport_socket',
  'tls_context',
] as const satisfies readonly (keyof Cluster)[];

/** @returns nothing for clusters of other types, to be spread into settings. */
export function convertAggregate(
  cluster: Cluster,
  at: string,
  { faults, clusters }: Conversion,
): { readonly aggregate?: readonly string[] } {
  const config = aggregateOf(cluster);
  if (config === undefined) return {};
  checkFields(cluster, at, faults);
  const listAt = `${at}.cluster_type.typed_config.clusters`;
  const seen = new Map<string, number>();
  for (const [index, name] of config.clusters.entries()) {
    const earlier = seen.get(name);
    if (name === '') faults.error(`${listAt}[${index}]`, 'must not be empty');
    else if (name === cluster.name)
      faults.error(`${listAt}[${index}]`, 'an aggregate cluster cannot be one of its own');
    else if (earlier !== undefined) faults.warning(`${listAt}[${index}]`, `ignored: is ${listAt}[${earlier}] already`);
    else clusters.checkReference(name, `${listAt}[${index}]`, faults);
    if (earlier === undefined) seen.set(name, index);
  }
  return { aggregate: [...seen.keys()] };
}

function checkFields(cluster: Cluster, at: string, faults: FaultSink): void {
  const reason = `type ${AGGREGATE_TYPE} has the hosts of its clusters`;
  if (cluster.load_assignment !== null) faults.error(`${at}.load_assignment`, reason);
  if (cluster.hosts.length > 0) faults.error(`${at}.hosts`, reason);
  for (const field of FIELDS_OF_MEMBERS) {
    const value = cluster[field];
    if (value === null || (Array.isArray(value) && value.length === 0)) continue;
    faults.warning(`${at}.${field}`, `has no effect on type ${AGGREGATE_TYPE}: each of its clusters has its own`);
  }
}
