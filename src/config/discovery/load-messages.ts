// The messages of reports of load (LRS): loads → bytes, bytes → what the server wants to know. Main thread.

import type { Address } from '../../base/address.ts';
import type { Locality } from '../../snapshot/index.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import type { Generation } from '../proto/message-names.ts';
import { protoSchema } from '../proto/root.ts';
import { decodeMessage } from '../proto/wire.ts';
import { encodeMessage } from '../proto/wire-parts.ts';
import { addressMessage } from '../resources/address-message.ts';
import { durationMsOr } from '../resources/units.ts';
import { type NodeMessage, withFeature } from './exchange-requests.ts';

/** Of the method, which stays open. */
export const LOAD_REPORTING_PATH: Readonly<Record<Generation, string>> = {
  v3: '/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats',
  v2: '/envoy.service.load_stats.v2.LoadReportingService/StreamLoadStats',
};

/** Servers ask only those for all clusters who say it. */
const FEATURE = 'envoy.lrs.supports_send_all_clusters';

const REQUEST = 'proxy.service.load_stats.v3.LoadStatsRequest';
const RESPONSE = 'proxy.service.load_stats.v3.LoadStatsResponse';

interface Counts {
  readonly successful: number;
  readonly failed: number;
  readonly issued: number;
  readonly inProgress: number;
  readonly newConnections: number;
  readonly failedConnections: number;
  readonly activeConnections: number;
}

/** What a report says of one cluster. */
export interface ReportedCluster {
  readonly cluster: string;
  /** What discovery calls it; empty for its own name. */
  readonly serviceName: string;
  readonly sum: {
    readonly localities: Iterable<{
      readonly locality: Locality;
      readonly priority: number;
      readonly counts: Counts;
      readonly hosts: { values(): Iterable<{ readonly address: Address; readonly counts: Counts }> };
    }>;
    readonly dropped: number;
    readonly drops: Iterable<readonly [category: string, count: number]>;
  };
  /** By the same clock. */
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** What a server wants to know. */
export interface ReportRequest {
  readonly clusters: ReadonlySet<string> | 'all';
  /** Between reports; above 0. */
  readonly intervalMs: number;
  /** Of hosts, too. */
  readonly isByHost: boolean;
}

/** What stands before the clusters of a report. */
export function encodeReportHead(node: NodeMessage): Uint8Array {
  return encodeMessage(protoSchema().messageType(REQUEST), { node: withFeature(node, FEATURE).message });
}

/** A piece of a report, behind any other. @param generation of the server: the older one hears of requests alone. */
export function encodeClusterLoad(load: ReportedCluster, generation: Generation): Uint8Array {
  const { cluster, serviceName, sum, sinceMs, untilMs } = load;
  const stats = {
    cluster_name: cluster,
    ...(serviceName !== '' && { cluster_service_name: serviceName }),
    upstream_locality_stats: [...sum.localities].map(({ locality, priority, counts, hosts }) => ({
      locality: { region: locality.region, zone: locality.zone, sub_zone: locality.subZone },
      priority,
      ...requestsOf(counts),
      ...(generation === 'v3' && connectionsOf(counts)),
      upstream_endpoint_stats: [...hosts.values()].map((host) => ({
        address: addressMessage(host.address),
        ...requestsOf(host.counts),
      })),
    })),
    total_dropped_requests: sum.dropped,
    dropped_requests: [...sum.drops].map(([category, dropped_count]) => ({ category, dropped_count })),
    load_report_interval: duration(untilMs - sinceMs),
  };
  return encodeMessage(protoSchema().messageType(REQUEST), { cluster_stats: [stats] });
}

/** @throws for bytes that are no such message, or say nothing that can be done. */
export function openReportRequest(bytes: Uint8Array): ReportRequest {
  const type = protoSchema().messageType(RESPONSE);
  const message = decodeMessage(type, bytes) as unknown as MessageTypes[typeof RESPONSE];
  const { clusters, send_all_clusters: isOfAll, load_reporting_interval: interval } = message;
  const intervalMs = durationMsOr(interval, 0);
  if (!(intervalMs > 0)) throw new Error(`load_reporting_interval: ${intervalMs} ms is not above 0`);
  return {
    clusters: isOfAll ? 'all' : new Set(clusters),
    intervalMs,
    isByHost: message.report_endpoint_granularity,
  };
}

function requestsOf({ successful, failed, issued, inProgress }: Counts): object {
  return {
    total_successful_requests: successful,
    total_error_requests: failed,
    total_issued_requests: issued,
    total_requests_in_progress: inProgress,
  };
}

function connectionsOf({ newConnections, failedConnections, activeConnections }: Counts): object {
  return {
    total_active_connections: activeConnections,
    total_new_connections: newConnections,
    total_fail_connections: failedConnections,
  };
}

function duration(ms: number): object {
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: Math.floor((ms - seconds * 1000) * 1e3) * 1e3 };
}
