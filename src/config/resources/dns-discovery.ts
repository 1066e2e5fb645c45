// The DNS fields of a Cluster message → DnsDiscoverySettings. The older fields (dns_resolvers on the cluster) are
// superseded by dns_resolution_config, and a cluster's own resolvers by nothing of the bootstrap.

import { formatAddress } from '../../base/address.ts';
import type { DnsDiscoverySettings, DnsLookupFamily, DnsTarget } from '../../snapshot/index.ts';
import { Cluster_DnsLookupFamily } from '../proto/generated/enums.ts';
import { convertAddress } from './address.ts';
import { enumName } from './enum-name.ts';
import type { FaultSink } from './fault-sink.ts';
import type { Cluster } from './messages.ts';
import { durationMs, durationMsOr } from './units.ts';

const DEFAULT_REFRESH_RATE_MS = 5000;
const DEFAULT_MAX_INTERVAL_FACTOR = 10;
const DNS_PORT = 53;

export function convertDnsDiscovery(
  message: Cluster,
  targets: readonly DnsTarget[],
  at: string,
  faults: FaultSink,
): DnsDiscoverySettings {
  const options = message.dns_resolution_config?.dns_resolver_options;
  return {
    kind: 'strict-dns',
    targets,
    lookupFamily: enumName(Cluster_DnsLookupFamily, message.dns_lookup_family) as DnsLookupFamily,
    refreshRateMs: durationMsOr(message.dns_refresh_rate, DEFAULT_REFRESH_RATE_MS),
    failureRefresh: convertFailureRefresh(message.dns_failure_refresh_rate),
    jitterMs: durationMsOr(message.dns_jitter, 0),
    respectTtl: message.respect_dns_ttl,
    resolvers: convertResolvers(message, at, faults),
    useSearchDomains: !(options?.no_default_search_domain ?? false),
  };
}

function convertFailureRefresh(rate: Cluster['dns_failure_refresh_rate']): DnsDiscoverySettings['failureRefresh'] {
  if (rate === null || rate.base_interval === null) return undefined;
  const baseMs = durationMs(rate.base_interval);
  return { baseMs, maxMs: durationMsOr(rate.max_interval, baseMs * DEFAULT_MAX_INTERVAL_FACTOR) };
}

function convertResolvers(message: Cluster, at: string, faults: FaultSink): readonly string[] {
  const newer = message.dns_resolution_config;
  const [addresses, listAt] =
    newer === null
      ? [message.dns_resolvers, `${at}.dns_resolvers`]
      : [newer.resolvers, `${at}.dns_resolution_config.resolvers`];
  return addresses.flatMap((entry, index) => {
    const address = convertAddress(entry, `${listAt}[${index}]`, 'resolver', faults);
    if (address === undefined) return [];
    if (address.kind === 'ip')
      return [formatAddress({ ...address, port: address.port === 0 ? DNS_PORT : address.port })];
    faults.error(`${listAt}[${index}].pipe`, 'a DNS server is asked at an IP address');
    return [];
  });
}
