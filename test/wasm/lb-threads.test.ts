import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { addresses, lbModule, openLb } from '../support/lb.ts';
import { LbReader, readTable } from '../support/lb-reader-worker.ts';

const { owner, kernel, tables } = openLb({ workerCount: 2 });
const readers = [0, 1].map((index) => new LbReader(owner.memory, lbModule, index));
after(() => Promise.all(readers.map((reader) => reader.stop())));

test('two workers read tables right while main builds and frees others, memory grows and generations change', async () => {
  for (let generation = 0; generation < 6; generation += 1) {
    const hosts = addresses(20 + generation * 50, generation);
    const kind = generation % 2 === 0 ? 'maglev' : 'ring';
    const table = kind === 'maglev' ? tables.buildMaglev(hosts) : tables.buildRing(hosts, { minimumRingSize: 50_000 });
    const command = { do: 'read', kind, address: table.address, lookups: 60_000 } as const;
    const expected = readTable(kernel, command);
    let isReading = true;
    const answers = Promise.all(readers.map((reader) => reader.run(command))).finally(() => {
      isReading = false;
    });
    const others: { readonly address: number }[] = [];
    for (let n = 0; isReading; n += 1) {
      others.push(n % 2 === 0 ? tables.buildMaglev(addresses(n % 90 || 1)) : tables.buildRing(addresses(n % 90 || 1)));
      if (others.length > 12) tables.free(others.shift()!);
      await new Promise(setImmediate);
    }
    assert.deepEqual(await answers, [expected, expected], `generation ${generation}`);
    for (const other of others) tables.free(other);
    tables.retire(table);
    owner.reclaimer.reclaim(owner.reclaimer.mark());
  }
  assert.equal(owner.heap.usedBytes, 0);
});

test('workers pick from one plan without disturbing each other, and active counts stay exact', async () => {
  const weights = [1, 2, 3, 4];
  const records = weights.map((weight) => owner.recordAllocator.allocateHost(weight));
  const plans = [
    tables.buildLeastRequest(records.map((record) => ({ record }))),
    tables.buildLeastRequest(records.map((record, at) => ({ record, weight: weights[at]! }))),
    tables.buildRoundRobin(weights.map((weight) => ({ weight }))),
  ];
  let left = 0;
  for (const plan of plans) {
    const counts = await Promise.all(readers.map((reader) => reader.run({ do: 'pick', plan, records, picks: 20_000 })));
    left += 2 * 4;
    const total = records.reduce((sum, record) => sum + owner.shared.records.activeRequests(record), 0);
    assert.equal(total, left);
    for (const ofWorker of counts)
      assert.equal(
        ofWorker.reduce((sum, count) => sum + count, 0),
        20_000,
      );
    if (plan === plans[2])
      assert.deepEqual(
        counts,
        [weights, weights].map((each) => each.map((w) => w * 2000)),
      );
  }
});
