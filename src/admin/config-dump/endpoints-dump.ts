// The members of active clusters as load assignments, which is what discovery would bring. A cluster may have ten thousand of
// them, so that an assignment is put together piece by piece.

import { TimeSlice } from '../../base/time-slice.ts';
import {
  addressMessage,
  encodeMessage,
  headOf,
  jsonToStruct,
  type MessageType,
  partsOf,
  protoSchema,
} from '../../config/index.ts';
import type { AssignmentView, EndpointsView, EndpointView } from '../views/index.ts';
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

/** Nothing while there is no cluster. */
export function endpointsDump(clusters: Iterable<EndpointsView>): readonly Dump[] {
  const all = [...clusters];
  if (all.length === 0) return [];
  // What has come by discovery is dynamic, wherever its cluster stands: the other list has no place for versions.
  const items = (isDynamic: boolean): DumpItem[] =>
    all
      .filter(({ addedViaApi, assignment }) => (addedViaApi || assignment !== undefined) === isDynamic)
      .map((cluster) => ({ name: cluster.name, message: () => endpointConfig(cluster, isDynamic) }));
  return [
    {
      type: adminType('EndpointsConfigDump'),
      head: new Uint8Array(0),
      lists: [
        { field: 'static_endpoint_configs', items: items(false) },
        { field: 'dynamic_endpoint_configs', items: items(true) },
      ],
    },
  ];
}

async function endpointConfig(cluster: EndpointsView, isDynamic: boolean): Promise<Uint8Array> {
  const type = adminType(`EndpointsConfigDump.${isDynamic ? 'Dynamic' : 'Static'}EndpointConfig`);
  return encodeMessage(type, {
    endpoint_config: anyOf(RESOURCE_TYPES.endpoint_config, await assignment(cluster)),
    ...(cluster.assignment === undefined ? {} : stateOf(cluster.assignment)),
  });
}

function stateOf({ status, known, refused }: AssignmentView): object {
  return {
    ...(known && { version_info: known.version, last_updated: timestamp(known.updatedMs) }),
    client_status: CLIENT_STATUS[status],
    ...(refused && { error_state: errorState(refused, 'endpoint_config') }),
  };
}

/** Numbers of admin.ClientResourceStatus. */
const CLIENT_STATUS = { requested: 1, absent: 2, accepted: 3, refused: 4 } as const;

async function assignment(cluster: EndpointsView): Promise<Uint8Array> {
  const type = resourceType('endpoint_config')!;
  const parts = [encodeMessage(type, { cluster_name: cluster.name })];
  for (const locality of await localities(cluster)) {
    parts.push(headOf(type, 'endpoints', locality.length), locality);
  }
  const policy = policyOf(cluster);
  parts.push(headOf(type, 'policy', policy.length), policy);
  return Buffer.concat(parts);
}

const NOTHING = new Uint8Array(0);

/** Shares that are dropped have no other place than the message of the cluster or of its assignment. */
function policyOf({ message, assignment, overprovisioningFactor }: EndpointsView): Uint8Array {
  const schema = protoSchema();
  const type = schema.messageType(`${RESOURCE_TYPES.endpoint_config}.Policy`);
  const path = ['policy', 'drop_overloads'];
  const drops =
    assignment === undefined
      ? [...partsOf(schema, resourceType('cluster')!, message, ['load_assignment', ...path])]
      : [...partsOf(schema, resourceType('endpoint_config')!, assignment.known?.message ?? NOTHING, path)];
  return Buffer.concat([
    ...drops.flatMap((drop) => [headOf(type, 'drop_overloads', drop.length), drop]),
    encodeMessage(type, { overprovisioning_factor: { value: overprovisioningFactor } }),
  ]);
}

interface OpenLocality {
  readonly first: EndpointView;
  readonly parts: Uint8Array[];
}

/** In the order in which their first members come. */
async function localities({ endpoints }: EndpointsView): Promise<readonly Uint8Array[]> {
  const schema = protoSchema();
  const type = schema.messageType('proxy.config.endpoint.v3.LocalityLbEndpoints');
  const memberType = schema.messageType('proxy.config.endpoint.v3.LbEndpoint');
  const slice = new TimeSlice();
  const open = new Map<string, OpenLocality>();
  for (const endpoint of endpoints()) {
    const { priority, locality } = endpoint;
    const key = JSON.stringify([priority, locality.region, locality.zone, locality.subZone]);
    let group = open.get(key);
    if (group === undefined) {
      group = { first: endpoint, parts: [] };
      open.set(key, group);
    }
    const member = encodeMessage(memberType, memberOf(endpoint));
    group.parts.push(headOf(type, 'lb_endpoints', member.length), member);
    if (slice.isOver()) await slice.rest();
  }
  return [...open.values()].map((group) => localityOf(type, group));
}

function localityOf(type: MessageType, { first, parts }: OpenLocality): Uint8Array {
  const { locality, localityWeight, priority } = first;
  const { region, zone, subZone } = locality;
  const rest = { priority, ...(localityWeight === 0 ? {} : { load_balancing_weight: { value: localityWeight } }) };
  return Buffer.concat([
    encodeMessage(type, { locality: { region, zone, sub_zone: subZone } }),
    ...parts,
    encodeMessage(type, rest),
  ]);
}

function memberOf({ address, hostname, health, weight, metadata, check }: EndpointView): object {
  const namespaces = Object.entries(metadata).map(([name, fields]) => [name, jsonToStruct(fields)]);
  return {
    endpoint: {
      address: addressMessage(address),
      health_check_config: { port_value: check.port, hostname: check.hostname },
      hostname,
    },
    health_status: HEALTH_STATUS[health],
    metadata: { filter_metadata: Object.fromEntries(namespaces) },
    load_balancing_weight: { value: weight },
  };
}

/** Numbers of core.HealthStatus. */
const HEALTH_STATUS = { HEALTHY: 1, UNHEALTHY: 2, DEGRADED: 5 } as const;
