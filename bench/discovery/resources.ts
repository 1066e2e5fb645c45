// What the management server of the benchmark has: clusters with endpoints by discovery, an assignment for each, in as many editions
// as there are updates. The first cluster has hosts that answer, the others addresses that nobody asks.

import { encodeMessage, protoSchema } from '../../src/config/index.ts';

export const CLUSTER_TYPE = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
export const ASSIGNMENT_TYPE = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment';

export interface Any {
  readonly type_url: string;
  readonly value: Uint8Array;
}

export function clusterName(index: number): string {
  return `service-${index}`;
}

/** @param edition another one has another timeout for connections. */
export function cluster(index: number, edition: number): Any {
  return any(CLUSTER_TYPE, 'proxy.config.cluster.v3.Cluster', {
    name: clusterName(index),
    type: 3,
    connect_timeout: { seconds: 1 + (edition % 2), nanos: 0 },
    eds_cluster_config: { eds_config: { ads: {}, resource_api_version: 2 } },
  });
}

/** @param edition another one has another host in the place of the last. @param port of the hosts that answer; 0 for others. */
export function assignment(index: number, hosts: number, edition: number, port: number): Any {
  const endpoint = (host: number): object => {
    const own = host === hosts - 1 ? 100 + (edition % 100) : host + 1;
    const address = port === 0 ? `10.${index >> 8}.${index & 255}.${own}` : `127.0.0.${own}`;
    return { endpoint: { address: { socket_address: { address, port_value: port === 0 ? 8080 : port } } } };
  };
  return any(ASSIGNMENT_TYPE, 'proxy.config.endpoint.v3.ClusterLoadAssignment', {
    cluster_name: clusterName(index),
    endpoints: [{ lb_endpoints: Array.from({ length: hosts }, (_, host) => endpoint(host)) }],
  });
}

function any(type_url: string, typeName: string, message: object): Any {
  return { type_url, value: encodeMessage(protoSchema().messageType(typeName), message) };
}
