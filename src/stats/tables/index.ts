export {
  CIRCUIT_BREAKER_GAUGES,
  CIRCUIT_BREAKER_REMAINING_GAUGES,
  CLUSTER_STATS,
  ENDPOINT_DISCOVERY_STATS,
  HEALTH_CHECK_STATS,
  MESSAGE_SIZE_STATS,
  OUTLIER_STATS,
  TIMEOUT_BUDGET_STATS,
  TRANSPORT_SOCKET_MATCH_STATS,
} from './cluster.ts';
export { DNS_CACHE_STATS } from './dns-cache.ts';
export { MAGLEV_STATS, RING_HASH_STATS } from './hash-balancers.ts';
export { HOST_STATS, HOST_TIME_STATS, OUTLIER_HOST_STATS } from './host.ts';
export { HTTP_STATS } from './http.ts';
export { HTTP1_STATS } from './http1.ts';
export { HTTP2_STATS, type Http2Stat } from './http2.ts';
export {
  HTTP_INSPECTOR_STATS,
  LISTENER_HTTP_STATS,
  LISTENER_RATE_LIMIT_STATS,
  LISTENER_STATS,
  LISTENER_WORKER_STATS,
  PROXY_PROTOCOL_STATS,
  SSL_SOCKET_FACTORY_STATS,
  TLS_INSPECTOR_STATS,
  TLS_STATS,
} from './listener.ts';
export {
  CLUSTER_MANAGER_STATS,
  DISPATCHER_STATS,
  FILESYSTEM_STATS,
  LISTENER_MANAGER_STATS,
  RUNTIME_STATS,
  SECRET_STATS,
  SUBSCRIPTION_STATS,
  WATCHDOG_STATS,
  WORKER_CLUSTER_MANAGER_STATS,
} from './managers.ts';
export {
  HEAP_SHRINK_STATS,
  LOAD_SHED_STATS,
  OVERLOAD_ACTION_STATS,
  OVERLOAD_MONITOR_STATS,
  STREAM_RESET_STATS,
} from './overload.ts';
export { OTHER_VIRTUAL_CLUSTER, ROUTE_STATS, routeScope, virtualClusterScope } from './routes.ts';
export { SERVER_STATS } from './server.ts';
export { HYSTRIX_STATS, STAT_SINK_STATS, STATSD_TCP_STATS } from './sinks.ts';
export { STATISTICS_STATS } from './statistics.ts';
export { TAP_STATS } from './tap.ts';
export { TCP_PROXY_STATS } from './tcp-proxy.ts';
export { UDP_CLUSTER_STATS, UDP_LISTENER_STATS, UDP_PROXY_STATS } from './udp-proxy.ts';
