// What a Cluster message says of members that are the hosts which requests name (cluster type
// clusters.dynamic_forward_proxy) → settings of both planes.

import type { DnsCacheSettings, ForwardProxySettings } from '../../snapshot/index.ts';
import type { Conversion } from './conversion.ts';
import { FORWARD_PROXY_TYPE, forwardProxyOf } from './discovery-type.ts';
import { convertDnsCache } from './dns-cache.ts';
import type { FaultSink } from './fault-sink.ts';
import type { Cluster } from './messages.ts';
import { upstreamHttpOptions } from './upstream-options.ts';
import { isSecured } from './upstream-transport.ts';

const HTTP_PORT = 80;
const HTTPS_PORT = 443;

/** @returns undefined where there is no cache to use; a fault says so. */
export function convertForwardProxyCache(
  cluster: Cluster,
  at: string,
  conversion: Conversion,
): DnsCacheSettings | undefined {
  const config = forwardProxyOf(cluster)?.dns_cache_config ?? null;
  const configAt = `${at}.cluster_type.typed_config`;
  if (config !== null) return convertDnsCache(config, `${configAt}.dns_cache_config`, conversion);
  // Without it the support table has refused what stands in its place.
  conversion.faults.error(configAt, 'needs dns_cache_config');
  return undefined;
}

/** @returns nothing for clusters of other types, to be spread into settings. */
export function convertForwardProxy(
  cluster: Cluster,
  at: string,
  faults: FaultSink,
): { readonly forwardProxy?: ForwardProxySettings } {
  const config = forwardProxyOf(cluster);
  if (config === undefined) return {};
  checkMembers(cluster, at, faults);
  const isTls = isSecured(cluster);
  const found = upstreamHttpOptions(cluster, at);
  if (isTls && found !== undefined && !config.allow_insecure_cluster_options) {
    for (const field of ['auto_sni', 'auto_san_validation'] as const) {
      if (found.message[field]) continue;
      const reason = `needs to be true in a cluster of type ${FORWARD_PROXY_TYPE}, unless allow_insecure_cluster_options is`;
      faults.error(`${found.at}.${field}`, reason);
    }
  }
  return {
    forwardProxy: {
      defaultPort: isTls ? HTTPS_PORT : HTTP_PORT,
      namesServers: isTls && found === undefined,
    },
  };
}

function checkMembers({ load_assignment, hosts }: Cluster, at: string, faults: FaultSink): void {
  const reason = `type ${FORWARD_PROXY_TYPE} takes its members from the requests`;
  if (load_assignment !== null) faults.error(`${at}.load_assignment`, reason);
  if (hosts.length > 0) faults.error(`${at}.hosts`, reason);
}
