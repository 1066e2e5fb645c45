// The messages of health discovery (HDS): bytes → clusters to be checked, states → bytes. Main thread.

import type { Message } from 'protobufjs/light.js';
import type { Address } from '../../base/address.ts';
import type { ClusterSettings, HealthCheckSettings, Locality } from '../../snapshot/index.ts';
import { formatFault } from '../fault.ts';
import { FaultList } from '../fault-list.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { readMessage } from '../proto/load-message.ts';
import type { Generation } from '../proto/message-names.ts';
import { protoSchema } from '../proto/root.ts';
import type { UnknownFieldPolicy } from '../proto/unknown-fields.ts';
import { encodeMessage, headOf } from '../proto/wire-parts.ts';
import { addressMessage } from '../resources/address-message.ts';
import { durationMsOr } from '../resources/units.ts';
import { ConfigDocument } from '../source/config-document.ts';
import type { NodeMessage } from './exchange-requests.ts';
import { NOWHERE } from './read-raw-resource.ts';
import { readResource } from './read-resource.ts';
import type { ResourceType } from './resource-type.ts';

/** Of the method, which stays open. */
export const HEALTH_DISCOVERY_PATH: Readonly<Record<Generation, string>> = {
  v3: '/envoy.service.health.v3.HealthDiscoveryService/StreamHealthCheck',
  v2: '/envoy.service.discovery.v2.HealthDiscoveryService/StreamHealthCheck',
};

const MESSAGE = 'proxy.service.health.v3.HealthCheckRequestOrEndpointHealthResponse';
const RESPONSE = 'proxy.service.health.v3.EndpointHealthResponse';
const SPECIFIER = 'proxy.service.health.v3.HealthCheckSpecifier';
const CLUSTER = 'proxy.config.cluster.v3.Cluster';
const ASSIGNMENT = 'proxy.config.endpoint.v3.ClusterLoadAssignment';

const DEFAULT_INTERVAL_MS = 1000;
/** Of connections of checks, as of clusters that say nothing of it. */
const CONNECT_TIMEOUT = { seconds: 1, nanos: 0 };
/** Numbers of Capability.Protocol. */
const PROTOCOLS = { HTTP: 0, TCP: 1, REDIS: 2 } as const;
/** Numbers of core.HealthStatus. */
const STATUSES = { healthy: 1, unhealthy: 2, timeout: 4, degraded: 5 } as const;

export type FoundHealth = keyof typeof STATUSES;

/** One way in which hosts are to be checked. */
export interface OrderedCheck {
  readonly settings: HealthCheckSettings;
  /** The server says how often hosts without traffic are asked, as these are. */
  readonly isOfSilentHosts: boolean;
}

/** A cluster whose hosts are to be checked. */
export interface CheckOrder {
  readonly name: string;
  /** Of a cluster that has no other use; undefined where it may not be. */
  readonly settings: ClusterSettings | undefined;
  /** At least one, unless it may not be. */
  readonly checks: readonly OrderedCheck[];
  /** Why, with the field. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

export interface CheckOrders {
  /** Between reports; above 0. */
  readonly intervalMs: number;
  readonly clusters: readonly CheckOrder[];
}

export interface FoundHost {
  readonly address: Address;
  readonly health: FoundHealth;
}

export interface FoundLocality {
  readonly locality: Locality;
  readonly hosts: readonly FoundHost[];
}

/** Who offers to check. */
export function encodeCheckOffer(node: NodeMessage): Uint8Array {
  return encodeMessage(protoSchema().messageType(MESSAGE), {
    health_check_request: {
      node: node.message,
      capability: { health_check_protocols: [PROTOCOLS.HTTP, PROTOCOLS.TCP, PROTOCOLS.REDIS] },
    },
  });
}

/** A piece of a report. @param generation of the server: the older one has one list for all. */
export function encodeClusterHealth(
  name: string,
  localities: readonly FoundLocality[],
  generation: Generation,
): Uint8Array {
  const found = localities.map(({ locality: { region, zone, subZone }, hosts }) => ({
    locality: { region, zone, sub_zone: subZone },
    endpoints_health: hosts.map(({ address, health }) => ({
      endpoint: { address: addressMessage(address) },
      health_status: STATUSES[health],
    })),
  }));
  return encodeMessage(protoSchema().messageType(RESPONSE), {
    endpoints_health: found.flatMap(({ endpoints_health: each }) => each),
    ...(generation === 'v3' && {
      cluster_endpoints_health: [{ cluster_name: name, locality_endpoints_health: found }],
    }),
  });
}

/** @param parts of encodeClusterHealth. */
export function encodeHealthReport(parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([headOf(protoSchema().messageType(MESSAGE), 'endpoint_health_response', length), ...parts]);
}

type SpecifierMessage = MessageTypes[typeof SPECIFIER];
type OrderMessage = SpecifierMessage['cluster_health_checks'][number];

/**
 * Each cluster is held against the rules of clusters for itself.
 * @throws for bytes that are no such message, or say nothing that can be done.
 */
