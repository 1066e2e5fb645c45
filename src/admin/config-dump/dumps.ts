// The top-level dumps, in the order in which they are shown: by their names in the registry of other proxies, which readers of
// dumps know.

import { ClientResourceStatus, encodeMessage, headOf, partsOf, protoSchema, textOf } from '../../config/index.ts';
import type { ConfigView, ResourcesView, ResourceView, RoutesView, ScopesView, SecretView } from '../views/index.ts';
import {
  adminType,
  anyOf,
  type Dump,
  type DumpItem,
  errorState,
  RESOURCE_TYPES,
  resourceType,
  timestamp,
} from './dump.ts';
import { endpointsDump } from './endpoints-dump.ts';

type DumpedResource = 'cluster' | 'listener' | 'route_config' | 'secret' | 'ecds_filter';

const HTTP_CONNECTION_MANAGER = 'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const SCOPED_ROUTES = 'proxy.extensions.filters.network.http_connection_manager.v3.ScopedRoutes';
const INLINE_SCOPES = ['scoped_route_configurations_list', 'scoped_route_configurations'];

/** @param showsEndpoints adds the members of clusters. */
export function configDumps(config: ConfigView, showsEndpoints: boolean): readonly Dump[] {
  const listeners = config.listeners();
  const routes = routeItems(listeners.resources);
  return [
    bootstrapDump(config),
    clustersDump(config.clusters()),
    ...filtersDump(config.filters()),
    ...(showsEndpoints ? endpointsDump(config.endpoints()) : []),
    listenersDump(listeners),
    // Both exist since the first listener that speaks HTTP.
    ...(routes === undefined
      ? []
      : [scopedRoutesDump(routes.scopes, config.scopes()), routesDump(routes.tables, config.routes())]),
    secretsDump(config),
  ];
}

function encoded(typeName: string, message: object): Uint8Array {
  return encodeMessage(adminType(typeName), message);
}

function bootstrapDump({ bootstrap }: ConfigView): Dump {
  const type = adminType('BootstrapConfigDump');
  const { message, updatedMs } = bootstrap;
  const lastUpdated = encodeMessage(type, { last_updated: timestamp(updatedMs) });
  return { type, head: Buffer.concat([headOf(type, 'bootstrap', message.length), message, lastUpdated]), lists: [] };
}

function clustersDump({ version, resources }: ResourcesView): Dump {
  const failures = new Map(resources.filter(({ state }) => state === 'failed').map((failed) => [failed.name, failed]));
  const fixed = resources.filter(
    ({ addedViaApi, state }) => !addedViaApi && state !== 'draining' && state !== 'failed',
  );
  const active = resources.filter(({ addedViaApi, state }) => addedViaApi && state === 'active');
  const warming = resources.filter(({ addedViaApi, state }) => addedViaApi && state === 'warming');
  const known = new Set([...active, ...warming].map(({ name }) => name));
  const neverHad = [...failures.values()].filter(({ name }) => !known.has(name));
  const item = (resource: ResourceView): DumpItem => ({
    name: resource.name,
    message: () => encoded('ClustersConfigDump.DynamicCluster', dynamicCluster(resource, failures.get(resource.name))),
  });
  return {
    type: adminType('ClustersConfigDump'),
    head: encoded('ClustersConfigDump', { version_info: version }),
    lists: [
      {
        field: 'static_clusters',
        items: lazily(fixed, ({ name, message, updatedMs }) => ({
          name,
          message: () =>
            encoded('ClustersConfigDump.StaticCluster', {
              cluster: anyOf(RESOURCE_TYPES.cluster, message),
              last_updated: timestamp(updatedMs),
            }),
        })),
      },
      { field: 'dynamic_active_clusters', items: lazily(active, item) },
      { field: 'dynamic_warming_clusters', items: lazily([...warming, ...neverHad], item) },
    ],
  };
}

function dynamicCluster(resource: ResourceView, failure: ResourceView | undefined): object {
  return {
    ...(resource.state === 'failed' ? {} : stateOf(resource, 'cluster')),
    ...(failure === undefined ? {} : { error_state: errorState(failure, 'cluster') }),
  };
}

