// Stores of very many stats for the benchmarks of statistics, and the same series for prom-client.

import { Counter, Histogram, Registry } from 'prom-client';
import { StatsStore, type StatTable, statTable } from '../../src/stats/index.ts';
import { compileModule } from '../../src/wasm/instantiate.ts';
import { SharedMemoryOwner } from '../../src/wasm/shared-memory-owner.ts';

const MIB = 2 ** 20;
const COUNTERS = 20;
/** Samples of each histogram. */
const LATENCIES = [1, 3, 3, 7, 12, 20, 45, 80, 230, 1100];
const NAMES = Array.from({ length: COUNTERS }, (_, at) => `upstream_rq_outcome_${at}`);
const COUNTER_ROWS = Object.fromEntries(NAMES.map((name) => [name, 'counter' as const]));
const COUNTERS_ALONE: StatTable = statTable(COUNTER_ROWS);
export const TABLE: StatTable = statTable({ ...COUNTER_ROWS, upstream_rq_time: 'histogram:ms' });

export interface ManyStats {
  readonly store: StatsStore;
  readonly owner: SharedMemoryOwner;
  /** First cells of the clusters' blocks. */
  readonly blocks: readonly number[];
}

/** Each cluster has twenty counters, and a histogram if they have any. */
export async function manyStats(clusters: number, hasHistograms: boolean): Promise<ManyStats> {
  const owner = new SharedMemoryOwner({ workerCount: 2, maxBytes: 4000 * MIB });
  const store = new StatsStore({ owner, module: compileModule('stats') });
  const table: StatTable = hasHistograms ? TABLE : COUNTERS_ALONE;
  const blocks: number[] = [];
  for (let at = 0; at < clusters; at++) {
    const block = store.scope(`cluster.service-${at}.`).allocate(table);
    for (const name of NAMES) block.add(name, at + 1);
    if (hasHistograms) for (const latency of LATENCIES) block.record('upstream_rq_time', latency);
    if (at % 500 === 499) await store.mergeHistograms();
    blocks.push(block.cell);
  }
  await store.mergeHistograms();
  return { store, owner, blocks };
}

export function promClient(clusters: number): Registry {
  const registry = new Registry();
  const labelNames = ['envoy_cluster_name'];
  const registers = [registry];
  const counters = NAMES.map(
    (name) => new Counter({ name: `envoy_cluster_${name}`, help: name, labelNames, registers }),
  );
  const histogram = new Histogram({
    name: 'envoy_cluster_upstream_rq_time',
    help: 'time',
    labelNames,
    registers,
    buckets: [
      0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000,
      3_600_000,
    ],
  });
  for (let at = 0; at < clusters; at++) {
    const labels = { envoy_cluster_name: `service-${at}` };
    for (const counter of counters) counter.inc(labels, at + 1);
    for (const latency of LATENCIES) histogram.observe(labels, latency);
  }
  return registry;
}
