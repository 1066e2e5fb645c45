export {
  addCircuitBreakerGauges,
  type BreakerUse,
  breakerUses,
  type CircuitBreakerLimits,
  type CircuitBreakerOptions,
} from './circuit-breakers.ts';
export type { CounterLatch } from './counter-latch.ts';
export { DNS_CACHE_GAUGES, type LookupUse } from './dns-cache-gauges.ts';
export type { DynamicCounter } from './dynamic-counter.ts';
export type { DynamicHistogram } from './dynamic-histogram.ts';
export type { FamilyBatch } from './families.ts';
export { type FlushPhase, type FlushStep, StatsFlush } from './flush.ts';
export {
  DEFAULT_BUCKET_BOUNDS,
  type HistogramReader,
  type HistogramSpanName,
  LISTED_QUANTILES,
  PERCENT_SCALE,
} from './histogram-stat.ts';
export { RecentLookups } from './recent-lookups.ts';
export { Scope } from './scope.ts';
export { SinkFlush } from './sinks/sink-flush.ts';
export type { FlushTimes, HistogramBatch, NumericBatch, StatSink } from './sinks/stat-sink.ts';
export type { NumericStat, TextReadout, TextReadoutStat } from './stat.ts';
export type { Counter, Gauge, StatBlock, StatBlockOf } from './stat-block.ts';
export { type HistogramUnit, type StatRow, type StatTable, statTable } from './stat-table.ts';
export { StatsStore, type StatsStoreOptions } from './store.ts';
export * from './tables/index.ts';
export { CONTROL_PLANE_IDENTIFIER, SUBSCRIPTION_VERSION_TEXT } from './tables/managers.ts';
export { SERVER_VERSION_TEXT } from './tables/server.ts';
export { cleanStatName } from './tags/name-tokens.ts';
export type { RegexTag, Tag, TagOptions } from './tags/tag-producer.ts';
export type { StatBatch } from './transfer/stat-batch.ts';
export { StatExport } from './transfer/stat-export.ts';
export { StatImport } from './transfer/stat-import.ts';
export { type DynamicStatName, WorkerStats, type WorkerStatsOptions } from './worker-stats.ts';
