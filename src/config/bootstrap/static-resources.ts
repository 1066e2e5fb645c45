// Clusters and listeners of the bootstrap. Clusters come first: routes may only name those that exist.

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
import { CLUSTERS_PATH, checkListenerAddresses, LISTENERS_PATH } from './bootstrap-checks.ts';
import type { LoadBootstrapInput, NodeSettings } from './bootstrap-config.ts';

const SECRETS_PATH = 'static_resources.secrets';

export interface StaticResources {
  readonly clusters: readonly ClusterSettings[];
  readonly listeners: readonly ListenerSettings[];
}

/** Resources with faults are left out or incomplete; then there is at least one error among the faults. */
export function convertStaticResources(
  bootstrap: Bootstrap,
  input: Pick<LoadBootstrapInput, 'environment' | 'extensions' | 'findLogPathFault'>,
  node: NodeSettings,
  faults: FaultSink,
): StaticResources {
  const clusters = bootstrap.static_resources?.clusters ?? [];
  const listeners = bootstrap.static_resources?.listeners ?? [];
  const names = new ClusterNames(clusters.map(({ name }) => name));
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
  const { cluster: localCluster, id: localNode } = node;
  const dnsCaches = new DnsCacheNames();
  const local = { localCluster, localNode };
  const common = { faults, secrets, clusters: names, defaultResolver, defaultSource, dnsCaches };
  const found = { ...common, ...local, ...given };
  const conversion = { ...found, tracing: tracingContext(bootstrap, node, extensions ?? NO_EXTENSIONS, found) };
  const clusterSettings = clusters.map((cluster, index) =>
    convertCluster(cluster, itemPath(CLUSTERS_PATH, index), conversion),
  );
  const listenerSettings = listeners.map((listener, index) =>
    convertListener(listener, itemPath(LISTENERS_PATH, index), conversion),
  );
  checkListenerAddresses(listeners, listenerSettings, faults);
  return { clusters: clusterSettings, listeners: listenerSettings.filter((settings) => settings !== undefined) };
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
