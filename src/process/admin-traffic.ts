// Counts the admin interface's own traffic as that of a listener and a connection manager called `admin`.

import type { AdminTraffic } from '../admin/index.ts';
import { HTTP_STATS, LISTENER_HTTP_STATS, LISTENER_STATS, type StatsStore } from '../stats/index.ts';

const RESPONSE_CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;

export function adminTraffic(stats: StatsStore): AdminTraffic {
  const listener = stats.scope('listener.admin.').allocate(LISTENER_STATS);
  const http = stats.scope('http.admin.').allocate(HTTP_STATS);
  const listenerHttp = stats.scope('listener.admin.http.admin.').allocate(LISTENER_HTTP_STATS);
  return {
    connectionOpened() {
      for (const block of [listener, http]) {
        block.add('downstream_cx_total');
        block.add('downstream_cx_active');
      }
      http.add('downstream_cx_http1_total');
      http.add('downstream_cx_http1_active');
    },
    connectionRefused() {
      listener.add('downstream_cx_overload_reject');
    },
    connectionClosed({ isLocal, hadRequests, lengthMs }) {
      for (const block of [listener, http]) {
        block.add('downstream_cx_destroy');
        block.add('downstream_cx_active', -1);
        block.record('downstream_cx_length_ms', lengthMs);
      }
      http.add(isLocal ? 'downstream_cx_destroy_local' : 'downstream_cx_destroy_remote');
      http.add('downstream_cx_http1_active', -1);
      if (!hadRequests) return;
      http.add('downstream_cx_destroy_active_rq');
      http.add(isLocal ? 'downstream_cx_destroy_local_active_rq' : 'downstream_cx_destroy_remote_active_rq');
    },
    bytesMoved(received, sent) {
      http.add('downstream_cx_rx_bytes_total', received);
      http.add('downstream_cx_tx_bytes_total', sent);
    },
    requestStarted() {
      http.add('downstream_rq_total');
      http.add('downstream_rq_http1_total');
      http.add('downstream_rq_active');
      http.add('rq_total');
    },
    requestEnded({ status, durationMs }) {
      http.add('downstream_rq_active', -1);
      const responseClass = RESPONSE_CLASSES[Math.floor(status / 100) - 1];
      if (responseClass === undefined) {
        http.add('downstream_rq_rx_reset');
        return;
      }
      http.record('downstream_rq_time', durationMs);
      for (const block of [http, listenerHttp]) {
        block.add('downstream_rq_completed');
        block.add(`downstream_rq_${responseClass}`);
      }
    },
  };
}
