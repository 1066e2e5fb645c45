// Clusters, their endpoints, listeners, route tables, filters and secrets that come by discovery are read as those of the bootstrap
// are: the same checks, the same conversions, with what the bootstrap says for all resources.

import type {
  AssignmentSettings,
  ClusterSettings,
  ConfiguredFilter,
  ConfiguredListenerFilter,
  ConfiguredNetworkFilter,
  ConfiguredTerminal,
  DiscoveredFilter,
  DiscoveredRoutes,
  EdsDiscoverySettings,
  ListenerSettings,
  RouteTableSnapshot,
  ScopedRoutesSettings,
  ScopeSettings,
  TlsFile,
  VirtualHostSnapshot,
} from '../../snapshot/index.ts';
import { checkImpliedExtensions, impliedByCluster, impliedByListener } from '../bootstrap/implied-extensions.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { protoSchema } from '../proto/root.ts';
import { decodeMessage } from '../proto/wire.ts';
import { ResourceChecks } from '../resource-checks.ts';
import { convertCluster } from '../resources/cluster.ts';
import { ClusterNames, type Conversion } from '../resources/conversion.ts';
import {
  convertConfigured,
  type FilterReading,
  HTTP_FILTERS,
  NETWORK_FILTERS,
} from '../resources/discovered-filter.ts';
import type { DnsCacheNames } from '../resources/dns-cache-names.ts';
import { type ExtensionManifests, NO_EXTENSIONS } from '../resources/extension-manifests.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { convertListener } from '../resources/listener.ts';
import { LISTENER_FILTERS } from '../resources/listener-filters.ts';
import { convertDiscoveredAssignment } from '../resources/load-assignment.ts';
import { TERMINAL_FILTERS } from '../resources/network-filters.ts';
import { RouteFilters } from '../resources/route-filters.ts';
import { convertRouteTable } from '../resources/route-table.ts';
import { convertScope } from '../resources/scoped-routes.ts';
import type { SourceContext } from '../resources/source-context.ts';
import { checkSecret, type SecretUse } from '../resources/tls/secret-check.ts';
import { SourceTrail } from '../resources/tls/source-trail.ts';
import { fieldPath } from '../source/field-path.ts';
import { type DisabledExtensions, NONE_DISABLED } from '../support/index.ts';
import type { ResourceType } from './resource-type.ts';

const CLUSTER_TYPE = 'proxy.config.cluster.v3.Cluster';
const ASSIGNMENT_TYPE = 'proxy.config.endpoint.v3.ClusterLoadAssignment';
const LISTENER_TYPE = 'proxy.config.listener.v3.Listener';
const SCOPE_TYPE = 'proxy.config.route.v3.ScopedRouteConfiguration';
const HOST_TYPE = 'proxy.config.route.v3.VirtualHost';
const FILTER_TYPE = 'proxy.config.core.v3.TypedExtensionConfig';
const ROUTES_TYPE = 'proxy.config.route.v3.RouteConfiguration';
const SECRET_TYPE = 'proxy.extensions.transport_sockets.tls.v3.Secret';

/** As contexts find it. */
export type SecretMessage = MessageTypes[typeof SECRET_TYPE];

export interface SecretReading {
  readonly type: ResourceType<SecretMessage>;
  /** Those that secrets name which have been read, also where they may not be. */
  readonly files: readonly TlsFile[];
}

/** One table as each connection manager reads it: whom its routes may speak to is another's with each. */
export type ReadRoutes<View> = ReadonlyMap<View, RouteTableSnapshot>;

/** One virtual host, in the same way. */
export type ReadHost<View> = ReadonlyMap<View, VirtualHostSnapshot>;

/** One filter's configuration as each chain reads it. */
export type ReadFilters<View, Configured = ConfiguredFilter> = ReadonlyMap<View, Configured>;

/** How a chain reads it. */
export interface FilterView {
  readonly wanted: Pick<DiscoveredFilter<unknown>, 'types' | 'isOutbound'>;
}

/** How a connection manager reads a table. */
export type RoutesView = Pick<DiscoveredRoutes, 'filters' | 'isOutbound'>;

let nextScope = 0;

export class DiscoverableResources {
  readonly #scope = `bootstrap ${nextScope++}`;
  readonly #conversion: Conversion;
  readonly #extensions: ExtensionManifests;
  readonly #disabled: DisabledExtensions;

  /** @param conversion of the bootstrap. */
  constructor(
    conversion: Conversion,
    extensions: ExtensionManifests = NO_EXTENSIONS,
    disabled: DisabledExtensions = NONE_DISABLED,
  ) {
    this.#conversion = conversion;
    this.#extensions = extensions;
    this.#disabled = disabled;
  }

  /** That of clusters and assignments (ResourceType.scope): no other bootstrap has had it. */
  get scope(): string {
    return this.#scope;
  }

