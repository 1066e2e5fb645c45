// FilterConfig and PerRouteConfig messages → settings of the dynamic_forward_proxy filter. Who looks names up, and keeps the
// hosts, is the cluster; the filter's dns_cache_config has to say the same.

import {
  convertDnsCache,
  type ForwardProxyFilterMessage,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  supported,
  warned,
} from '../../../config/index.ts';
import type { ForwardProxySettings, HostRewrite } from './settings.ts';

const FILTER = 'proxy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig';
const PER_ROUTE = 'proxy.extensions.filters.http.dynamic_forward_proxy.v3.PerRouteConfig';

export const DYNAMIC_FORWARD_PROXY: HttpFilterManifest = {
  support: {
    [FILTER]: {
      otherwise: rejected(),
      fields: {
        dns_cache_config: supported('that of the cluster, which has to say the same'),
        sub_cluster_config: rejected('hosts share the settings of their cluster; use dns_cache_config'),
        save_upstream_address: warned('no filter here judges addresses of upstreams'),
        allow_dynamic_host_from_filter_state: supported('the host header stays as it is'),
      },
    },
    [PER_ROUTE]: {
      otherwise: rejected(),
      fields: { host_rewrite_literal: supported(), host_rewrite_header: supported() },
    },
  },
  convert(message, at, conversion) {
    const { dns_cache_config: cache, allow_dynamic_host_from_filter_state: readsState } =
      message as ForwardProxyFilterMessage;
    if (cache === null) conversion.faults.error(at, 'needs dns_cache_config');
    else convertDnsCache(cache, `${at}.dns_cache_config`, conversion);
    return { name: 'filters.http.dynamic_forward_proxy', settings: { readsState } satisfies ForwardProxySettings };
  },
  ofRoutes: { type: PER_ROUTE, convert: (message) => rewriteOf(message as MessageTypes[typeof PER_ROUTE]) },
};

function rewriteOf(message: MessageTypes[typeof PER_ROUTE]): HostRewrite | 'off' {
  const { host_rewrite_literal: literal, host_rewrite_header: header } = message;
  if (literal) return { literal };
  return header ? { header: header.toLowerCase() } : 'off';
}
