// The DNS fields of a Cluster message → DnsDiscoverySettings. Who is asked: the cluster's own resolver in its newest
// form (typed_dns_resolver_config, dns_resolution_config, dns_resolvers), else that of the bootstrap.

import type { DnsDiscoverySettings, DnsLookupFamily, DnsResolverSettings, DnsTarget } from '../../snapshot/index.ts';
import { Cluster_DnsLookupFamily, DnsLookupFamily as NewerLookupFamily } from '../proto/generated/enums.ts';
import { int64ToNumber } from '../proto/int64.ts';
import { convertAddress } from './address.ts';
import type { Conversion } from './conversion.ts';
import { dnsSettingsOf } from './discovery-type.ts';
import { enumName } from './enum-name.ts';
import { openExtension } from './extension.ts';
import { convertFamilyOrder } from './family-order.ts';
import type { FaultSink } from './fault-sink.ts';
import type { AddressMessage, Bootstrap, CaresDnsResolverConfig, Cluster, DnsCluster } from './messages.ts';
import { durationMs, durationMsOr, valueOr } from './units.ts';

const DEFAULT_REFRESH_RATE_MS = 5000;
const DEFAULT_MAX_INTERVAL_FACTOR = 10;
const DEFAULT_QUERY_TIMEOUT_SECONDS = 5;
const DEFAULT_QUERY_TRIES = 4;
/** What every server may send, and what reaches most networks. */
const LEAST_PAYLOAD_BYTES = 512;
const MOST_PAYLOAD_BYTES = 4096;
const DNS_PORT = 53;
const CARES_RESOLVER = 'proxy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig';

export const SYSTEM_RESOLVER: DnsResolverSettings = {
  servers: [],
  serversAreFallback: false,
  useTcp: false,
  useSearchDomains: true,
  rotate: false,
  queryTimeoutMs: DEFAULT_QUERY_TIMEOUT_SECONDS * 1000,
  queryTries: DEFAULT_QUERY_TRIES,
};

export function convertDnsDiscovery(
  kind: DnsDiscoverySettings['kind'],
  message: Cluster,
  targets: readonly DnsTarget[],
  at: string,
  { defaultResolver = SYSTEM_RESOLVER, faults }: Conversion,
): DnsDiscoverySettings {
  const newer = dnsSettingsOf(message);
  const { dns_refresh_rate, dns_failure_refresh_rate, dns_jitter, respect_dns_ttl } = newer ?? message;
  return {
    kind,
    targets,
    lookupFamily: newer === undefined ? lookupFamilyOf(message) : newerLookupFamilyOf(newer),
    familyOrder: convertFamilyOrder(message),
    refreshRateMs: durationMsOr(dns_refresh_rate, DEFAULT_REFRESH_RATE_MS),
    failureRefresh: convertFailureRefresh(dns_failure_refresh_rate),
    jitterMs: durationMsOr(dns_jitter, 0),
    respectTtl: respect_dns_ttl,
    resolver:
      newer === undefined
        ? convertResolver(message, message.dns_resolvers, `${at}.`, defaultResolver, faults)
        : (convertTypedResolver(newer, `${at}.cluster_type.typed_config.`, faults) ?? defaultResolver),
  };
}

function lookupFamilyOf(message: Cluster): DnsLookupFamily {
  return enumName(Cluster_DnsLookupFamily, message.dns_lookup_family) as DnsLookupFamily;
}

function newerLookupFamilyOf({ dns_lookup_family: family }: DnsCluster): DnsLookupFamily {
  return family === NewerLookupFamily.UNSPECIFIED ? 'AUTO' : (enumName(NewerLookupFamily, family) as DnsLookupFamily);
}

/** The resolver of clusters without one of their own. */
export function convertDefaultResolver(message: Bootstrap, faults: FaultSink): DnsResolverSettings {
  return convertResolver(message, [], '', SYSTEM_RESOLVER, faults);
}

/** The fields that clusters and the bootstrap have in common. */
type ResolverFields = Pick<Cluster, 'typed_dns_resolver_config' | 'dns_resolution_config' | 'use_tcp_for_dns_lookups'>;

