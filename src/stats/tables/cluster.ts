// cluster.<name>.*: one upstream cluster. Response codes are not here: they come as they are met.

import { statTable } from '../stat-table.ts';

export const CLUSTER_STATS = statTable({
  upstream_cx_total: 'counter',
  upstream_cx_http1_total: 'counter',
  upstream_cx_http2_total: 'counter',
  upstream_cx_http3_total: 'counter',
  upstream_cx_active: 'gauge',
  upstream_cx_connect_fail: 'counter',
  upstream_cx_connect_timeout: 'counter',
  upstream_cx_connect_attempts_exceeded: 'counter',
  upstream_cx_connect_with_0_rtt: 'counter',
  upstream_cx_idle_timeout: 'counter',
  upstream_cx_max_duration_reached: 'counter',
  upstream_cx_max_requests: 'counter',
  upstream_cx_overflow: 'counter',
  upstream_cx_pool_overflow: 'counter',
  upstream_cx_connect_ms: 'histogram:ms',
  upstream_cx_length_ms: 'histogram:ms',
  upstream_cx_destroy: 'counter',
  upstream_cx_destroy_local: 'counter',
  upstream_cx_destroy_remote: 'counter',
  upstream_cx_destroy_with_active_rq: 'counter',
  upstream_cx_destroy_local_with_active_rq: 'counter',
  upstream_cx_destroy_remote_with_active_rq: 'counter',
  upstream_cx_close_notify: 'counter',
  upstream_cx_rx_bytes_total: 'counter',
  upstream_cx_tx_bytes_total: 'counter',
  upstream_cx_rx_bytes_buffered: 'gauge',
  upstream_cx_tx_bytes_buffered: 'gauge',
  upstream_cx_protocol_error: 'counter',
  upstream_cx_none_healthy: 'counter',
  upstream_rq_total: 'counter',
  upstream_rq_completed: 'counter',
  upstream_rq_active: 'gauge',
  upstream_rq_pending_total: 'counter',
  upstream_rq_pending_overflow: 'counter',
  upstream_rq_pending_failure_eject: 'counter',
  upstream_rq_pending_active: 'gauge',
  upstream_rq_per_cx: 'histogram:count',
  upstream_rq_time: 'histogram:ms',
  upstream_rq_cancelled: 'counter',
  upstream_rq_maintenance_mode: 'counter',
  upstream_rq_drop_overload: 'counter',
  upstream_rq_timeout: 'counter',
  upstream_rq_max_duration_reached: 'counter',
  upstream_rq_per_try_timeout: 'counter',
  upstream_rq_per_try_idle_timeout: 'counter',
  upstream_rq_0rtt: 'counter',
  upstream_rq_rx_reset: 'counter',
  upstream_rq_tx_reset: 'counter',
  upstream_rq_retry: 'counter',
  upstream_rq_retry_backoff_exponential: 'counter',
  upstream_rq_retry_backoff_ratelimited: 'counter',
  upstream_rq_retry_limit_exceeded: 'counter',
  upstream_rq_retry_success: 'counter',
  upstream_rq_retry_overflow: 'counter',
  upstream_flow_control_paused_reading_total: 'counter',
  upstream_flow_control_resumed_reading_total: 'counter',
  upstream_flow_control_backed_up_total: 'counter',
  upstream_flow_control_drained_total: 'counter',
  upstream_internal_redirect_failed_total: 'counter',
  upstream_internal_redirect_succeeded_total: 'counter',
  membership_change: 'counter',
  membership_total: 'gauge',
  membership_healthy: 'gauge',
  membership_degraded: 'gauge',
  membership_excluded: 'gauge',
  retry_or_shadow_abandoned: 'counter',
  config_reload: 'counter',
  update_attempt: 'counter',
  update_success: 'counter',
  update_failure: 'counter',
  update_empty: 'counter',
  update_no_rebuild: 'counter',
  update_rejected: 'counter',
  update_duration: 'histogram:ms',
  version: 'gauge',
  warming_state: 'gauge',
  max_host_weight: 'gauge',
  bind_errors: 'counter',
  original_dst_host_invalid: 'counter',
  original_dst_host_overflow: 'counter',
  assignment_stale: 'counter',
  assignment_timeout_received: 'counter',
  assignment_use_cached: 'counter',
  lb_recalculate_zone_structures: 'counter',
  lb_healthy_panic: 'counter',
  lb_local_cluster_not_ok: 'counter',
  lb_zone_cluster_too_small: 'counter',
  lb_zone_no_capacity_left: 'counter',
  lb_zone_number_differs: 'counter',
  lb_zone_routing_all_directly: 'counter',
  lb_zone_routing_sampled: 'counter',
  lb_zone_routing_cross_zone: 'counter',
  lb_subsets_active: 'gauge',
  lb_subsets_created: 'counter',
  lb_subsets_removed: 'counter',
  lb_subsets_selected: 'counter',
  lb_subsets_fallback: 'counter',
  lb_subsets_fallback_panic: 'counter',
  lb_subsets_single_host_per_subset_duplicate: 'gauge',
});

