// RedisClusterConfig messages → how the servers of a Redis cluster are found.

import type { DnsTarget, RedisDiscoverySettings } from '../../snapshot/index.ts';
import type { Conversion } from './conversion.ts';
import { REDIS_TYPE, redisClusterOf } from './discovery-type.ts';
import { convertDnsDiscovery } from './dns-discovery.ts';
import type { Cluster } from './messages.ts';
import { durationMsOr } from './units.ts';

const DEFAULT_REFRESH_MS = 5000;
const DEFAULT_TIMEOUT_MS = 3000;
const DEFAULT_REDIRECT_INTERVAL_MS = 5000;

/** @param targets the endpoints of the configuration, which are asked first. */
export function convertRedisDiscovery(
  message: Cluster,
  targets: readonly DnsTarget[],
  at: string,
  conversion: Conversion,
): RedisDiscoverySettings {
  const { faults } = conversion;
  const { cluster_refresh_rate, cluster_refresh_timeout, redirect_refresh_interval } = redisClusterOf(message)!;
  if (targets.length === 0) faults.error(`${at}.load_assignment`, `type ${REDIS_TYPE} needs endpoints to ask`);
  return {
    kind: 'redis',
    seeds: convertDnsDiscovery('strict-dns', message, targets, at, conversion),
    refreshMs: durationMsOr(cluster_refresh_rate, DEFAULT_REFRESH_MS),
    timeoutMs: durationMsOr(cluster_refresh_timeout, DEFAULT_TIMEOUT_MS),
    redirectIntervalMs: durationMsOr(redirect_refresh_interval, DEFAULT_REDIRECT_INTERVAL_MS),
  };
}
