// What the overload manager can do, by the names of configurations behind their prefixes. Any thread.

/** Places in the path of a request at which it can be turned away. */
export const LOAD_SHED_POINTS = [
  'tcp_listener_accept',
  'hcm_ondata_creating_codec',
  'http_connection_manager_decode_headers',
  'http_downstream_filter_check',
  'http1_server_abort_dispatch',
  'connection_pool_new_connection',
] as const;
export type LoadShedPointName = (typeof LOAD_SHED_POINTS)[number];

/** Timeouts that can be shortened. */
export const SCALED_TIMEOUTS = ['HTTP_DOWNSTREAM_CONNECTION_IDLE', 'HTTP_DOWNSTREAM_STREAM_IDLE'] as const;
export type ScaledTimeoutName = (typeof SCALED_TIMEOUTS)[number];
