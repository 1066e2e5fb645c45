import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashTableGauges } from '../../../../../src/control-plane/cluster-manager/host-lists/hash-table-gauges.ts';
import { HashRing } from '../../../../../src/wasm/lb.ts';
import { listing, statsFixture } from '../../../../support/stats.ts';

/** Only what gauges look at: rounding makes the two sizes of a real ring differ too seldom. */
const RING: HashRing = Object.assign(Object.create(HashRing.prototype), {
  size: 7,
  nominalSize: 8,
  minEntriesPerHost: 1,
  maxEntriesPerHost: 4,
});

for (const { lbPolicy, expected } of [
  {
    lbPolicy: 'RING_HASH',
    expected: ['ring_hash_lb.max_hashes_per_host: 4', 'ring_hash_lb.min_hashes_per_host: 1', 'ring_hash_lb.size: 8'],
  },
  { lbPolicy: 'MAGLEV', expected: ['maglev_lb.max_entries_per_host: 4', 'maglev_lb.min_entries_per_host: 1'] },
  { lbPolicy: 'RANDOM', expected: [] },
] as const) {
  test(`a cluster of ${lbPolicy} shows of its table ${expected.length} numbers`, async () => {
    const { store } = statsFixture({ workerCount: 1 });
    hashTableGauges(store, { statName: 'web', lbPolicy })?.(RING);
    const gauges = (await listing(store)).filter((line) => line.startsWith('cluster.'));
    assert.deepEqual(
      gauges.toSorted(),
      expected.map((line) => `cluster.web.${line}`),
    );
  });
}