function stateOf(
  { version, message, updatedMs }: Pick<ResourceView, 'version' | 'message' | 'updatedMs'>,
  field: DumpedResource,
): object {
  return {
    version_info: version,
    [field]: anyOf(RESOURCE_TYPES[field], message),
    last_updated: timestamp(updatedMs),
  };
}

function listenersDump({ version, resources }: ResourcesView): Dump {
  const fixed = resources.filter(({ addedViaApi }) => !addedViaApi);
  const byName = Map.groupBy(
    resources.filter(({ addedViaApi }) => addedViaApi),
    ({ name }) => name,
  );
  return {
    type: adminType('ListenersConfigDump'),
    head: encoded('ListenersConfigDump', { version_info: version }),
    lists: [
      {
        field: 'static_listeners',
        items: lazily(fixed, ({ name, message, updatedMs }) => ({
          name,
          message: () =>
            encoded('ListenersConfigDump.StaticListener', {
              listener: anyOf(RESOURCE_TYPES.listener, message),
              last_updated: timestamp(updatedMs),
            }),
        })),
      },
      {
        field: 'dynamic_listeners',
        items: lazily([...byName], ([name, states]) => ({
          name,
          message: () => encoded('ListenersConfigDump.DynamicListener', dynamicListener(name, states)),
        })),
      },
    ],
  };
}

function dynamicListener(name: string, states: readonly ResourceView[]): object {
  const fields: Record<string, object> = {};
  for (const resource of states) {
    if (resource.state === 'failed') fields.error_state = errorState(resource, 'listener');
    else fields[`${resource.state}_state`] = stateOf(resource, 'listener');
  }
  return { name, ...fields };
}

/** What stands in listeners. */
interface ListedRoutes {
  readonly tables: readonly DumpItem[];
  readonly scopes: readonly DumpItem[];
}

/** @returns undefined when no listener speaks HTTP. */
function routeItems(listeners: readonly ResourceView[]): ListedRoutes | undefined {
  const schema = protoSchema();
  const listenerType = resourceType('listener')!;
  const routeType = resourceType('route_config')!;
  const managerType = schema.messageType(HTTP_CONNECTION_MANAGER);
  const tables: DumpItem[] = [];
  const scopes: DumpItem[] = [];
  let isHttp = false;
  for (const { message, state, updatedMs } of listeners) {
    if (state === 'failed') continue;
    for (const chain of ['filter_chains', 'default_filter_chain']) {
      const path = [chain, 'filters', 'typed_config', HTTP_CONNECTION_MANAGER];
      for (const manager of partsOf(schema, listenerType, message, path)) {
        isHttp = true;
        for (const route of partsOf(schema, managerType, manager, ['route_config'])) {
          const name = textOf(routeType, route, 'name');
          const item = { route_config: anyOf(RESOURCE_TYPES.route_config, route), last_updated: timestamp(updatedMs) };
          tables.push({ name, message: () => encoded('RoutesConfigDump.StaticRouteConfig', item) });
        }
        for (const scoped of partsOf(schema, managerType, manager, ['scoped_routes'])) {
          scopes.push(...inlineScopes(scoped, updatedMs));
        }
      }
    }
  }
  return isHttp ? { tables, scopes } : undefined;
}

/** Nothing where they come by discovery. */
function* inlineScopes(scoped: Uint8Array, updatedMs: number): Generator<DumpItem> {
  const schema = protoSchema();
  const type = schema.messageType(SCOPED_ROUTES);
  const messages = [...partsOf(schema, type, scoped, INLINE_SCOPES)];
  if (messages.length === 0) return;
  const name = textOf(type, scoped, 'name');
  const item = { name, scoped_route_configs: messages.map(scopeAny), last_updated: timestamp(updatedMs) };
  yield { name, message: () => encoded('ScopedRoutesConfigDump.InlineScopedRouteConfigs', item) };
}

function scopeAny(message: Uint8Array): object {
  return anyOf(RESOURCE_TYPES.scoped_route_configs, message);
}

function routesDump(items: readonly DumpItem[], discovered: readonly RoutesView[]): Dump {
  return {
    type: adminType('RoutesConfigDump'),
    head: new Uint8Array(0),
    lists: [
      { field: 'static_route_configs', items },
      {
        field: 'dynamic_route_configs',
        items: lazily(discovered, (routes) => ({
          name: routes.name,
          message: () => encoded('RoutesConfigDump.DynamicRouteConfig', discoveredState(routes, 'route_config')),
        })),
      },
    ],
  };
}

