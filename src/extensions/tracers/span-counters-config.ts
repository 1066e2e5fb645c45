// What tracers count under `tracing.<kind>.`.

import type { SpanCounterNames } from './span-queue.ts';

/** @param kind `zipkin`. */
export function spanCounters(kind: string): SpanCounterNames {
  const scope = `tracing.${kind}`;
  return {
    sent: `${scope}.spans_sent`,
    timed: `${scope}.timer_flushed`,
    skipped: `${scope}.reports_skipped_no_cluster`,
    taken: `${scope}.reports_sent`,
    refused: `${scope}.reports_dropped`,
    failed: `${scope}.reports_failed`,
    dropped: `${scope}.spans_dropped`,
  };
}
