// listener.<address or stat prefix>.*: one listening socket over all workers.

import { statTable } from '../stat-table.ts';

export const LISTENER_STATS = statTable({
  downstream_cx_total: 'counter',
  downstream_cx_destroy: 'counter',
  downstream_cx_active: 'gauge',
  downstream_cx_length_ms: 'histogram:ms',
  downstream_cx_overflow: 'counter',
  downstream_cx_overload_reject: 'counter',
  /** Our own: descriptors ran short, and clients had to wait in the kernel's queue; once per worker and socket. */
  downstream_cx_accept_paused: 'counter',
  downstream_cx_accept_resumed: 'counter',
  downstream_global_cx_overflow: 'counter',
  downstream_cx_transport_socket_connect_timeout: 'counter',
  downstream_pre_cx_timeout: 'counter',
  downstream_pre_cx_active: 'gauge',
  no_filter_chain_match: 'counter',
  downstream_listener_filter_remote_close: 'counter',
  downstream_listener_filter_error: 'counter',
  extension_config_missing: 'counter',
  network_extension_config_missing: 'counter',
  connections_accepted_per_socket_event: 'histogram:count',
});

/** listener.<address>.worker_<i>.*: the same listener as one worker sees it. */
export const LISTENER_WORKER_STATS = statTable({
  downstream_cx_total: 'counter',
  downstream_cx_active: 'gauge',
});

/** listener.<address>.ssl.*: handshakes, beside counters named after ciphers and versions that were agreed on. */
export const TLS_STATS = statTable({
  connection_error: 'counter',
  handshake: 'counter',
  session_reused: 'counter',
  no_certificate: 'counter',
  fail_verify_no_cert: 'counter',
  fail_verify_error: 'counter',
  fail_verify_san: 'counter',
  fail_verify_cert_hash: 'counter',
  ocsp_staple_failed: 'counter',
  ocsp_staple_omitted: 'counter',
  ocsp_staple_responses: 'counter',
  ocsp_staple_requests: 'counter',
});

/** listener.<address>.server_ssl_socket_factory.*, cluster.<name>.client_ssl_socket_factory.*: certificates, keys and authorities that come anew. */
export const SSL_SOCKET_FACTORY_STATS = statTable({
  ssl_context_update_by_sds: 'counter',
  upstream_context_secrets_not_ready: 'counter',
  downstream_context_secrets_not_ready: 'counter',
  /** Our own: files that the configuration itself names have changed. */
  ssl_context_update_by_file: 'counter',
  /** Our own: what has changed cannot be used; what was before goes on. */
  ssl_context_update_failed: 'counter',
});

/** proxy_proto.<prefix>.*: PROXY protocol listener filters. */
export const PROXY_PROTOCOL_STATS = statTable({
  not_found_allowed: 'counter',
  not_found_disallowed: 'counter',
  'versions.v1.found': 'counter',
  'versions.v1.disallowed': 'counter',
  'versions.v1.error': 'counter',
  'versions.v2.found': 'counter',
  'versions.v2.disallowed': 'counter',
  'versions.v2.error': 'counter',
});

/** tls_inspector.*: all TLS inspector listener filters. */
export const TLS_INSPECTOR_STATS = statTable({
  client_hello_too_large: 'counter',
  tls_found: 'counter',
  tls_not_found: 'counter',
  alpn_found: 'counter',
  alpn_not_found: 'counter',
  sni_found: 'counter',
  sni_not_found: 'counter',
  bytes_processed: 'histogram:bytes',
});

/** listener_local_ratelimit.<prefix>.*: local rate limit listener filters. */
export const LISTENER_RATE_LIMIT_STATS = statTable({
  rate_limited: 'counter',
});

/** http_inspector.*: all HTTP inspector listener filters. */
export const HTTP_INSPECTOR_STATS = statTable({
  http10_found: 'counter',
  http11_found: 'counter',
  http2_found: 'counter',
  http_not_found: 'counter',
});

/** listener.<address>.http.<prefix>.*: responses of one connection manager on one listener. */
export const LISTENER_HTTP_STATS = statTable({
  downstream_rq_1xx: 'counter',
  downstream_rq_2xx: 'counter',
  downstream_rq_3xx: 'counter',
  downstream_rq_4xx: 'counter',
  downstream_rq_5xx: 'counter',
  downstream_rq_completed: 'counter',
});
