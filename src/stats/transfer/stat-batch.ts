// What one process tells its successor of its stats at a time. Plain data: it travels as JSON.

export interface StatBatch {
  readonly counters: readonly string[];
  /** Of each counter, what it has counted since it was told of last. */
  readonly increments: readonly number[];
  /** Of each counter, the part of the increment that sinks have been told of. */
  readonly flushed: readonly number[];
  readonly gauges: readonly string[];
  readonly values: readonly number[];
}
