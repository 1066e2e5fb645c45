// A server that has hosts checked: it knows the messages by their names, from a description of its own.

import type { TestContext } from 'node:test';
import protobuf from 'protobufjs';
import { StreamService } from './stream-service.ts';

const { root } = protobuf.parse(
  `syntax = "proto3";
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message UInt32Value { uint32 value = 1; }
  message Any { string type_url = 1; bytes value = 2; }
  message Value { oneof kind { int32 null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4; } }
  message Struct { map<string, Value> fields = 1; }
  message SocketAddress { int32 protocol = 1; string address = 2; uint32 port_value = 3; }
  message Address { SocketAddress socket_address = 1; }
  message Locality { string region = 1; string zone = 2; string sub_zone = 3; }
  message Node { string id = 1; string cluster = 2; string build_version = 5; }
  message HealthCheckConfig { uint32 port_value = 1; string hostname = 2; bool disable_active_health_check = 4; }
  message Endpoint { Address address = 1; HealthCheckConfig health_check_config = 2; string hostname = 3; }
  message TransportSocket { string name = 1; Any typed_config = 3; }
  message TransportSocketMatch { string name = 1; Struct match = 2; TransportSocket transport_socket = 3; }
  message Payload { string text = 1; bytes binary = 2; }
  message HttpHealthCheck { string host = 1; string path = 2; }
  message TcpHealthCheck { Payload send = 1; repeated Payload receive = 2; }
  message CustomHealthCheck { string name = 1; Any typed_config = 3; }
  message HealthCheck {
    Duration timeout = 1; Duration interval = 2; UInt32Value unhealthy_threshold = 4; UInt32Value healthy_threshold = 5;
    HttpHealthCheck http_health_check = 8; TcpHealthCheck tcp_health_check = 9; Duration no_traffic_interval = 12;
    CustomHealthCheck custom_health_check = 13; Struct transport_socket_match_criteria = 23; }
  message Capability { repeated int32 health_check_protocols = 1; }
  message HealthCheckRequest { Node node = 1; Capability capability = 2; }
  message EndpointHealth { Endpoint endpoint = 1; int32 health_status = 2; }
  message LocalityEndpointsHealth { Locality locality = 1; repeated EndpointHealth endpoints_health = 2; }
  message ClusterEndpointsHealth { string cluster_name = 1; repeated LocalityEndpointsHealth locality_endpoints_health = 2; }
  message EndpointHealthResponse {
    repeated EndpointHealth endpoints_health = 1; repeated ClusterEndpointsHealth cluster_endpoints_health = 2; }
  message FromProxy { HealthCheckRequest health_check_request = 1; EndpointHealthResponse endpoint_health_response = 2; }
  message LocalityEndpoints { Locality locality = 1; repeated Endpoint endpoints = 2; }
  message ClusterHealthCheck {
    string cluster_name = 1; repeated HealthCheck health_checks = 2; repeated LocalityEndpoints locality_endpoints = 3;
    repeated TransportSocketMatch transport_socket_matches = 4; }
  message HealthCheckSpecifier { repeated ClusterHealthCheck cluster_health_checks = 1; Duration interval = 2; }`,
  { keepCase: true },
);

interface EndpointHealth {
  readonly endpoint: {
    readonly address: { readonly socket_address: { readonly address: string; readonly port_value: number } };
  };
  readonly health_status: number;
}

interface LocalityHealth {
  readonly locality?: { readonly region?: string; readonly zone?: string };
  readonly endpoints_health: readonly EndpointHealth[];
}

/** What the proxy says. */
export interface HealthMessage {
  readonly health_check_request?: {
    readonly node: { readonly id: string; readonly cluster: string; readonly build_version?: string };
    readonly capability: { readonly health_check_protocols: readonly number[] };
  };
  readonly endpoint_health_response?: {
    readonly endpoints_health: readonly EndpointHealth[];
    readonly cluster_endpoints_health: readonly {
      readonly cluster_name: string;
      readonly locality_endpoints_health: readonly LocalityHealth[];
    }[];
  };
}

export type Orders = { readonly cluster_health_checks: readonly object[]; readonly interval?: object };
export type HealthDiscoveryServer = StreamService<HealthMessage, Orders>;

export function startHealthDiscoveryServer(t: TestContext, port = 0): Promise<HealthDiscoveryServer> {
  const paths = ['discovery.v2', 'health.v3'].map(
    (version) => `/envoy.service.${version}.HealthDiscoveryService/StreamHealthCheck`,
  );
  const types = { request: root.lookupType('FromProxy'), response: root.lookupType('HealthCheckSpecifier') };
  return StreamService.start(t, paths, types, port);
}

const STATUSES = ['unknown', 'healthy', 'unhealthy', 'draining', 'timeout', 'degraded'];

/** `web here/a 8080 healthy` of each endpoint, as the last report has them. */
export function lastReport({ received }: HealthDiscoveryServer): string[] {
  const response = received.findLast(({ message }) => message.endpoint_health_response)?.message
    .endpoint_health_response;
  return (response?.cluster_endpoints_health ?? []).flatMap(({ cluster_name, locality_endpoints_health: localities }) =>
    localities.flatMap(({ locality, endpoints_health: endpoints }) =>
      endpoints.map(({ endpoint, health_status }) => {
        const { region = '', zone = '' } = locality ?? {};
        return `${cluster_name} ${region}/${zone} ${endpoint.address.socket_address.port_value} ${STATUSES[health_status]}`;
      }),
    ),
  );
}
