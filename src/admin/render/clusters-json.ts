// GET /clusters as JSON: an admin.v3.Clusters message, in which what has its default value is left out. Made piece by
// piece: a cluster may have 10,000 hosts.

import type { JsonObject } from '../../base/json.ts';
import { addressMessage } from '../../config/index.ts';
import type { CheckView, CircuitBreakerView, ClusterView, EjectionView, HostView } from '../views/index.ts';
import { CONFIGURED, HEALTH_FLAGS } from './health-flags.ts';

/** Of a cluster in the list of all of them, and of a host in that of its cluster. */
const CLUSTER_INDENT = 2;
const HOST_INDENT = 4;
/** Stands for all hosts while the rest of a cluster is written. */
const HOSTS = '@hosts';

/** A cluster up to its first host, and what follows its last one. Both are the whole of it when it has none. */
export function clusterJson(cluster: ClusterView, hasHosts: boolean): readonly [before: string, after: string] {
  const { outlier, circuitBreakers } = cluster;
  const text = indented(
    {
      name: cluster.name,
      ...(cluster.addedViaApi ? { added_via_api: true } : {}),
      ...threshold('success_rate_ejection_threshold', outlier?.successRateEjectionThreshold),
      ...(hasHosts ? { host_statuses: [HOSTS] } : {}),
      ...threshold('local_origin_success_rate_ejection_threshold', outlier?.localOriginSuccessRateEjectionThreshold),
      circuit_breakers: {
        thresholds: [limits(circuitBreakers.default), { priority: 'HIGH', ...limits(circuitBreakers.high) }],
      },
      observability_name: cluster.observabilityName,
      ...(cluster.edsServiceName === '' ? {} : { eds_service_name: cluster.edsServiceName }),
    },
    CLUSTER_INDENT,
  );
  const at = hasHosts ? text.indexOf(`${' '.repeat(HOST_INDENT)}"${HOSTS}"`) : text.length;
  return [text.slice(0, at), text.slice(at + (hasHosts ? HOST_INDENT + HOSTS.length + 2 : 0))];
}

/** @param showsChecks adds what no other build has: readers that are strict about fields would stumble over it. */
export function hostJson(host: HostView, showsChecks: boolean): string {
  const { locality } = host;
  return indented(
    {
      address: addressMessage(host.address),
      stats: statsJson(host),
      health_status: healthJson(host.healthFlags),
      ...rate('success_rate', host.successRate),
      weight: host.weight,
      ...(host.hostname === '' ? {} : { hostname: host.hostname }),
      ...(host.priority === 0 ? {} : { priority: host.priority }),
      ...rate('local_origin_success_rate', host.localOriginSuccessRate),
      locality: {
        ...(locality.region === '' ? {} : { region: locality.region }),
        ...(locality.zone === '' ? {} : { zone: locality.zone }),
        ...(locality.subZone === '' ? {} : { sub_zone: locality.subZone }),
      },
      ...(showsChecks && host.lastCheck !== undefined ? { last_check: checkJson(host.lastCheck) } : {}),
      ...(showsChecks && host.decidingCheck !== undefined ? { deciding_check: checkJson(host.decidingCheck) } : {}),
      ...(showsChecks && host.lastEjection !== undefined ? { last_ejection: ejectionJson(host.lastEjection) } : {}),
    },
    HOST_INDENT,
  );
}

function indented(value: JsonObject, indent: number): string {
  return JSON.stringify(value, undefined, 1).replace(/^/gm, ' '.repeat(indent));
}

/** Only of a detector that has one. */
function threshold(key: string, percent: number | undefined): JsonObject {
  return percent === undefined || percent <= 0 ? {} : { [key]: { value: percent } };
}

function rate(key: string, percent: number): JsonObject {
  if (percent < 0) return {};
  return { [key]: percent === 0 ? {} : { value: percent } };
}

function limits(view: CircuitBreakerView): JsonObject {
  return {
    max_connections: view.maxConnections,
    max_pending_requests: view.maxPendingRequests,
    max_requests: view.maxRequests,
    max_retries: view.maxRetries,
  };
}

/** Counters, then gauges, each in the order of their names. */
function statsJson({ stats }: HostView): readonly JsonObject[] {
  const names = Object.keys(stats) as (keyof typeof stats)[];
  const isGauge = (name: string): boolean => name.endsWith('_active');
  const ordered = [...names.filter((name) => !isGauge(name)), ...names.filter(isGauge)];
  return ordered.map((name) => ({
    ...(isGauge(name) ? { type: 'GAUGE' } : {}),
    ...(stats[name] === 0 ? {} : { value: String(stats[name]) }),
    name,
  }));
}

/** In the order of the fields: what the configuration says comes third. */
function healthJson(flags: number): JsonObject {
  const entries: [string, true | string][] = [];
  for (const [bit, , key] of HEALTH_FLAGS) {
    if (bit === CONFIGURED.unhealthy) entries.push(['eds_health_status', configuredHealth(flags)]);
    if (key !== undefined && (flags & bit) !== 0) entries.push([key, true]);
  }
  return Object.fromEntries(entries);
}

function configuredHealth(flags: number): string {
  if ((flags & CONFIGURED.draining) !== 0) return 'DRAINING';
  if ((flags & CONFIGURED.unhealthy) !== 0) return 'UNHEALTHY';
  return (flags & CONFIGURED.degraded) === 0 ? 'HEALTHY' : 'DEGRADED';
}

function checkJson({ kind, endedMs, hasPassed, detail }: CheckView): JsonObject {
  return { kind, time: new Date(endedMs).toISOString(), passed: hasPassed, detail };
}

function ejectionJson({ kind, successRate, count, beganMs, endedMs }: EjectionView): JsonObject {
  return {
    kind,
    time: new Date(beganMs).toISOString(),
    count,
    ...(successRate === undefined ? {} : { success_rate: successRate }),
    ...(endedMs === undefined ? {} : { ended: new Date(endedMs).toISOString() }),
  };
}
