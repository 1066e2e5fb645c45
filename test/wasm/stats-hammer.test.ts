// Two threads write the same stats while main merges and reads them; afterwards every total is exact.
// WEIR_HAMMER_SECONDS=10 node --test test/wasm/stats-hammer.test.ts

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type HistogramReader, StatsStore, statTable } from '../../src/stats/index.ts';
import { compileModule } from '../../src/wasm/instantiate.ts';
import { ClusterCount, ClusterPriority } from '../../src/wasm/shared-memory.ts';
import { SharedMemoryOwner } from '../../src/wasm/shared-memory-owner.ts';
import { type HammerAccount, HammeringWorker } from '../support/hammering-worker.ts';
import { ReferenceHistogram } from '../support/reference/histogram.ts';

const SECONDS = Number(process.env.WEIR_HAMMER_SECONDS ?? 1);
const WORKERS = 2;
const HOSTS = 3;
const TABLE = statTable({
  cx_total: 'counter',
  rq_total: 'counter',
  rq_retry: 'counter',
  cx_length_ms: 'histogram:ms',
  rq_bytes: 'histogram:bytes',
});
const COUNTERS = ['cx_total', 'rq_total', 'rq_retry'] as const;
const HISTOGRAMS = ['cx_length_ms', 'rq_bytes'] as const;
/** Every decade that a value can fall into, so that bins are made while others are written. */
const VALUES = Float64Array.from({ length: 512 }, (_, at) => Math.floor(10 ** (at / 33)));

function sum(accounts: readonly HammerAccount[], pick: (account: HammerAccount) => number): number {
  return accounts.reduce((total, account) => total + pick(account), 0);
}

test(`${WORKERS} workers that write the same counters, histograms and active counts lose nothing`, async (t) => {
  const owner = new SharedMemoryOwner({ workerCount: WORKERS });
  const store = new StatsStore({ owner, module: compileModule('stats') });
  const block = store.scope('cluster.a.').allocate(TABLE);
  const hosts = Array.from({ length: HOSTS }, () => owner.recordAllocator.allocateHost(1));
  const cluster = owner.recordAllocator.allocateCluster();
  const workers = Array.from({ length: WORKERS }, (_, workerIndex) => {
    const plan = { counters: COUNTERS.length, histograms: HISTOGRAMS.length, hosts, cluster, values: VALUES };
    const memory = owner.memory;
    return new HammeringWorker({ memory, workerIndex, block: block.cell, ...plan }, (name) => store.dynamicCell(name));
  });
  t.after(() => Promise.all(workers.map((worker) => worker.end())));

  const histograms: HistogramReader[] = [];
  for await (const batch of store.histograms()) histograms.push(...batch);
  assert.deepEqual(
    histograms.map(({ name }) => name),
    HISTOGRAMS.map((name) => `cluster.a.${name}`),
  );
  const intervalTotals = HISTOGRAMS.map(() => 0);
  const merge = async (): Promise<void> => {
    await store.mergeHistograms();
    for (const [at, histogram] of histograms.entries()) intervalTotals[at]! += histogram.count('interval');
  };
  // Threads may take long to start on a crowded machine.
  while (block.value('rq_total') === 0) await nextTurn();
  const endsAt = performance.now() + SECONDS * 1000;
  for (let before = 0; performance.now() < endsAt; await nextTurn()) {
    const counted = block.value('rq_total');
    assert.ok(counted >= before, 'a total never goes back');
    before = counted;
    await merge();
  }
  for (const worker of workers) worker.stop();
  const ended = Promise.all(workers.map((worker) => worker.account));
  // Samples may still wait for memory, which a merge hands out.
  let isOver = false;
  void ended.finally(() => {
    isOver = true;
  });
  for (; !isOver; await nextTurn()) await merge();
  const accounts = await ended;
  await merge();

  for (const [at, name] of COUNTERS.entries()) {
    assert.equal(
      block.value(name),
      sum(accounts, ({ counted }) => counted[at]!),
      name,
    );
  }
  for (const [at, histogram] of histograms.entries()) {
    const twin = new ReferenceHistogram();
    for (const [place, value] of VALUES.entries()) {
      const times = sum(accounts, ({ recorded }) => recorded[at]![place]!);
      if (times > 0) twin.record(value, times);
    }
    assert.deepEqual(histogram.bins('cumulative'), twin.bins(), histogram.name);
    assert.equal(intervalTotals[at], twin.count, 'each sample is in one interval');
  }
  for (const [at, host] of hosts.entries()) {
    assert.equal(
      owner.shared.records.activeRequests(host),
      sum(accounts, ({ open }) => open[at]!),
    );
  }
  const openRequests = sum(accounts, ({ open }) => open.reduce((a, b) => a + b));
  assert.equal(
    owner.shared.records.clusterCount(cluster, ClusterPriority.default, ClusterCount.requests),
    openRequests,
  );
  assert.ok(block.value('rq_total') > 1000 * SECONDS, 'the workers have worked');
  owner.clearWorker(0);
  owner.clearWorker(1);
  for (const host of hosts) assert.equal(owner.shared.records.activeRequests(host), 0, 'ledgers say the same');
  t.diagnostic(`${block.value('rq_total') * 3} steps, ${intervalTotals.reduce((a, b) => a + b)} samples`);
});