/** @param at path of the message with its final dot, empty for the root. */
export function convertResolver(
  message: ResolverFields,
  oldServers: readonly AddressMessage[],
  at: string,
  otherwise: DnsResolverSettings,
  faults: FaultSink,
): DnsResolverSettings {
  const typed = convertTypedResolver(message, at, faults);
  if (typed !== undefined) return typed;
  const newer = message.dns_resolution_config;
  if (newer !== null) {
    const servers = convertServers(newer.resolvers, `${at}dns_resolution_config.resolvers`, faults);
    return { ...SYSTEM_RESOLVER, servers, ...convertOptions(newer.dns_resolver_options) };
  }
  const useTcp = message.use_tcp_for_dns_lookups;
  if (oldServers.length === 0) return useTcp ? { ...otherwise, useTcp } : otherwise;
  return { ...SYSTEM_RESOLVER, servers: convertServers(oldServers, `${at}dns_resolvers`, faults), useTcp };
}

function convertTypedResolver(
  { typed_dns_resolver_config: typed }: Pick<Cluster, 'typed_dns_resolver_config'>,
  at: string,
  faults: FaultSink,
): DnsResolverSettings | undefined {
  const opened = openExtension(typed?.typed_config ?? null);
  // The support table refuses other types.
  if (opened?.typeName !== CARES_RESOLVER) return undefined;
  return convertCares(opened.message as CaresDnsResolverConfig, `${at}typed_dns_resolver_config.typed_config`, faults);
}

function convertCares(message: CaresDnsResolverConfig, at: string, faults: FaultSink): DnsResolverSettings {
  const timeoutSeconds = message.query_timeout_seconds?.value ?? DEFAULT_QUERY_TIMEOUT_SECONDS;
  return {
    servers: convertServers(message.resolvers, `${at}.resolvers`, faults),
    serversAreFallback: message.use_resolvers_as_fallback,
    ...convertOptions(message.dns_resolver_options),
    rotate: message.rotate_nameservers,
    queryTimeoutMs: int64ToNumber(timeoutSeconds) * 1000,
    queryTries: valueOr(message.query_tries, DEFAULT_QUERY_TRIES),
    ...convertPayload(message, at, faults),
    ...(message.filter_unroutable_families ? { leavesOutUnroutable: true } : {}),
  };
}

function convertPayload(
  { edns0_max_payload_size: size }: CaresDnsResolverConfig,
  at: string,
  faults: FaultSink,
): Pick<DnsResolverSettings, 'udpPayloadBytes'> {
  if (size === null) return {};
  const { value } = size;
  if (value < LEAST_PAYLOAD_BYTES || value > MOST_PAYLOAD_BYTES) {
    const range = `${LEAST_PAYLOAD_BYTES} to ${MOST_PAYLOAD_BYTES}`;
    faults.error(`${at}.edns0_max_payload_size`, `${value} is outside of ${range} bytes`);
  }
  return { udpPayloadBytes: value };
}

function convertOptions(
  options: CaresDnsResolverConfig['dns_resolver_options'],
): Pick<DnsResolverSettings, 'useTcp' | 'useSearchDomains'> {
  return {
    useTcp: options?.use_tcp_for_dns_lookups ?? false,
    useSearchDomains: !(options?.no_default_search_domain ?? false),
  };
}

export function convertFailureRefresh(
  rate: Cluster['dns_failure_refresh_rate'],
): DnsDiscoverySettings['failureRefresh'] {
  if (rate === null || rate.base_interval === null) return undefined;
  const baseMs = durationMs(rate.base_interval);
  return { baseMs, maxMs: durationMsOr(rate.max_interval, baseMs * DEFAULT_MAX_INTERVAL_FACTOR) };
}

function convertServers(
  addresses: readonly AddressMessage[],
  at: string,
  faults: FaultSink,
): DnsResolverSettings['servers'] {
  return addresses.flatMap((entry, index) => {
    const address = convertAddress(entry, `${at}[${index}]`, 'resolver', faults);
    if (address === undefined) return [];
    if (address.kind === 'ip') return [{ ip: address.ip, port: address.port === 0 ? DNS_PORT : address.port }];
    faults.error(`${at}[${index}].pipe`, 'a DNS server is asked at an IP address');
    return [];
  });
}
