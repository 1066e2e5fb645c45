// How resources of each type are asked for: the names of the type and of its service in both generations of the interface. The one
// place that knows them.

import type { Generation } from '../proto/message-names.ts';
import { protoSchema } from '../proto/root.ts';

export interface DiscoveryService {
  /** Full name of the message, as the schema has it. */
  readonly typeName: string;
  /** What names a resource in its message. */
  readonly nameField: string;
  readonly typeUrl: Readonly<Record<Generation, string>>;
  /** `/package.Service/`, and its methods. */
  readonly path: Readonly<Record<Generation, string>>;
  readonly streamMethod: string;
  readonly deltaMethod: string;
  /** For one question by HTTP; empty where there is none. */
  readonly restPath: Readonly<Record<Generation, string>>;
  /** With its dot: of what is counted of streams for this type alone. */
  readonly statPrefix: string;
  /** An answer says all there is, and an empty list of names asks for all. */
  readonly isWildcard: boolean;
  /** Resources come by longer names than they have themselves. */
  readonly hasLongNames: boolean;
}

const PREFIX = 'type.googleapis.com/';
/** By name in the place of which there is nothing. */
const NONE = '';

function service(
  typeName: string,
  types: readonly [v3: string, v2: string],
  services: readonly [v3: string, v2: string],
  method: string,
  restName: string,
  statPrefix: string,
  {
    nameField = 'name',
    isWildcard = false,
    hasLongNames = false,
  }: Partial<Pick<DiscoveryService, 'nameField' | 'isWildcard' | 'hasLongNames'>> = {},
): DiscoveryService {
  return {
    typeName,
    nameField,
    typeUrl: { v3: PREFIX + types[0], v2: types[1] === NONE ? NONE : PREFIX + types[1] },
    path: { v3: `/${services[0]}/`, v2: services[1] === NONE ? NONE : `/${services[1]}/` },
    streamMethod: `Stream${method}`,
    deltaMethod: `Delta${method}`,
    restPath: {
      v3: restName === NONE ? NONE : `/v3/discovery:${restName}`,
      v2: restName === NONE || types[1] === NONE ? NONE : `/v2/discovery:${restName}`,
    },
    statPrefix,
    isWildcard,
    hasLongNames,
  };
}

/** In the order in which a new stream asks: what others lead to comes first. */
export const DISCOVERY_SERVICES: readonly DiscoveryService[] = [
  service(
    'proxy.config.cluster.v3.Cluster',
    ['envoy.config.cluster.v3.Cluster', 'envoy.api.v2.Cluster'],
    ['envoy.service.cluster.v3.ClusterDiscoveryService', 'envoy.api.v2.ClusterDiscoveryService'],
    'Clusters',
    'clusters',
    'cluster_manager.cds.',
    { isWildcard: true },
  ),
  service(
    'proxy.config.endpoint.v3.ClusterLoadAssignment',
    ['envoy.config.endpoint.v3.ClusterLoadAssignment', 'envoy.api.v2.ClusterLoadAssignment'],
    ['envoy.service.endpoint.v3.EndpointDiscoveryService', 'envoy.api.v2.EndpointDiscoveryService'],
    'Endpoints',
    'endpoints',
    'eds.',
    { nameField: 'cluster_name' },
  ),
  service(
    'proxy.config.listener.v3.Listener',
    ['envoy.config.listener.v3.Listener', 'envoy.api.v2.Listener'],
    ['envoy.service.listener.v3.ListenerDiscoveryService', 'envoy.api.v2.ListenerDiscoveryService'],
    'Listeners',
    'listeners',
    'listener_manager.lds.',
    { isWildcard: true },
  ),
  service(
    'proxy.config.route.v3.RouteConfiguration',
    ['envoy.config.route.v3.RouteConfiguration', 'envoy.api.v2.RouteConfiguration'],
    ['envoy.service.route.v3.RouteDiscoveryService', 'envoy.api.v2.RouteDiscoveryService'],
    'Routes',
    'routes',
    'rds.',
  ),
  service(
    'proxy.config.route.v3.ScopedRouteConfiguration',
    ['envoy.config.route.v3.ScopedRouteConfiguration', 'envoy.api.v2.ScopedRouteConfiguration'],
    ['envoy.service.route.v3.ScopedRoutesDiscoveryService', 'envoy.api.v2.ScopedRoutesDiscoveryService'],
    'ScopedRoutes',
    'scoped-routes',
    'srds.',
    { isWildcard: true },
  ),
  service(
    'proxy.config.route.v3.VirtualHost',
    ['envoy.config.route.v3.VirtualHost', 'envoy.api.v2.route.VirtualHost'],
    ['envoy.service.route.v3.VirtualHostDiscoveryService', 'envoy.api.v2.VirtualHostDiscoveryService'],
    'VirtualHosts',
    NONE,
    'vhds.',
    { hasLongNames: true },
  ),
  service(
    'proxy.extensions.transport_sockets.tls.v3.Secret',
    ['envoy.extensions.transport_sockets.tls.v3.Secret', 'envoy.api.v2.auth.Secret'],
    ['envoy.service.secret.v3.SecretDiscoveryService', 'envoy.service.discovery.v2.SecretDiscoveryService'],
    'Secrets',
    'secrets',
    'sds.',
  ),
  service(
    'proxy.service.runtime.v3.Runtime',
    ['envoy.service.runtime.v3.Runtime', 'envoy.service.discovery.v2.Runtime'],
    ['envoy.service.runtime.v3.RuntimeDiscoveryService', 'envoy.service.discovery.v2.RuntimeDiscoveryService'],
    'Runtime',
    'runtime',
    'runtime.',
  ),
  service(
    'proxy.config.core.v3.TypedExtensionConfig',
    ['envoy.config.core.v3.TypedExtensionConfig', NONE],
    ['envoy.service.extension.v3.ExtensionConfigDiscoveryService', NONE],
    'ExtensionConfigs',
    'extension_configs',
    'extension_config_discovery.',
  ),
];

const BY_TYPE = new Map(DISCOVERY_SERVICES.map((row) => [row.typeName, row]));

/** Of a message's full name; @throws for one that nobody can ask for, which is a bug. */
export function discoveryService(typeName: string): DiscoveryService {
  const row = BY_TYPE.get(typeName);
  if (row === undefined) throw new Error(`nobody can be asked for ${typeName}`);
  return row;
}

/** @param typeUrl of either generation. */
export function discoveryServiceOf(typeUrl: string): DiscoveryService | undefined {
  const type = protoSchema().find(typeUrl)?.type;
  return type && BY_TYPE.get(type.fullName.slice(1));
}

/** Of the stream for all types. */
export const AGGREGATED_SERVICE = {
  path: {
    v3: '/envoy.service.discovery.v3.AggregatedDiscoveryService/',
    v2: '/envoy.service.discovery.v2.AggregatedDiscoveryService/',
  },
  streamMethod: 'StreamAggregatedResources',
  deltaMethod: 'DeltaAggregatedResources',
} as const;
