// What the filters of a connection say to those behind them, by names that configurations use as well.

/** The cluster that the TCP proxy connects to, in place of the one that it names itself. */
export const TCP_PROXY_CLUSTER = 'envoy.tcp_proxy.cluster';
/** The server name that connections to an upstream announce. */
export const UPSTREAM_SERVER_NAME = 'envoy.network.upstream_server_name';

export type FilterState = Map<string, string>;
