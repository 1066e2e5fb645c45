// Secrets that secure the way to the management server which is to tell them: none of the connections over which they would come begins
// before they are there.

import { cycleThrough } from '../../base/cycle.ts';
import type { ClusterSettings, ConfigSourceSettings } from '../../snapshot/index.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { fieldPath, itemPath } from '../source/field-path.ts';
import { quote } from '../source/node.ts';
import { CLUSTERS_PATH } from './bootstrap-checks.ts';
import type { DynamicResourcesSettings } from './dynamic-resources.ts';

interface NeededSecret {
  readonly name: string;
  /** Clusters that any of which may tell it. */
  readonly tellers: readonly string[];
}

/** Warns of each such secret, by its name and that of the cluster: whatever needs neither is served all the same. */
export function checkOwnSecrets(
  clusters: readonly ClusterSettings[],
  { aggregated }: Pick<DynamicResourcesSettings, 'aggregated'>,
  faults: FaultSink,
): void {
  const needed = new Map(
    clusters.map((cluster) => [cluster.name, secretsOf(cluster).map(({ name, source }) => needOf(name, source))]),
  );
  const waysOf = [...needed].map(([name, secrets]) => [name, secrets.flatMap(({ tellers }) => tellers)] as const);
  const ways = new Map(waysOf.filter(([, tellers]) => tellers.length > 0));
  for (const [index, { name: cluster }] of clusters.entries()) {
    for (const { name, tellers } of needed.get(cluster) ?? []) {
      const by = tellers.find((teller) => teller === cluster || cycleThrough(teller, ways)?.includes(cluster));
      if (by === undefined) continue;
      const way = by === cluster ? '' : ` by way of cluster ${quote(by)}`;
      const others = tellers.length > 1 ? ', unless another server tells it' : '';
      const text =
        `secret ${quote(name)} is told over connections of cluster ${quote(cluster)}${way}, which wait for it: it never comes` +
        `${others}; have it in a file (path_config_source) or in the context itself`;
      faults.warning(fieldPath(itemPath(CLUSTERS_PATH, index), 'transport_socket'), text);
    }
  }

  function needOf(name: string, { origin }: ConfigSourceSettings): NeededSecret {
    switch (origin.kind) {
      case 'file':
        return { name, tellers: [] };
      case 'rest':
        return { name, tellers: [origin.cluster] };
      case 'grpc':
        return { name, tellers: clustersOf(origin.servers) };
      case 'ads':
        return { name, tellers: clustersOf(aggregated?.servers ?? []) };
    }
  }
}

/** Each once, of whichever connections. */
function secretsOf({ tls, transportSocketMatches = [] }: ClusterSettings) {
  const secrets = [tls, ...transportSocketMatches.map((match) => match.tls)].flatMap(
    (context) => context?.secrets ?? [],
  );
  return [...new Map(secrets.map((secret) => [secret.name, secret])).values()];
}

function clustersOf(servers: readonly { readonly cluster: string; readonly target?: object }[]): readonly string[] {
  return servers.flatMap(({ cluster, target }) => (target === undefined ? cluster : []));
}