export function openCheckOrders(
  bytes: Uint8Array,
  generation: Generation,
  clusters: ResourceType<ClusterSettings>,
  unknownFields: UnknownFieldPolicy,
): CheckOrders {
  const list = new FaultList();
  const type = protoSchema().messageType(SPECIFIER);
  const read = readMessage(
    type,
    { dialect: 'binary', layer: NOWHERE, bytes },
    { faults: list, unknownFields, generation },
  );
  if (read === undefined || list.hasErrors) throw new Error(list.all.map(formatFault).join('\n'));
  const { cluster_health_checks: orders, interval } = read.message as unknown as SpecifierMessage;
  const intervalMs = durationMsOr(interval, DEFAULT_INTERVAL_MS);
  if (!(intervalMs > 0)) throw new Error(`interval: ${intervalMs} ms is not above 0`);
  const seen = new Set<string>();
  return {
    intervalMs,
    clusters: orders.map((order, at) => {
      const place = `cluster_health_checks[${at}]`;
      const { cluster_name: name } = order;
      const isSecond = seen.has(name);
      seen.add(name);
      if (isSecond) return refused(name, `${place}.cluster_name: ${JSON.stringify(name)} is there before`);
      if (name === '') return refused(name, `${place}.cluster_name: is required`);
      return readOrder(order, place, generation, clusters);
    }),
  };
}

function refused(name: string, error: string): CheckOrder {
  return { name, settings: undefined, checks: [], errors: [error], warnings: [] };
}

/** As a cluster that has these members and this check, and one for each further check, which need not know the members again. */
function readOrder(
  order: OrderMessage,
  at: string,
  generation: Generation,
  clusters: ResourceType<ClusterSettings>,
): CheckOrder {
  const { cluster_name: name, health_checks: messages, locality_endpoints: localities } = order;
  if (messages.length === 0) return refused(name, `${at}.health_checks: is required`);
  const type = protoSchema().messageType(CLUSTER);
  const reads = messages.map((check, index) => {
    const content = { type, message: clusterOf(order, check, index === 0 ? localities : []), generation };
    return readResource({ name, content, at, faults: [], document: new ConfigDocument(NOWHERE) }, clusters);
  });
  const namedAt = (texts: readonly string[], index: number): string[] =>
    texts.map((text) => namedAsOrdered(text).replace('.health_checks[0]', `.health_checks[${index}]`));
  const errors = new Set(reads.flatMap((read, index) => (read.isGood ? [] : namedAt(read.errors, index))));
  const warnings = new Set(reads.flatMap((read, index) => namedAt(read.warnings, index)));
  const resources = reads.flatMap((read) => (read.isGood ? [read.resource] : []));
  const settings = errors.size === 0 ? resources[0] : undefined;
  // Nobody asks for secrets on behalf of hosts that are no members of any cluster.
  if (settings?.transportSocketMatches?.some(({ tls }) => tls !== undefined && tls.secrets.length > 0)) {
    const what = 'names a secret that comes by discovery; use one of static_resources.secrets, or write it here';
    return refused(name, `${at}.transport_socket_matches: ${what}`);
  }
  return {
    name,
    settings,
    checks: resources.flatMap(({ healthCheck }, index) => {
      const { no_traffic_interval: silent, no_traffic_healthy_interval: healthy } = messages[index]!;
      return healthCheck === undefined
        ? []
        : [{ settings: healthCheck, isOfSilentHosts: silent !== null || healthy !== null }];
    }),
    errors: [...errors],
    warnings: [...warnings],
  };
}

function clusterOf(
  order: OrderMessage,
  check: OrderMessage['health_checks'][number],
  localities: OrderMessage['locality_endpoints'],
): Message {
  const schema = protoSchema();
  const create = (name: string, fields: object): Message => schema.messageType(name).create(fields);
  const { cluster_name: name, transport_socket_matches, upstream_bind_config } = order;
  const endpoints = localities.map(({ locality, endpoints: each }) =>
    create('proxy.config.endpoint.v3.LocalityLbEndpoints', {
      locality,
      lb_endpoints: each.map((endpoint) => create('proxy.config.endpoint.v3.LbEndpoint', { endpoint })),
    }),
  );
  return create(CLUSTER, {
    name,
    connect_timeout: create('google.protobuf.Duration', CONNECT_TIMEOUT),
    load_assignment: create(ASSIGNMENT, { cluster_name: name, endpoints }),
    health_checks: [check],
    transport_socket_matches,
    upstream_bind_config,
    ...(check.grpc_health_check !== null && {
      http2_protocol_options: create('proxy.config.core.v3.Http2ProtocolOptions', {}),
    }),
  });
}

/** By the fields that the server has written. */
function namedAsOrdered(text: string): string {
  return text
    .replace(/\bload_assignment\.endpoints(\[\d+\])/, 'locality_endpoints$1')
    .replace(/(\blocality_endpoints\[\d+\])\.lb_endpoints(\[\d+\])\.endpoint\b/, '$1.endpoints$2');
}
