// The managers of clusters, listeners and runtime, and the watchdogs; written by main.

import { statTable } from '../stat-table.ts';

/** cluster_manager.* */
export const CLUSTER_MANAGER_STATS = statTable({
  cluster_added: 'counter',
  cluster_modified: 'counter',
  cluster_removed: 'counter',
  cluster_updated: 'counter',
  cluster_updated_via_merge: 'counter',
  update_merge_cancelled: 'counter',
  update_out_of_merge_window: 'counter',
  active_clusters: 'gauge',
  warming_clusters: 'gauge',
});

/** listener_manager.*; the create counters count once per listener and worker. */
export const LISTENER_MANAGER_STATS = statTable({
  listener_added: 'counter',
  listener_modified: 'counter',
  listener_removed: 'counter',
  listener_stopped: 'counter',
  listener_create_success: 'counter',
  listener_create_failure: 'counter',
  listener_in_place_updated: 'counter',
  total_listeners_warming: 'gauge',
  total_listeners_active: 'gauge',
  total_listeners_draining: 'gauge',
  total_filter_chains_draining: 'gauge',
  workers_started: 'gauge',
});

/** runtime.* */
export const RUNTIME_STATS = statTable({
  admin_overrides_active: 'gauge',
  deprecated_feature_use: 'counter',
  deprecated_feature_seen_since_process_start: 'gauge',
  load_error: 'counter',
  load_success: 'counter',
  num_keys: 'gauge',
  num_layers: 'gauge',
  override_dir_exists: 'counter',
  override_dir_not_exists: 'counter',
});

/** cluster_manager.cds.*, listener_manager.lds.*, and runtime.*, where a layer comes by discovery: how resources came. */
export const SUBSCRIPTION_STATS = statTable({
  update_attempt: 'counter',
  update_success: 'counter',
  /** Nothing could be read. */
  update_failure: 'counter',
  /** The start of the server went on without an answer. */
  init_fetch_timeout: 'counter',
  /** What was read may not be. */
  update_rejected: 'counter',
  /** When the last one succeeded, in milliseconds of Unix time. */
  update_time: 'gauge',
  update_duration: 'histogram:ms',
  /** XXH64 of the version of the last one, as near as a double comes to it. */
  version: 'gauge',
});

/** control_plane.*, of the stream of all types; those of one type have it under the prefix of their subscriptions. */
export const CONTROL_PLANE_STATS = statTable({
  /** 1 while there is a stream to a management server. */
  connected_state: 'gauge',
  /** They wait for the limit of their rate. */
  pending_requests: 'gauge',
  rate_limit_enforced: 'counter',
});

/** load_reporter.*, where loads are reported; the words are those of the server. */
export const LOAD_REPORTER_STATS = statTable({
  /** Messages that say what to report. */
  requests: 'counter',
  /** Reports that were sent. */
  responses: 'counter',
  /** Streams that have failed or could not be had, and messages that mean nothing. */
  errors: 'counter',
  /** Streams that were begun in the place of another. */
  retries: 'counter',
});

/** hds_delegate.*, where hosts are checked for a server; the words are those of the server. */
export const HDS_DELEGATE_STATS = statTable({
  /** Messages that say what to check. */
  requests: 'counter',
  /** Offers and reports that were sent. */
  responses: 'counter',
  /** Streams that have ended or could not be had, messages that mean nothing, and clusters that may not be. */
  errors: 'counter',
  /** Messages that say something else than the one before. */
  updates: 'counter',
});

/** What the server calls itself, as a text readout beside them. */
export const CONTROL_PLANE_IDENTIFIER = 'identifier';

/** http.<prefix>.rds.<name>.*, beside the rows of subscriptions: a route table that comes by discovery. */
export const ROUTE_DISCOVERY_STATS = statTable({
  /** Another table has taken effect. */
  config_reload: 'counter',
  /** When it last did, in milliseconds of Unix time. */
  config_reload_time_ms: 'gauge',
  /** The source has no table of this name. */
  update_empty: 'counter',
});

/** http.<prefix>.scoped_rds.<name>.*, beside the rows of subscriptions: scopes of routes that come by discovery. */
export const SCOPE_DISCOVERY_STATS = statTable({
  /** Other scopes have taken effect. */
  config_reload: 'counter',
  /** When they last did, in milliseconds of Unix time. */
  config_reload_time_ms: 'gauge',
  /** The source has no scope at all. */
  update_empty: 'counter',
  all_scopes: 'gauge',
  /** Those whose table is there, or asked for. */
  active_scopes: 'gauge',
  /** Those whose table is asked for when a request wants it. */
  on_demand_scopes: 'gauge',
});

/** extension_config_discovery.<kind>.<name>.*, beside the rows of subscriptions: a filter's configuration that comes by discovery. */
export const EXTENSION_DISCOVERY_STATS = statTable({
  /** Another one has taken effect. */
  config_reload: 'counter',
  /** One was refused. */
  config_fail: 'counter',
  /** The one in force cannot be used by a listener that has come later. */
  config_conflict: 'counter',
});

/** sds.<name>.*, beside the rows of subscriptions: a secret that comes by discovery. */
export const SECRET_STATS = statTable({
  /** Files that it names have changed, and cannot be used. */
  key_rotation_failed: 'counter',
});

/** The version itself as a text readout, beside them. */
export const SUBSCRIPTION_VERSION_TEXT = 'version_text';

/** main_thread.*, workers.*, and under server.: main_thread.* and worker_<i>.*; stalls of an event loop. */
export const WATCHDOG_STATS = statTable({
  watchdog_miss: 'counter',
  watchdog_mega_miss: 'counter',
});

/** server.dispatcher.* and listener_manager.worker_<i>.dispatcher.*, with enable_dispatcher_stats: the event loop of a thread. */
export const DISPATCHER_STATS = statTable({
  /** Of each turn, without the time for which it waited for events. */
  loop_duration_us: 'histogram:us',
  /** How late a timer came that is set ten times a second. */
  poll_delay_us: 'histogram:us',
});

/** thread_local_cluster_manager.worker_<i>.* */
export const WORKER_CLUSTER_MANAGER_STATS = statTable({
  clusters_inflated: 'gauge',
});

/** filesystem.*: access logs and file sinks. */
export const FILESYSTEM_STATS = statTable({
  write_buffered: 'counter',
  write_completed: 'counter',
  write_failed: 'counter',
  flushed_by_timer: 'counter',
  reopen_failed: 'counter',
  write_total_buffered: 'gauge',
});