  /** For one response. */
  clusters(): ResourceType<ClusterSettings> {
    const scene = this.#scene(this.#conversion.clusters);
    const type = this.#type<MessageTypes[typeof CLUSTER_TYPE], ClusterSettings>(
      CLUSTER_TYPE,
      (message, at, faults) => {
        checkImpliedExtensions(impliedByCluster(message, at), this.#disabled, faults);
        return convertCluster(message, at, { ...scene, faults });
      },
      scene.dnsCaches,
    );
    return { ...type, scope: this.#scope };
  }

  /** For one response. @param clusterNames of those that there are. */
  listeners(clusterNames: Iterable<string>): ResourceType<ListenerSettings> {
    const scene = this.#scene(new ClusterNames(clusterNames, { areComplete: false }));
    return this.#type<MessageTypes[typeof LISTENER_TYPE], ListenerSettings>(LISTENER_TYPE, (message, at, faults) => {
      // Without one nobody could say later which of them has changed.
      if (message.name === '') faults.error(fieldPath(at, 'name'), 'is required of a listener that discovery brings');
      checkImpliedExtensions(impliedByListener(message, at), this.#disabled, faults);
      return convertListener(message, at, { ...scene, faults });
    });
  }

  /** Of one cluster. @param isLocal this proxy belongs to it. */
  assignments(settings: EdsDiscoverySettings, isLocal: boolean): ResourceType<AssignmentSettings> {
    const type = this.#type<MessageTypes[typeof ASSIGNMENT_TYPE], AssignmentSettings>(
      ASSIGNMENT_TYPE,
      (message, at, faults) => convertDiscoveredAssignment(message, at, settings, isLocal, faults),
    );
    return {
      ...type,
      scope: this.#scope,
      nameOf: (message) => (message as MessageTypes[typeof ASSIGNMENT_TYPE]).cluster_name,
    };
  }

  /** For one response. @param views of those who want the table. @param clusterNames of those that there are. */
  routes<View extends RoutesView>(
    views: Iterable<View>,
    clusterNames: Iterable<string>,
  ): ResourceType<ReadRoutes<View>> {
    const scene = this.#scene(new ClusterNames(clusterNames));
    return this.#type<MessageTypes[typeof ROUTES_TYPE], ReadRoutes<View>>(ROUTES_TYPE, (message, at, faults) => {
      const once = onlyOnce(faults);
      const tables = [...views].map((view) => {
        const conversion = { ...scene, isOutbound: view.isOutbound, faults: once };
        const table = convertRouteTable(message, at, false, new RouteFilters(view.filters, conversion), conversion);
        return [view, table] as const;
      });
      return new Map(tables);
    });
  }

  /**
   * Virtual hosts that come for themselves, each read as if it stood in its table.
   * @param table in its binary form, as it was accepted. @param views, clusterNames as for `routes`.
   */
  virtualHosts<View extends RoutesView>(
    table: Uint8Array,
    views: readonly View[],
    clusterNames: Iterable<string>,
  ): ResourceType<ReadHost<View>> {
    const routesType = protoSchema().messageType(ROUTES_TYPE);
    const around = decodeMessage(routesType, table) as unknown as MessageTypes[typeof ROUTES_TYPE];
    const scene = this.#scene(new ClusterNames(clusterNames));
    const type = this.#type<MessageTypes[typeof HOST_TYPE], ReadHost<View>>(HOST_TYPE, (message, at, faults) => {
      // Fields that the table leaves out are not its own.
      const own: typeof around = Object.assign(Object.create(around), { virtual_hosts: [message], vhds: null });
      const place = fieldPath(at, 'virtual_hosts[0]');
      const once = onlyOnce(onlyWithin(place, at, faults));
      const hosts = views.flatMap((view) => {
        const conversion = { ...scene, isOutbound: view.isOutbound, faults: once };
        const filters = new RouteFilters(view.filters, conversion);
        const [host] = convertRouteTable(own, at, false, filters, conversion).virtualHosts;
        return host === undefined ? [] : [[view, host] as const];
      });
      return new Map(hosts);
    });
    // Not by the name that it is asked for by.
    return { ...type, nameOf: () => '' };
  }

  /** For one response. @param reader whose scopes they are. @param clusterNames of those that there are. */
  scopes(
    { filters, isOutbound, routeSource }: Pick<ScopedRoutesSettings, 'filters' | 'isOutbound' | 'routeSource'>,
    clusterNames: Iterable<string>,
  ): ResourceType<ScopeSettings> {
    const scene = this.#scene(new ClusterNames(clusterNames));
    const reader = { filters, hasRouteSource: routeSource !== undefined, isStatic: false };
    return this.#type<MessageTypes[typeof SCOPE_TYPE], ScopeSettings>(SCOPE_TYPE, (message, at, faults) =>
      convertScope(message, at, reader, { ...scene, isOutbound, faults }),
    );
  }

  /** For one response. @param views of those who want the filter. @param clusterNames of those that there are. */
  httpFilters<View extends FilterView>(
    views: Iterable<View>,
    clusterNames: Iterable<string>,
  ): ResourceType<ReadFilters<View>> {
    return this.#filters(views, clusterNames, HTTP_FILTERS);
  }

  /** As `httpFilters`. */
  networkFilters<View extends FilterView>(
    views: Iterable<View>,
    clusterNames: Iterable<string>,
  ): ResourceType<ReadFilters<View, ConfiguredNetworkFilter>> {
    return this.#filters(views, clusterNames, NETWORK_FILTERS);
  }

  /** As `httpFilters`: what ends a chain of network filters. */
  terminalFilters<View extends FilterView>(
    views: Iterable<View>,
    clusterNames: Iterable<string>,
  ): ResourceType<ReadFilters<View, ConfiguredTerminal>> {
    return this.#filters(views, clusterNames, TERMINAL_FILTERS);
  }

  /** As `httpFilters`. */
  listenerFilters<View extends FilterView>(
    views: Iterable<View>,
    clusterNames: Iterable<string>,
  ): ResourceType<ReadFilters<View, ConfiguredListenerFilter>> {
    return this.#filters(views, clusterNames, LISTENER_FILTERS);
  }

  #filters<View extends FilterView, Configured>(
    views: Iterable<View>,
    clusterNames: Iterable<string>,
    reading: FilterReading<Configured>,
  ): ResourceType<ReadFilters<View, Configured>> {
    const scene = this.#scene(new ClusterNames(clusterNames, { areComplete: false }));
    type Message = MessageTypes[typeof FILTER_TYPE];
    return this.#type<Message, ReadFilters<View, Configured>>(FILTER_TYPE, ({ typed_config, name }, at, faults) => {
      const once = onlyOnce(faults);
      const typedAt = fieldPath(at, 'typed_config');
      const read = new Map<View, Configured>();
      for (const view of views) {
        const { types, isOutbound } = view.wanted;
        const conversion = { ...scene, isOutbound, faults: once };
        const configured = convertConfigured(typed_config, typedAt, name, types, conversion, reading);
        if (configured !== undefined) read.set(view, configured);
      }
      return read;
    });
  }

  /** For one response. @param uses what it is wanted as. */
  secrets(uses: Iterable<SecretUse>): SecretReading {
    const scene = this.#scene(this.#conversion.clusters);
    const trail = new SourceTrail();
    const type = this.#type<SecretMessage, SecretMessage>(SECRET_TYPE, (message, at, faults) => {
      checkSecret(message, at, uses, { ...scene, faults: onlyOnce(faults), trail: trail.ofSecret(message.name) });
      return message;
    });
    return { type, files: trail.files };
  }

  /** How sources of resources are read. */
  get sources(): SourceContext | undefined {
    return this.#conversion.sources;
  }

  /** Without who is told of faults. */
  #scene(clusters: ClusterNames): Omit<Conversion, 'faults'> {
    return { ...this.#conversion, isDiscovered: true, clusters, dnsCaches: this.#conversion.dnsCaches?.copy() };
  }

  #type<Message, Settings>(
    typeName: string,
    convert: (message: Message, at: string, faults: FaultSink) => Settings | undefined,
    dnsCaches?: DnsCacheNames,
  ): ResourceType<Settings> {
    const checks = ResourceChecks.of(protoSchema(), this.#extensions);
    return {
      typeName,
      nameOf: (message) => (message as { readonly name: string }).name,
      scope: undefined,
      read: (content, at, faults) => {
        const deprecatedFields = checks.check(content, at, faults, this.#disabled);
        const comparisons = dnsCaches?.comparisons;
        const resource = convert(content.message as unknown as Message, at, faults);
        return { resource, deprecatedFields, standsAlone: dnsCaches?.comparisons === comparisons };
      },
    };
  }
}

/** What is told of a message in another one, as if it stood alone. What there is around it has been told of before. */
function onlyWithin(place: string, at: string, faults: FaultSink): FaultSink {
  const told = (path: string, tell: (path: string) => void): void => {
    if (path.startsWith(place)) tell(at + path.slice(place.length));
  };
  return {
    error: (path, text) => told(path, (own) => faults.error(own, text)),
    warning: (path, text) => told(path, (own) => faults.warning(own, text)),
  };
}

/** What several find is told once. */
function onlyOnce(faults: FaultSink): FaultSink {
  const told = new Set<string>();
  const isNew = (at: string, text: string): boolean => {
    const key = `${at} ${text}`;
    return !told.has(key) && told.add(key).size > 0;
  };
  return {
    error: (at, text) => void (isNew(at, text) && faults.error(at, text)),
    warning: (at, text) => void (isNew(at, text) && faults.warning(at, text)),
  };
}
