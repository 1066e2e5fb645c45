// Names of filter state that something reads by itself; data-plane/network/filter-state.ts has them as well.

/** Of connections. */
export const CONNECTION_STATE_KEYS: readonly string[] = [
  'envoy.network.upstream_server_name',
  'envoy.tcp_proxy.cluster',
  'envoy.tcp_proxy.per_connection_idle_timeout_ms',
  'envoy.upstream.dynamic_host',
  'envoy.upstream.dynamic_port',
];
