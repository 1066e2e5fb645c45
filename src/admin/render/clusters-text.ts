// GET /clusters as text: `<cluster>::<key>::<value>` lines, then `<cluster>::<host>::<key>::<value>` lines of each
// host. Scrapers key on these words. The last three, of hosts that are checked or were
// ejected, are this build's own.

import { formatAddress } from '../../base/address.ts';
import { escapeControls } from '../../base/control-characters.ts';
import type { CheckView, CircuitBreakerView, ClusterView, EjectionView, HostView } from '../views/index.ts';
import { formatHealthFlags } from './health-flags.ts';
import { formatG } from './number.ts';

/** Lines about the cluster itself. */
export function clusterText(cluster: ClusterView): string {
  const { name, outlier, circuitBreakers } = cluster;
  const lines = [`observability_name::${cluster.observabilityName}`];
  if (outlier !== undefined) {
    lines.push(
      `outlier::success_rate_average::${formatG(outlier.successRateAverage)}`,
      `outlier::success_rate_ejection_threshold::${formatG(outlier.successRateEjectionThreshold)}`,
      `outlier::local_origin_success_rate_average::${formatG(outlier.localOriginSuccessRateAverage)}`,
      `outlier::local_origin_success_rate_ejection_threshold::${formatG(outlier.localOriginSuccessRateEjectionThreshold)}`,
    );
  }
  lines.push(...priorityLines('default_priority', circuitBreakers.default));
  lines.push(...priorityLines('high_priority', circuitBreakers.high));
  lines.push(`added_via_api::${cluster.addedViaApi}`);
  if (cluster.edsServiceName !== '') lines.push(`eds_service_name::${cluster.edsServiceName}`);
  return lines.map((line) => `${name}::${line}\n`).join('');
}

function priorityLines(priority: string, limits: CircuitBreakerView): string[] {
  return [
    `${priority}::max_connections::${limits.maxConnections}`,
    `${priority}::max_pending_requests::${limits.maxPendingRequests}`,
    `${priority}::max_requests::${limits.maxRequests}`,
    `${priority}::max_retries::${limits.maxRetries}`,
  ];
}

/** Lines about one host. The health stands under both of its names: tools know one or the other. */
export function hostText(clusterName: string, host: HostView): string {
  const { stats, locality } = host;
  const health = formatHealthFlags(host.healthFlags);
  const lines = [
    `cx_active::${stats.cx_active}`,
    `cx_connect_fail::${stats.cx_connect_fail}`,
    `cx_total::${stats.cx_total}`,
    `rq_active::${stats.rq_active}`,
    `rq_error::${stats.rq_error}`,
    `rq_success::${stats.rq_success}`,
    `rq_timeout::${stats.rq_timeout}`,
    `rq_total::${stats.rq_total}`,
    `hostname::${host.hostname}`,
    `health_flags::${health}`,
    `healthy::${health}`,
    `weight::${host.weight}`,
    `region::${locality.region}`,
    `zone::${locality.zone}`,
    `sub_zone::${locality.subZone}`,
    `canary::${host.canary}`,
    `priority::${host.priority}`,
    `success_rate::${host.successRate}`,
    `local_origin_success_rate::${host.localOriginSuccessRate}`,
  ];
  if (host.lastCheck !== undefined) lines.push(`last_check::${checkText(host.lastCheck)}`);
  if (host.decidingCheck !== undefined) lines.push(`deciding_check::${checkText(host.decidingCheck)}`);
  if (host.lastEjection !== undefined) lines.push(`last_ejection::${ejectionText(host.lastEjection)}`);
  const prefix = `${clusterName}::${formatAddress(host.address)}::`;
  return lines.map((line) => `${prefix}${line}\n`).join('');
}

/** What a host has answered cannot make another line, nor another field of this one. */
function checkText({ kind, endedMs, hasPassed, detail }: CheckView): string {
  const what = escapeControls(detail).replaceAll('::', ': :');
  return `${hasPassed ? 'passed' : 'failed'} by ${kind} at ${new Date(endedMs).toISOString()}: ${what}`;
}

function ejectionText({ kind, successRate, count, beganMs, endedMs }: EjectionView): string {
  const rate = successRate === undefined ? '' : ` with ${formatG(successRate)} % of successes`;
  const end = endedMs === undefined ? '' : `, ended at ${new Date(endedMs).toISOString()}`;
  return `by ${kind} at ${new Date(beganMs).toISOString()}${rate}, number ${count}${end}`;
}