/** cluster.<name>.*, beside the rows above that subscriptions count: of clusters whose endpoints come by discovery. */
export const ENDPOINT_DISCOVERY_STATS = statTable({
  /** The start went on without an assignment. */
  init_fetch_timeout: 'counter',
  /** When the last one came, in milliseconds of Unix time. */
  update_time: 'gauge',
});

/** cluster.<name>.*: how much of their time requests have used, in percent, of clusters that want to know. */
/** cluster.<name>.transport_socket_match.<name of the match>.*, in clusters that have matches. */
export const TRANSPORT_SOCKET_MATCH_STATS = statTable({
  total_match_count: 'counter',
});

export const TIMEOUT_BUDGET_STATS = statTable({
  upstream_rq_timeout_budget_percent_used: 'histogram:count',
  upstream_rq_timeout_budget_per_try_percent_used: 'histogram:count',
});

/** cluster.<name>.*: how large messages are, of clusters that want to know. */
export const MESSAGE_SIZE_STATS = statTable({
  upstream_rq_headers_size: 'histogram:bytes',
  upstream_rq_headers_count: 'histogram:count',
  upstream_rq_body_size: 'histogram:bytes',
  upstream_rs_headers_size: 'histogram:bytes',
  upstream_rs_headers_count: 'histogram:count',
  upstream_rs_body_size: 'histogram:bytes',
});

/** cluster.<name>.health_check.*: of clusters whose members are checked. */
export const HEALTH_CHECK_STATS = statTable({
  attempt: 'counter',
  success: 'counter',
  failure: 'counter',
  passive_failure: 'counter',
  network_failure: 'counter',
  verify_cluster: 'counter',
  /** Of checks over TLS: so many have waited for others' handshakes. */
  handshake_queued: 'counter',
  healthy: 'gauge',
  degraded: 'gauge',
});

/** cluster.<name>.outlier_detection.*: of clusters with a detector. */
export const OUTLIER_STATS = statTable({
  ejections_active: 'gauge',
  // The first three are older names of others.
  ejections_consecutive_5xx: 'counter',
  ejections_success_rate: 'counter',
  ejections_total: 'counter',
  ejections_detected_consecutive_5xx: 'counter',
  ejections_detected_consecutive_gateway_failure: 'counter',
  ejections_detected_consecutive_local_origin_failure: 'counter',
  ejections_detected_failure_percentage: 'counter',
  ejections_detected_local_origin_failure_percentage: 'counter',
  ejections_detected_local_origin_success_rate: 'counter',
  ejections_detected_success_rate: 'counter',
  ejections_enforced_consecutive_5xx: 'counter',
  ejections_enforced_consecutive_gateway_failure: 'counter',
  ejections_enforced_consecutive_local_origin_failure: 'counter',
  ejections_enforced_failure_percentage: 'counter',
  ejections_enforced_local_origin_failure_percentage: 'counter',
  ejections_enforced_local_origin_success_rate: 'counter',
  ejections_enforced_success_rate: 'counter',
  ejections_enforced_total: 'counter',
  ejections_overflow: 'counter',
});

/** cluster.<name>.circuit_breakers.<default or high>.*: read from the cluster's record, so written nowhere. */
export const CIRCUIT_BREAKER_GAUGES = [
  'cx_open',
  'cx_pool_open',
  'rq_pending_open',
  'rq_open',
  'rq_retry_open',
] as const;

/** Beside the former, with track_remaining: headroom below each limit. */
export const CIRCUIT_BREAKER_REMAINING_GAUGES = [
  'remaining_cx',
  'remaining_cx_pools',
  'remaining_pending',
  'remaining_rq',
  'remaining_retries',
] as const;
