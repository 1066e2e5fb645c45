// Names of filter state that something reads by itself; data-plane/network/filter-state.ts has them as well.

/** Of requests; what is said of their connections under these names counts where nothing is said of them. */
export const REQUEST_STATE_KEYS: readonly string[] = ['envoy.upstream.dynamic_host', 'envoy.upstream.dynamic_port'];

/** Of connections. */
export const CONNECTION_STATE_KEYS: readonly string[] = [
  'envoy.network.upstream_server_name',
  'envoy.tcp_proxy.cluster',
  'envoy.tcp_proxy.per_connection_idle_timeout_ms',
  ...REQUEST_STATE_KEYS,
];
