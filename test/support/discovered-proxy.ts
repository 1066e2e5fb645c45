// A proxy whose resources come from a management server, in each form of the discovery protocol.

import type { TestContext } from 'node:test';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, socketAddress } from './bootstrap.ts';
import type { ControlPlane } from './control-plane.ts';
import type { WeirProcess } from './weir-process.ts';
import { WireClient, WireUpstream } from './wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
export const CLUSTER = 'config.cluster.v3.Cluster';
export const LISTENER = 'config.listener.v3.Listener';
export const ROUTES = 'config.route.v3.RouteConfiguration';
export const ENDPOINTS = 'config.endpoint.v3.ClusterLoadAssignment';
export const SECRET = 'extensions.transport_sockets.tls.v3.Secret';

export interface Form {
  readonly name: string;
  readonly api_type: 'GRPC' | 'DELTA_GRPC';
  readonly isAggregated: boolean;
  readonly generation: 'V2' | 'V3';
}

export const FORMS: readonly Form[] = [
  { name: 'state of the world, one stream', api_type: 'GRPC', isAggregated: true, generation: 'V3' },
  { name: 'state of the world, a stream for each type', api_type: 'GRPC', isAggregated: false, generation: 'V3' },
  { name: 'changes, one stream', api_type: 'DELTA_GRPC', isAggregated: true, generation: 'V3' },
  { name: 'changes, a stream for each type', api_type: 'DELTA_GRPC', isAggregated: false, generation: 'V3' },
  { name: 'state of the world, the older names', api_type: 'GRPC', isAggregated: true, generation: 'V2' },
  { name: 'a stream for each type, the older names', api_type: 'GRPC', isAggregated: false, generation: 'V2' },
];

interface ProxyOptions {
  /** Of the bootstrap. */
  readonly fields?: JsonObject;
  /** Of what says how the servers are asked. */
  readonly api?: JsonObject;
  /** Of the servers' clusters. */
  readonly server?: JsonObject;
  /** Of each source. */
  readonly source?: JsonObject;
}

export function bootstrap(
  form: Form,
  planes: readonly Pick<ControlPlane, 'port'>[],
  { fields = {}, api = {}, server: serverFields = {}, source: sourceFields = {} }: ProxyOptions = {},
): string {
  const { isAggregated } = form;
  const names = planes.map((_, index) => `xds_${index}`);
  const server = serverOf(form, names, api);
  const source = { ...sourceOf(form, server), ...sourceFields };
  const clusters = planes.map(({ port }, index) => {
    return { ...cluster(names[index]!, port), http2_protocol_options: {}, ...serverFields };
  });
  return JSON.stringify({
    node: { id: 'me', cluster: 'us' },
    admin: { address: ANY_PORT },
    dynamic_resources: {
      cds_config: source,
      lds_config: source,
      ...(isAggregated && { ads_config: server }),
    },
    static_resources: { clusters },
    ...fields,
  });
}

export function cluster(name: string, port: number, fields: JsonObject = {}): JsonObject {
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: socketAddress('127.0.0.1', port) } }] }];
  return clusterNamed(name, { load_assignment: { cluster_name: name, endpoints }, ...fields });
}

export function listener(name: string, clusterName: string, table: JsonObject = {}): JsonObject {
  const routes = [{ match: { prefix: '/' }, route: { cluster: clusterName } }];
  const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }], ...table };
  return listenerWith([httpFilter({ route_config })], { name, address: ANY_PORT });
}

/** Whose endpoints come by themselves. */
export function eds(name: string, eds_config: JsonObject, fields: JsonObject = {}): JsonObject {
  const { load_assignment: _none, ...rest } = clusterNamed(name);
  return { ...rest, type: 'EDS', eds_cluster_config: { eds_config, ...fields } };
}

/** Whose routes come by themselves. */
export function discoveringListener(name: string, route_config_name: string, config_source: JsonObject): JsonObject {
  const manager = httpFilter({ route_config: null, rds: { route_config_name, config_source } });
  return listenerWith([manager], { name, address: ANY_PORT });
}

export async function upstreamSaying(t: TestContext, text: string): Promise<number> {
  const answer = `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
  const upstream = await WireUpstream.start((socket) => socket.on('data', () => socket.write(answer)));
  t.after(() => upstream.close());
  return upstream.port;
}

export async function answerOf(weir: WeirProcess, name: string): Promise<string> {
  const client = new WireClient((await weir.listeners()).get(name)!.port);
  const { status, body } = await client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n').response();
  client.close();
  return `${status} ${body}`;
}

export function serve(
  plane: ControlPlane,
  version: string,
  clusters: readonly JsonObject[],
  listeners: readonly JsonObject[],
): void {
  plane.set(CLUSTER, version, clusters);
  plane.set(LISTENER, version, listeners);
}

/** For resources that are found by way of others. */
export function ofForm(form: Form): JsonObject {
  return sourceOf(form, serverOf(form, ['xds_0']));
}

function serverOf({ api_type, generation }: Form, names: readonly string[], fields: JsonObject = {}): JsonObject {
  const grpc_services = names.map((cluster_name) => ({ envoy_grpc: { cluster_name } }));
  return { api_type, grpc_services, transport_api_version: generation, ...fields };
}

function sourceOf({ isAggregated, generation }: Form, api_config_source: JsonObject): JsonObject {
  return { resource_api_version: generation, ...(isAggregated ? { ads: {} } : { api_config_source }) };
}

export function assignment(cluster_name: string, ...ports: readonly number[]): JsonObject {
  const lb_endpoints = ports.map((port) => ({ endpoint: { address: socketAddress('127.0.0.1', port) } }));
  return { cluster_name, endpoints: [{ lb_endpoints }] };
}