/** There where there are any. */
function filtersDump(discovered: readonly RoutesView[]): readonly Dump[] {
  if (discovered.length === 0) return [];
  const items = lazily(discovered, (filter) => ({
    name: filter.name,
    message: () => encoded('EcdsConfigDump.EcdsFilterConfig', discoveredState(filter, 'ecds_filter')),
  }));
  return [{ type: adminType('EcdsConfigDump'), head: new Uint8Array(0), lists: [{ field: 'ecds_filters', items }] }];
}

function discoveredState({ accepted, refused }: RoutesView, field: DumpedResource): object {
  return {
    ...(accepted === undefined ? {} : stateOf(accepted, field)),
    ...(refused === undefined ? {} : { error_state: errorState(refused, field) }),
    client_status: refused === undefined ? ClientResourceStatus.ACKED : ClientResourceStatus.NACKED,
  };
}

function scopedRoutesDump(inline: readonly DumpItem[], discovered: readonly ScopesView[]): Dump {
  return {
    type: adminType('ScopedRoutesConfigDump'),
    head: new Uint8Array(0),
    lists: [
      { field: 'inline_scoped_route_configs', items: inline },
      {
        field: 'dynamic_scoped_route_configs',
        items: lazily(discovered, (scopes) => ({
          name: scopes.name,
          message: () => encoded('ScopedRoutesConfigDump.DynamicScopedRouteConfigs', dynamicScopes(scopes)),
        })),
      },
    ],
  };
}

function dynamicScopes({ name, version, updatedMs, messages, refused }: ScopesView): object {
  const status = updatedMs === 0 ? ClientResourceStatus.REQUESTED : ClientResourceStatus.ACKED;
  return {
    name,
    version_info: version,
    scoped_route_configs: messages.map(scopeAny),
    ...(updatedMs === 0 ? {} : { last_updated: timestamp(updatedMs) }),
    ...(refused === undefined ? {} : { error_state: errorState(refused, 'scoped_route_configs') }),
    client_status: refused === undefined ? status : ClientResourceStatus.NACKED,
  };
}

/** As others call what has not come. */
const UNINITIALIZED = 'uninitialized';

function secretsDump(config: ConfigView): Dump {
  const { secrets, updatedMs } = config.bootstrap;
  const discovered = config.secrets();
  const active = discovered.filter(({ accepted }) => accepted !== undefined);
  const warming = discovered.filter(({ accepted }) => accepted === undefined);
  return {
    type: adminType('SecretsConfigDump'),
    head: new Uint8Array(0),
    lists: [
      {
        field: 'static_secrets',
        items: lazily(secrets, (secret) => {
          const name = textOf(resourceType('secret')!, secret, 'name');
          const item = { name, last_updated: timestamp(updatedMs), secret: anyOf(RESOURCE_TYPES.secret, secret) };
          return { name, message: () => encoded('SecretsConfigDump.StaticSecret', item) };
        }),
      },
      { field: 'dynamic_active_secrets', items: lazily(active, dynamicSecret) },
      { field: 'dynamic_warming_secrets', items: lazily(warming, dynamicSecret) },
    ],
  };
}

function dynamicSecret({ name, sinceMs, accepted, refused }: SecretView): DumpItem {
  const state = accepted ?? {
    version: UNINITIALIZED,
    updatedMs: sinceMs,
    message: encodeMessage(resourceType('secret')!, { name }),
  };
  const status = refused === undefined ? ClientResourceStatus.ACKED : ClientResourceStatus.NACKED;
  const item = {
    name,
    ...stateOf(state, 'secret'),
    ...(refused === undefined ? {} : { error_state: errorState(refused, 'secret') }),
    client_status: accepted === undefined && refused === undefined ? ClientResourceStatus.REQUESTED : status,
  };
  return { name, message: () => encoded('SecretsConfigDump.DynamicSecret', item) };
}

function* lazily<Resource>(
  resources: readonly Resource[],
  itemOf: (resource: Resource) => DumpItem,
): Generator<DumpItem, void, undefined> {
  for (const resource of resources) yield itemOf(resource);
}
