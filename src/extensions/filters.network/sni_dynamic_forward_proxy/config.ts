// sni_dynamic_forward_proxy: FilterConfig message → the port of hosts. Who looks names up, and keeps the hosts, is the cluster; the
// filter's dns_cache_config has to say the same.

import {
  convertDnsCache,
  type MessageTypes,
  type NetworkFilterManifest,
  rejected,
  supported,
  warned,
} from '../../../config/index.ts';

const CONFIG = 'proxy.extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig';
const HTTPS_PORT = 443;

export const SNI_DYNAMIC_FORWARD_PROXY: NetworkFilterManifest = {
  isTerminal: false,
  support: {
    [CONFIG]: {
      otherwise: rejected(),
      fields: {
        dns_cache_config: supported('that of the cluster, which has to say the same'),
        port_value: supported(),
        save_upstream_address: warned('no filter here judges addresses of upstreams'),
      },
    },
  },
  convert(message, at, conversion) {
    const { dns_cache_config: cache, port_specifier, port_value } = message as MessageTypes[typeof CONFIG];
    // Without it a field rule has been broken.
    if (cache !== null) convertDnsCache(cache, `${at}.dns_cache_config`, conversion);
    const port = port_specifier === 'port_value' ? port_value : HTTPS_PORT;
    return { name: 'filters.network.sni_dynamic_forward_proxy', settings: String(port) };
  },
};
