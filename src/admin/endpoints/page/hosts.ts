// GET /page/hosts: the hosts of one cluster, each with why it is as it is.

import { formatAddress } from '../../../base/address.ts';
import type { Host, Hosts } from '../../../page/data.ts';
import { endpoint } from '../../endpoint.ts';
import { text } from '../../parameter.ts';
import { CONFIGURED, HEALTH_FLAGS } from '../../render/health-flags.ts';
import { textResponse } from '../../response.ts';
import type { HostView, RecentTimesView } from '../../views/index.ts';
import { pageJson } from './page-json.ts';

const MOST_HOSTS = 500;

const FAILED_CHECK = 0x1;
const EJECTED = 0x2;
const DEGRADED = 0x8 | CONFIGURED.degraded;
const LEAVING = 0x20;
const UNCHECKED = 0x40;
const UNHEALTHY = FAILED_CHECK | EJECTED | CONFIGURED.unhealthy;

export const PAGE_HOSTS = endpoint({
  path: '/page/hosts',
  help: 'Hosts of a cluster',
  parameters: { cluster: text('Name of the cluster') },
  handle({ clusters, overview }, { cluster: wanted = '' }) {
    const cluster = clusters.cluster(wanted);
    if (cluster === undefined) return textResponse('there is no such cluster\n', 404);
    // What needs attention comes first, the rest in the order of the cluster.
    const all = [...cluster.hosts()];
    const sorted = all.toSorted((a, b) => Number(b.healthFlags !== 0) - Number(a.healthFlags !== 0));
    const shown = sorted.slice(0, MOST_HOSTS);
    const times = overview?.hostTimes(wanted, new Set(shown));
    const body: Hosts = { hosts: shown.map((host) => hostRow(host, times?.get(host))), hostCount: all.length };
    return pageJson(body);
  },
});

function hostRow(host: HostView, times: RecentTimesView | undefined): Host {
  const { stats, locality } = host;
  return {
    address: formatAddress(host.address),
    hostname: host.hostname,
    health: healthOf(host.healthFlags),
    ...reasonOf(host),
    weight: host.weight,
    zone: [locality.region, locality.zone, locality.subZone].filter(Boolean).join('/'),
    priority: host.priority,
    activeConnections: stats.cx_active,
    activeRequests: stats.rq_active,
    requests: stats.rq_total,
    successes: stats.rq_success,
    errors: stats.rq_error,
    connectFailures: stats.cx_connect_fail,
    p50Ms: known(times?.p50Ms),
    p99Ms: known(times?.p99Ms),
    ejections: host.lastEjection?.count ?? 0,
  };
}

function known(value = Number.NaN): number | null {
  return Number.isNaN(value) ? null : Math.round(value * 100) / 100;
}

function healthOf(flags: number): Host['health'] {
  if ((flags & UNHEALTHY) !== 0) return 'unhealthy';
  return (flags & DEGRADED) !== 0 ? 'degraded' : 'healthy';
}

/** The reason that says most, and since when it holds. */
function reasonOf({ healthFlags: flags, decidingCheck, lastEjection }: HostView): Pick<Host, 'reason' | 'sinceMs'> {
  if ((flags & EJECTED) !== 0 && lastEjection !== undefined) {
    const rate = lastEjection.successRate === undefined ? '' : `, success ${lastEjection.successRate.toFixed(1)} %`;
    return { reason: `ejected: ${lastEjection.kind}${rate}`, sinceMs: lastEjection.beganMs };
  }
  if ((flags & UNCHECKED) !== 0 && decidingCheck === undefined) return { reason: 'not checked yet', sinceMs: null };
  if ((flags & FAILED_CHECK) !== 0 && decidingCheck === undefined) return { reason: 'not checked yet', sinceMs: null };
  if ((flags & FAILED_CHECK) !== 0 || (decidingCheck !== undefined && (flags & UNHEALTHY) === 0)) {
    const { kind, hasPassed, detail, endedMs } = decidingCheck!;
    const result = hasPassed ? 'passed' : 'failed';
    return { reason: `${kind} check ${result}${detail === '' ? '' : `: ${detail}`}`, sinceMs: endedMs };
  }
  const words: string[] = [];
  if ((flags & (CONFIGURED.unhealthy | CONFIGURED.degraded)) !== 0) words.push('so configured');
  if ((flags & CONFIGURED.draining) !== 0) words.push('draining');
  if ((flags & LEAVING) !== 0) words.push('to be removed');
  const known = HEALTH_FLAGS.filter(([bit]) => (flags & bit) !== 0).map(([, name]) => name.slice(1));
  return { reason: words.length === 0 ? known.join(', ') : words.join(', '), sinceMs: null };
}
