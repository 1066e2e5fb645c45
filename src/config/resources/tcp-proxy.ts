// TcpProxy message → TcpProxySettings.

import type {
  BackoffSettings,
  TcpClusterShare,
  TcpHashInput,
  TcpLogEntries,
  TcpProxySettings,
  TcpTunnelSettings,
} from '../../snapshot/index.ts';
import { UpstreamConnectMode } from '../proto/generated/enums.ts';
import { quote } from '../source/node.ts';
import { convertAccessLogs, convertReportedLogs } from './access-log/access-log.ts';
import { criteriaOf } from './balancer-metadata.ts';
import { convertClusterDemand } from './config-source.ts';
import type { Conversion } from './conversion.ts';
import type { FaultSink } from './fault-sink.ts';
import { parseFormat } from './format/format-string.ts';
import { convertHeaderAdditions } from './header-edits.ts';
import type { BackoffStrategy, TcpProxy, TcpProxy_TunnelingConfig } from './messages.ts';
import { convertSaidTlvs } from './proxy-tlvs.ts';
import { durationMs, durationMsOr, valueOr } from './units.ts';
import { checkWeightSum } from './weighted-clusters.ts';

const DEFAULT_IDLE_TIMEOUT_MS = 3_600_000;
/** Longest wait without a maximum, in first waits. */
const DEFAULT_BACKOFF_FACTOR = 10;
const DEFAULT_DEMAND_TIMEOUT_MS = 60_000;
const PATH = /^\/[!-~]*$/;

export function convertTcpProxy(message: TcpProxy, at: string, conversion: Conversion): TcpProxySettings {
  const { backoff_options: backoff, max_downstream_connection_duration_jitter_percentage: jitter } = message;
  return {
    kind: 'tcp-proxy',
    statPrefix: message.stat_prefix,
    accessLogs: convertAccessLogs(message.access_log, `${at}.access_log`, conversion),
    ...convertReportedLogs(message.access_log, `${at}.access_log`, conversion),
    furtherLogEntries: convertLogEntries(message, at, conversion.faults),
    clusters: convertClusters(message, at, conversion),
    hashInputs: message.hash_policy.flatMap(convertHashInput),
    idleTimeoutMs: durationMsOr(message.idle_timeout, DEFAULT_IDLE_TIMEOUT_MS),
    clientIdleTimeoutMs: durationMsOr(message.downstream_idle_timeout, 0),
    upstreamIdleTimeoutMs: durationMsOr(message.upstream_idle_timeout, 0),
    maxConnectAttempts: valueOr(message.max_connect_attempts, 1),
    connectBackoff: backoff === null ? null : convertBackoff(backoff, `${at}.backoff_options`, conversion.faults),
    maxConnectionDurationMs: durationMsOr(message.max_downstream_connection_duration, 0),
    maxConnectionDurationJitterPercent: jitter?.value ?? 0,
    awaitsData: convertAwaitsData(message, at, conversion.faults),
    ...convertOnDemand(message, at, conversion),
    ...convertSaidTlvs(message.proxy_protocol_tlvs, `${at}.proxy_protocol_tlvs`, conversion),
    tunnel: message.tunneling_config && convertTunnel(message.tunneling_config, `${at}.tunneling_config`, conversion),
  };
}

/** A handshake comes before any network filter, so that to wait for it is to connect at once. */
function convertAwaitsData(message: TcpProxy, at: string, faults: FaultSink): boolean {
  const awaitsData = message.upstream_connect_mode === UpstreamConnectMode.ON_DOWNSTREAM_DATA;
  if (awaitsData && message.max_early_data_bytes === null) {
    faults.error(`${at}.max_early_data_bytes`, 'required with upstream_connect_mode ON_DOWNSTREAM_DATA');
  }
  return awaitsData;
}

/** @returns nothing where no cluster is asked for, to be spread into settings. */
function convertOnDemand(
  { on_demand: demand }: TcpProxy,
  at: string,
  conversion: Conversion,
): Pick<TcpProxySettings, 'onDemand'> {
  const source = demand?.odcds_config ?? null;
  if (source === null) return {};
  const timeoutMs = durationMsOr(demand!.timeout, DEFAULT_DEMAND_TIMEOUT_MS);
  const onDemand = convertClusterDemand(source, `${at}.on_demand.odcds_config`, timeoutMs, conversion);
  return onDemand === null ? {} : { onDemand };
}

