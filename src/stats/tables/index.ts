export {
  CIRCUIT_BREAKER_GAUGES,
  CIRCUIT_BREAKER_REMAINING_GAUGES,
  CLUSTER_STATS,
  HEALTH_CHECK_STATS,
  HTTP1_CODEC_STATS,
  MESSAGE_SIZE_STATS,
  OUTLIER_STATS,
  TIMEOUT_BUDGET_STATS,
  TRANSPORT_SOCKET_MATCH_STATS,
} from './cluster.ts';
export { MAGLEV_STATS, RING_HASH_STATS } from './hash-balancers.ts';
export { HOST_STATS, OUTLIER_HOST_STATS } from './host.ts';
export { HTTP_STATS } from './http.ts';
export {
  CONNECTION_LIMIT_STATS,
  LISTENER_HTTP_STATS,
  LISTENER_STATS,
  LISTENER_WORKER_STATS,
  PROXY_PROTOCOL_STATS,
} from './listener.ts';
export {
  CLUSTER_MANAGER_STATS,
  FILESYSTEM_STATS,
  LISTENER_MANAGER_STATS,
  RUNTIME_STATS,
  WATCHDOG_STATS,
  WORKER_CLUSTER_MANAGER_STATS,
} from './managers.ts';
export { SERVER_STATS } from './server.ts';
export { HYSTRIX_STATS, STAT_SINK_STATS, STATSD_TCP_STATS } from './sinks.ts';
export { STATISTICS_STATS } from './statistics.ts';
export { TAP_STATS } from './tap.ts';
export { TCP_PROXY_STATS } from './tcp-proxy.ts';
