// Clusters and listeners of the bootstrap. Clusters come first: routes may only name those that exist.

import { cycleThrough } from '../../base/cycle.ts';
import { givesNoHosts, namesMembers } from '../../base/named-members.ts';
import type { ClusterSettings, ListenerSettings } from '../../snapshot/index.ts';
import type { Bootstrap } from '../proto/generated/messages.ts';
import { type ConvertedBindConfig, convertBindConfig } from '../resources/bind-config.ts';
import { convertCluster } from '../resources/cluster.ts';
import { ClusterNames, type Conversion } from '../resources/conversion.ts';
import { DnsCacheNames } from '../resources/dns-cache-names.ts';
import { convertDefaultResolver } from '../resources/dns-discovery.ts';
import { type ExtensionManifests, NO_EXTENSIONS } from '../resources/extension-manifests.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { convertListener } from '../resources/listener.ts';
import { staticSecrets } from '../resources/tls/secrets.ts';
import { convertTracer, type TracingContext } from '../resources/tracing.ts';
import { itemPath } from '../source/field-path.ts';
import { quote } from '../source/node.ts';
import { CLUSTERS_PATH, checkListenerAddresses, LISTENERS_PATH } from './bootstrap-checks.ts';
import type { LoadBootstrapInput, NodeSettings } from './bootstrap-config.ts';
import { discoversClusters } from './dynamic-resources.ts';

const SECRETS_PATH = 'static_resources.secrets';

export interface StaticResources {
  readonly clusters: readonly ClusterSettings[];
  readonly listeners: readonly ListenerSettings[];
}

/** Resources with faults are left out or incomplete; then there is at least one error among the faults. */
export function convertStaticResources(bootstrap: Bootstrap, conversion: Conversion): StaticResources {
  const clusters = bootstrap.static_resources?.clusters ?? [];
  const listeners = bootstrap.static_resources?.listeners ?? [];
  const clusterSettings = clusters.map((cluster, index) =>
    convertCluster(cluster, itemPath(CLUSTERS_PATH, index), conversion),
  );
  checkAggregates(clusterSettings, conversion.faults);
  const listenerSettings = listeners.map((listener, index) =>
    convertListener(listener, itemPath(LISTENERS_PATH, index), conversion),
  );
  checkListenerAddresses(listeners, listenerSettings, conversion.faults);
  return { clusters: clusterSettings, listeners: listenerSettings.filter((settings) => settings !== undefined) };
}

/** No aggregate cluster is among its own clusters, however far down, and each of its clusters has hosts to give. */
function checkAggregates(clusters: readonly ClusterSettings[], faults: FaultSink): void {
  const byName = new Map(clusters.map((cluster) => [cluster.name, cluster]));
  const lists = new Map(clusters.flatMap(({ name, aggregate }) => (aggregate ? [[name, aggregate] as const] : [])));
  for (const [index, { name, aggregate }] of clusters.entries()) {
    if (aggregate === undefined) continue;
    const at = `${itemPath(CLUSTERS_PATH, index)}.cluster_type.typed_config.clusters`;
    for (const own of aggregate) {
      const cluster = byName.get(own);
      if (cluster !== undefined && namesMembers(cluster)) faults.warning(at, givesNoHosts(own));
    }
    // One that lists itself has been told so.
    const cycle = aggregate.includes(name) ? undefined : cycleThrough(name, lists);
    if (cycle === undefined) continue;
    faults.error(at, `leads back to the cluster itself: ${cycle.map(quote).join(', ')}`);
  }
}

/** What the bootstrap says for all of its resources, and for those that discovery brings later. */
export function bootstrapConversion(
  bootstrap: Bootstrap,
  input: Pick<LoadBootstrapInput, 'environment' | 'extensions' | 'findLogPathFault'>,
  node: NodeSettings,
  faults: FaultSink,
): Conversion {
  const names = (bootstrap.static_resources?.clusters ?? []).map(({ name }) => name);
  const clusters = new ClusterNames(names, { areComplete: !discoversClusters(bootstrap) });
  const defaultResolver = convertDefaultResolver(bootstrap, faults);
  const { environment, extensions, findLogPathFault } = input;
  const { rate_limit_service: rateLimitService } = bootstrap;
  const given = {
    environment,
    httpFilters: extensions?.httpFilters,
    networkFilters: extensions?.networkFilters,
    accessLoggers: extensions?.accessLoggers,
    findLogPathFault,
    rateLimitService,
  };
  const defaultSource = convertDefaultSource(bootstrap, faults);
  const secrets = staticSecrets(bootstrap.static_resources?.secrets ?? [], SECRETS_PATH, faults);
  const { cluster: localCluster, id: localNode, metadata: nodeMetadata } = node;
  const dnsCaches = new DnsCacheNames();
  const local = { localCluster, localNode, nodeMetadata };
  const common = { faults, secrets, clusters, defaultResolver, defaultSource, dnsCaches };
  const found = { ...common, ...local, ...given };
  return { ...found, tracing: tracingContext(bootstrap, node, extensions ?? NO_EXTENSIONS, found) };
}

function tracingContext(
  { tracing }: Bootstrap,
  { id, cluster, locality }: NodeSettings,
  { tracers: manifests }: ExtensionManifests,
  conversion: Conversion,
): TracingContext {
  const context = { manifests, node: { id, cluster, zone: locality.zone }, defaultTracer: null };
  const message = tracing?.http ?? null;
  if (message === null) return context;
  return { ...context, defaultTracer: convertTracer(message, 'tracing.http', { ...conversion, tracing: context }) };
}

function convertDefaultSource(
  { cluster_manager: manager }: Bootstrap,
  faults: FaultSink,
): ConvertedBindConfig | undefined {
  const bindConfig = manager?.upstream_bind_config ?? null;
  return bindConfig === null
    ? undefined
    : convertBindConfig(bindConfig, 'cluster_manager.upstream_bind_config', faults);
}
