// DnsCacheConfig messages → DnsCacheSettings: the hosts that clients may name, and how their names are looked up.

import type { DnsCacheSettings, DnsLookupFamily } from '../../snapshot/index.ts';
import { Cluster_DnsLookupFamily } from '../proto/generated/enums.ts';
import { quote } from '../source/node.ts';
import { convertNamedAddress } from './address.ts';
import type { Conversion } from './conversion.ts';
import { convertFailureRefresh, convertResolver, SYSTEM_RESOLVER } from './dns-discovery.ts';
import { enumName } from './enum-name.ts';
import type { DnsCacheConfig } from './messages.ts';
import { durationMs, durationMsOr, valueOr } from './units.ts';

const DEFAULT_REFRESH_RATE_MS = 60_000;
const DEFAULT_MIN_REFRESH_RATE_MS = 5000;
const DEFAULT_HOST_TTL_MS = 300_000;
const DEFAULT_MAX_HOSTS = 1024;
const DEFAULT_MAX_PENDING = 1024;
const DEFAULT_QUERY_TIMEOUT_MS = 5000;

/** @param at path of the message. */
export function convertDnsCache(message: DnsCacheConfig, at: string, conversion: Conversion): DnsCacheSettings {
  const { faults, dnsCaches, defaultResolver = SYSTEM_RESOLVER } = conversion;
  const { dns_failure_refresh_rate: failureRate } = message;
  const { base_interval: base = null, max_interval: max = null } = failureRate ?? {};
  if (base !== null && max !== null && durationMs(max) < durationMs(base)) {
    faults.error(`${at}.dns_failure_refresh_rate.max_interval`, 'must not be less than base_interval');
  }
  const maxHosts = valueOr(message.max_hosts, DEFAULT_MAX_HOSTS);
  const preresolved = message.preresolve_hostnames.flatMap((socket_address, index) => {
    const address = { socket_address, pipe: null } as Parameters<typeof convertNamedAddress>[0];
    return convertNamedAddress(address, `${at}.preresolve_hostnames[${index}]`, faults) ?? [];
  });
  if (preresolved.length > maxHosts) {
    const text = `${preresolved.length} names, more than max_hosts (${maxHosts}) allows`;
    faults.error(`${at}.preresolve_hostnames`, text);
  }
  const settings: DnsCacheSettings = {
    name: message.name,
    lookupFamily: enumName(Cluster_DnsLookupFamily, message.dns_lookup_family) as DnsLookupFamily,
    refreshRateMs: durationMsOr(message.dns_refresh_rate, DEFAULT_REFRESH_RATE_MS),
    minRefreshRateMs: durationMsOr(message.dns_min_refresh_rate, DEFAULT_MIN_REFRESH_RATE_MS),
    failureRefresh: convertFailureRefresh(failureRate),
    forgetsFailures: message.disable_dns_refresh_on_failure,
    hostTtlMs: durationMsOr(message.host_ttl, DEFAULT_HOST_TTL_MS),
    maxHosts,
    maxPending: valueOr(message.dns_cache_circuit_breaker?.max_pending_requests, DEFAULT_MAX_PENDING),
    queryTimeoutMs: durationMsOr(message.dns_query_timeout, DEFAULT_QUERY_TIMEOUT_MS),
    preresolved,
    resolver: convertResolver(message, [], `${at}.`, defaultResolver, faults),
  };
  const elsewhere = dnsCaches?.differingAt(settings, at);
  if (elsewhere !== undefined) {
    faults.error(at, `the DNS cache ${quote(message.name)} has other settings in ${elsewhere}`);
  }
  return settings;
}
