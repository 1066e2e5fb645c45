// http2.*: what sessions of clients count; cluster.<name>.http2.*: the same of those to its hosts.

import { statTable } from '../stat-table.ts';

export const HTTP2_STATS = statTable({
  dropped_headers_with_underscores: 'counter',
  header_overflow: 'counter',
  headers_cb_no_stream: 'counter',
  inbound_empty_frames_flood: 'counter',
  inbound_priority_frames_flood: 'counter',
  inbound_window_update_frames_flood: 'counter',
  keepalive_timeout: 'counter',
  metadata_empty_frames: 'counter',
  outbound_control_flood: 'counter',
  outbound_flood: 'counter',
  requests_rejected_with_underscores_in_headers: 'counter',
  rx_messaging_error: 'counter',
  rx_reset: 'counter',
  stream_refused_errors: 'counter',
  trailers: 'counter',
  tx_flush_timeout: 'counter',
  tx_reset: 'counter',
  deferred_stream_close: 'gauge',
  pending_send_bytes: 'gauge',
  streams_active: 'gauge',
});

/** Name of one of them. */
export type Http2Stat = keyof typeof HTTP2_STATS.index;