function convertTunnel(
  message: TcpProxy_TunnelingConfig,
  at: string,
  conversion: Conversion,
): TcpTunnelSettings | null {
  const { use_post: usesPost, post_path: path } = message;
  const hostname = parseFormat(Buffer.from(message.hostname).toString('latin1'), conversion.environment);
  if (hostname.error !== undefined) {
    conversion.faults.error(`${at}.hostname`, hostname.error);
    return null;
  }
  if (path !== '' && !usesPost) conversion.faults.error(`${at}.post_path`, 'cannot be given without use_post');
  if (path !== '' && !PATH.test(path)) {
    conversion.faults.error(
      `${at}.post_path`,
      `${quote(path)} is no path: one begins with '/' and holds visible ASCII`,
    );
  }
  const edits = convertHeaderAdditions(message.headers_to_add, `${at}.headers_to_add`, conversion);
  return {
    method: usesPost ? 'POST' : 'CONNECT',
    hostname: hostname.segments,
    postPath: path === '' ? '/' : path,
    headerEdits: edits === null ? [] : [edits],
    keepsResponseHeaders: message.propagate_response_headers,
    keepsResponseTrailers: message.propagate_response_trailers,
  };
}

function convertClusters(message: TcpProxy, at: string, { clusters, faults }: Conversion): readonly TcpClusterShare[] {
  // Those that are not there are asked for.
  const comeOnDemand = message.on_demand !== null && message.on_demand.odcds_config !== null;
  const check = (name: string, place: string): void => {
    if (!comeOnDemand) clusters.checkReference(name, place, faults);
  };
  if (message.weighted_clusters === null) {
    check(message.cluster, `${at}.cluster`);
    return [{ cluster: message.cluster, weight: 1, criteria: criteriaOf(message.metadata_match) }];
  }
  const place = `${at}.weighted_clusters.clusters`;
  const shares = message.weighted_clusters.clusters.map(({ name, weight, metadata_match }, index) => {
    check(name, `${place}[${index}].name`);
    return { cluster: name, weight, criteria: criteriaOf(message.metadata_match, metadata_match) };
  });
  const sum = shares.reduce((total, { weight }) => total + weight, 0);
  checkWeightSum(sum, place, faults);
  return shares;
}

/** The two oldest forms have moved into a message of their own. */
function convertLogEntries(message: TcpProxy, at: string, faults: FaultSink): TcpLogEntries {
  const { access_log_options: options, access_log_flush_interval: interval } = message;
  const onConnected = message.flush_access_log_on_connected;
  if (options === null) return { onStart: false, onConnected, intervalMs: durationMsOr(interval, 0) };
  const repeated = 'cannot be given together with access_log_options';
  if (onConnected) faults.error(`${at}.flush_access_log_on_connected`, repeated);
  if (interval !== null) faults.error(`${at}.access_log_flush_interval`, repeated);
  return {
    onStart: options.flush_access_log_on_start,
    onConnected: options.flush_access_log_on_connected,
    intervalMs: durationMsOr(options.access_log_flush_interval, 0),
  };
}

function convertBackoff(message: BackoffStrategy, at: string, faults: FaultSink): BackoffSettings | null {
  // Without it a field rule has been broken already.
  if (message.base_interval === null) return null;
  const baseMs = durationMs(message.base_interval);
  const maxMs = durationMsOr(message.max_interval, baseMs * DEFAULT_BACKOFF_FACTOR);
  if (maxMs < baseMs) faults.error(`${at}.max_interval`, `${maxMs} ms are less than base_interval (${baseMs} ms)`);
  return { baseMs, maxMs };
}

/** A policy that names nothing has broken a field rule. */
function convertHashInput({ source_ip, filter_state: state }: TcpProxy['hash_policy'][number]): TcpHashInput[] {
  if (source_ip !== null) return [{ kind: 'source-ip' }];
  return state === null ? [] : [{ kind: 'filter-state', key: state.key }];
}
