// A server that asks for reports of load: it knows the messages by their names, from a description of its own, and adds up what it
// is told.

import type { TestContext } from 'node:test';
import protobuf from 'protobufjs';
import { StreamService } from './stream-service.ts';

const { root } = protobuf.parse(
  `syntax = "proto3";
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message SocketAddress { int32 protocol = 1; string address = 2; uint32 port_value = 3; }
  message Address { SocketAddress socket_address = 1; }
  message Locality { string region = 1; string zone = 2; string sub_zone = 3; }
  message Node { string id = 1; string cluster = 2; string build_version = 5; repeated string client_features = 10; }
  message UpstreamEndpointStats {
    Address address = 1; uint64 total_successful_requests = 2; uint64 total_requests_in_progress = 3;
    uint64 total_error_requests = 4; uint64 total_issued_requests = 7; }
  message UpstreamLocalityStats {
    Locality locality = 1; uint64 total_successful_requests = 2; uint64 total_requests_in_progress = 3;
    uint64 total_error_requests = 4; uint32 priority = 6; repeated UpstreamEndpointStats upstream_endpoint_stats = 7;
    uint64 total_issued_requests = 8; uint64 total_active_connections = 9; uint64 total_new_connections = 10;
    uint64 total_fail_connections = 11; }
  message DroppedRequests { string category = 1; uint64 dropped_count = 2; }
  message ClusterStats {
    string cluster_name = 1; repeated UpstreamLocalityStats upstream_locality_stats = 2; uint64 total_dropped_requests = 3;
    Duration load_report_interval = 4; repeated DroppedRequests dropped_requests = 5; string cluster_service_name = 6; }
  message LoadStatsRequest { Node node = 1; repeated ClusterStats cluster_stats = 2; }
  message LoadStatsResponse {
    repeated string clusters = 1; Duration load_reporting_interval = 2; bool report_endpoint_granularity = 3;
    bool send_all_clusters = 4; }`,
  { keepCase: true },
);

interface Counts {
  readonly total_successful_requests?: number;
  readonly total_requests_in_progress?: number;
  readonly total_error_requests?: number;
  readonly total_issued_requests?: number;
}

export interface LocalityStats extends Counts {
  readonly locality?: { readonly region?: string; readonly zone?: string; readonly sub_zone?: string };
  readonly priority?: number;
  readonly upstream_endpoint_stats: readonly (Counts & {
    readonly address: { readonly socket_address: { readonly address: string; readonly port_value: number } };
  })[];
  readonly total_active_connections?: number;
  readonly total_new_connections?: number;
  readonly total_fail_connections?: number;
}

export interface ClusterStats {
  readonly cluster_name: string;
  readonly cluster_service_name?: string;
  readonly upstream_locality_stats: readonly LocalityStats[];
  readonly total_dropped_requests?: number;
  readonly load_report_interval: { readonly seconds?: number; readonly nanos?: number };
  readonly dropped_requests: readonly { readonly category: string; readonly dropped_count: number }[];
}

export interface LoadReport {
  readonly node?: {
    readonly id: string;
    readonly cluster: string;
    readonly build_version?: string;
    readonly client_features: readonly string[];
  };
  readonly cluster_stats: readonly ClusterStats[];
}

export interface LoadQuestion {
  readonly clusters?: readonly string[];
  readonly send_all_clusters?: boolean;
  readonly report_endpoint_granularity?: boolean;
  readonly load_reporting_interval?: { readonly seconds?: number; readonly nanos?: number };
}

export const EVERY_100_MS = { nanos: 100_000_000 };

export type LoadServer = StreamService<LoadReport, LoadQuestion>;

export function startLoadServer(t: TestContext, port = 0): Promise<LoadServer> {
  const paths = ['v2', 'v3'].map(
    (version) => `/envoy.service.load_stats.${version}.LoadReportingService/StreamLoadStats`,
  );
  const types = { request: root.lookupType('LoadStatsRequest'), response: root.lookupType('LoadStatsResponse') };
  return StreamService.start(t, paths, types, port);
}

export interface LoadTotals {
  successful: number;
  failed: number;
  issued: number;
  dropped: number;
  /** By category. */
  readonly drops: Record<string, number>;
  /** Of issued requests, by `<priority> <region>/<zone>/<sub_zone>`. */
  readonly localities: Record<string, number>;
  /** Of issued requests, by port. */
  readonly hosts: Record<number, number>;
}

/** All that servers have been told of a cluster. */
export function totalsOf(servers: readonly LoadServer[], cluster: string): LoadTotals {
  const totals: LoadTotals = { successful: 0, failed: 0, issued: 0, dropped: 0, drops: {}, localities: {}, hosts: {} };
  const all = servers.flatMap(({ received }) => received.flatMap(({ message }) => message.cluster_stats));
  for (const stats of all.filter(({ cluster_name }) => cluster_name === cluster)) {
    totals.dropped += stats.total_dropped_requests ?? 0;
    for (const { category, dropped_count } of stats.dropped_requests) {
      totals.drops[category] = (totals.drops[category] ?? 0) + dropped_count;
    }
    for (const of of stats.upstream_locality_stats) addLocality(totals, of);
  }
  return totals;
}

function addLocality(totals: LoadTotals, stats: LocalityStats): void {
  totals.successful += stats.total_successful_requests ?? 0;
  totals.failed += stats.total_error_requests ?? 0;
  totals.issued += stats.total_issued_requests ?? 0;
  const { region = '', zone = '', sub_zone = '' } = stats.locality ?? {};
  const key = `${stats.priority ?? 0} ${region}/${zone}/${sub_zone}`;
  totals.localities[key] = (totals.localities[key] ?? 0) + (stats.total_issued_requests ?? 0);
  for (const { address, total_issued_requests: issued = 0 } of stats.upstream_endpoint_stats) {
    const { port_value: port } = address.socket_address;
    totals.hosts[port] = (totals.hosts[port] ?? 0) + issued;
  }
}
