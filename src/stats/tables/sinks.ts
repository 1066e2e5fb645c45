// stat_sinks.<sink>.*: where statistics go with each flush; written by main.

import { statTable } from '../stat-table.ts';

/** stat_sinks.hystrix.*: the event stream of GET /hystrix_event_stream. */
export const HYSTRIX_STATS = statTable({
  listeners: 'gauge',
  listeners_refused: 'counter',
  batches_dropped: 'counter',
});

/** stat_sinks.<sink>.* of all that send; by kind, so that two sinks of a kind count together. */
export const STAT_SINK_STATS = statTable({
  /** Lines, metrics or data points that were handed to the system or to a call. */
  metrics_sent: 'counter',
  /** Those that were given up: the queue was full, the receiver down or too slow, or the proxy ended. */
  metrics_dropped: 'counter',
  /** Datagrams, connections and calls that have failed. */
  send_failures: 'counter',
  /** What waits to be sent. */
  queued_bytes: 'gauge',
});

/** statsd.*: the sink over TCP, by the name that dashboards look for. */
export const STATSD_TCP_STATS = statTable({
  /** Flushes in which lines found no room in the queue. */
  cx_overflow: 'counter',
});
