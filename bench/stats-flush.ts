// What a flush costs the main thread: 100,000 counters and 5,000 histograms, into which two workers have recorded since the flush
// before. Merged is what all threads have recorded; with a sink every stat is walked as well. Bar: 60 ms of main, without a sink.
//
//   npm run bench -- stats-flush

import { SinkFlush, WorkerStats } from '../src/stats/index.ts';
import { compileModule } from '../src/wasm/instantiate.ts';
import { SharedMemory } from '../src/wasm/shared-memory.ts';
import { median } from './support/contest.ts';
import { type ManyStats, manyStats, TABLE } from './support/many-stats.ts';

const CLUSTERS = 5000;
const ROUNDS = 15;
/** Of each worker between two flushes, for each histogram. */
const SAMPLES = 20;
const BAR_MS = 60;

function workersOf({ owner, store }: ManyStats): readonly WorkerStats[] {
  const module = compileModule('stats');
  return [0, 1].map((index) => {
    const memory = SharedMemory.attach(owner.memory, index);
    const stats: WorkerStats = new WorkerStats({
      memory,
      module,
      // Also how it asks for histogram memory.
      requestCell: (key) => stats.resolve(key, store.dynamicCell(key)),
    });
    return stats;
  });
}

function record(workers: readonly WorkerStats[], blocks: readonly number[], round: number): void {
  for (const worker of workers) {
    for (const block of blocks) {
      const base = worker.base(block);
      for (let at = 0; at < TABLE.gaugesAt; at++) worker.values[base + at]! += 1;
      for (let at = 0; at < SAMPLES; at++) worker.record(base + TABLE.histogramsAt, 1 + ((at * 37 + round) % 400));
    }
  }
}

/** Work of this thread, whatever its neighbours do, in ms, and the longest piece of it between two turns of the event loop. */
async function measure(job: () => Promise<void>): Promise<{ cpuMs: number; wallMs: number }> {
  const [start, before] = [performance.now(), process.threadCpuUsage()];
  await job();
  const { user, system } = process.threadCpuUsage(before);
  return { cpuMs: (user + system) / 1000, wallMs: performance.now() - start };
}

const many = await manyStats(CLUSTERS, true);
const workers = workersOf(many);
const sinkFlush = new SinkFlush(many.store, (_sink, error) => {
  throw error;
});
const sink = { close: async (): Promise<void> => {} };
const results = { flush: [] as number[], wall: [] as number[], sink: [] as number[] };
for (let round = 0; round < ROUNDS; round += 1) {
  record(workers, many.blocks, round);
  const { cpuMs, wallMs } = await measure(() => many.store.mergeHistograms());
  results.flush.push(cpuMs);
  results.wall.push(wallMs);
  const times = { nowMs: 2, lastMs: 1, startMs: 0 };
  results.sink.push((await measure(() => sinkFlush.run([sink], times))).cpuMs);
}
const [flush, wall, walk] = [results.flush, results.wall, results.sink].map((all) => median(all)) as [
  number,
  number,
  number,
];
process.stdout.write(
  `flush of 100,000 counters and 5,000 histograms over 2 workers, median of ${ROUNDS}: ${flush.toFixed(1)} ms of main, ` +
    `${wall.toFixed(0)} by a clock; bar ${BAR_MS}: ${flush <= BAR_MS ? 'reached' : 'MISSED'}\n` +
    `the walk that shows all of them to sinks takes ${walk.toFixed(1)} ms more\n`,
);
