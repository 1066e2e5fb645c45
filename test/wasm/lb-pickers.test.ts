import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CyclePicker, type HostPicker, openPicker } from '../../src/wasm/lb.ts';
import { addresses, openLb, refuses } from '../support/lb.ts';
import { pickByChoices, pickByScan, RandomReference } from '../support/reference/least-request.ts';
import { ScheduleReference } from '../support/reference/round-robin.ts';

const { owner, kernel, tables } = openLb();
const seeds = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }));
const weights = fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 1_000_000 })), {
  minLength: 1,
  maxLength: 12,
});
const activeCounts = fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 12 });

function picks(picker: HostPicker, count: number): number[] {
  return Array.from({ length: count }, () => picker.pick());
}

/** Records of hosts with so many requests in flight. */
function recordsOf(active: readonly number[]): number[] {
  return active.map((count) => {
    const record = owner.recordAllocator.allocateHost(1);
    owner.shared.records.addActiveRequests(record, count);
    return record;
  });
}

test('round robin over unequal weights equals the plain schedule, double for double, from any start', () => {
  fc.assert(
    fc.property(weights, seeds, (weights, seed) => {
      const plan = tables.buildRoundRobin(weights.map((weight) => ({ weight })));
      if (plan.kind === 'cycle') return assert.ok(weights.every((weight) => weight === weights[0]));
      const twin = new ScheduleReference(weights.length, (host) => weights[host]!, seed % 429_496_729);
      assert.deepEqual(
        picks(openPicker(kernel, plan, seed), 200),
        Array.from({ length: 200 }, () => twin.pick()),
      );
      tables.free(plan);
    }),
    { numRuns: 150 },
  );
});

test('round robin gives each host its exact share and never two turns in a row to the lighter one', () => {
  const plan = tables.buildRoundRobin([{ weight: 3 }, { weight: 1 }, { weight: 2 }]);
  assert.deepEqual(picks(openPicker(kernel, plan, 0), 6), [0, 2, 0, 1, 2, 0]);
  const counts = [0, 0, 0];
  for (const host of picks(openPicker(kernel, plan, 12345), 6000)) counts[host]! += 1;
  assert.deepEqual(counts, [3000, 1000, 2000]);
});

test('round robin over equal weights takes turns from its seed on, and goes on over another list', () => {
  const plan = tables.buildRoundRobin([{ weight: 7 }, { weight: 7 }, { weight: 7 }]);
  assert.deepEqual(plan, { kind: 'cycle', hostCount: 3 });
  const picker = openPicker(kernel, plan, 4);
  assert.deepEqual(picks(picker, 5), [1, 2, 0, 1, 2]);
  assert.ok(picker instanceof CyclePicker);
  assert.equal(picker.position, 9);
  assert.deepEqual(picks(openPicker(kernel, tables.buildRoundRobin(addresses(5)), picker.position), 3), [4, 0, 1]);
  assert.equal(tables.bytesOf(plan), 0);
});

test('least request draws as the plain twin does, for any load, number of draws and seed', () => {
  fc.assert(
    fc.property(activeCounts, fc.integer({ min: 2, max: 9 }), seeds, (active, choiceCount, seed) => {
      const plan = tables.buildLeastRequest(
        recordsOf(active).map((record) => ({ record })),
        { choiceCount },
      );
      const random = new RandomReference(seed);
      assert.deepEqual(
        picks(openPicker(kernel, plan, seed), 50),
        Array.from({ length: 50 }, () => pickByChoices(active, choiceCount, random)),
      );
      tables.free(plan);
    }),
    { numRuns: 150 },
  );
});

test('two draws look at the load of the moment, however far ahead they were drawn', () => {
  const active = [0, 0, 0, 0, 0];
  const records = recordsOf(active);
  const picker = openPicker(kernel, tables.buildLeastRequest(records.map((record) => ({ record }))), 5);
  const random = new RandomReference(5);
  for (let n = 0; n < 500; n += 1) {
    const host = picker.pick();
    assert.equal(host, pickByChoices(active, 2, random), `pick ${n}`);
    const change = n % 7 === 6 ? -active[host]! : 1;
    active[host]! += change;
    owner.shared.records.addActiveRequests(records[host]!, change);
  }
});

test('two draws reach as many hosts as there are, be they more than 16 bits tell apart', () => {
  const [idle, busy] = recordsOf([0, 1]);
  for (const count of [65_536, 65_537]) {
    const active = Array.from({ length: count }, (_, host) => host % 2);
    const plan = tables.buildLeastRequest(active.map((requests) => ({ record: requests === 0 ? idle! : busy! })));
    const random = new RandomReference(11);
    assert.deepEqual(
      picks(openPicker(kernel, plan, 11), 400),
      Array.from({ length: 400 }, () => pickByChoices(active, 2, random)),
      `${count} hosts`,
    );
    tables.free(plan);
  }
});

test('a full scan finds the least busy host and any of equals, as the plain twin does', () => {
  fc.assert(
    fc.property(activeCounts, seeds, (active, seed) => {
      const hosts = recordsOf(active).map((record) => ({ record }));
      const plan = tables.buildLeastRequest(hosts, { selection: 'FULL_SCAN' });
      const random = new RandomReference(seed);
      const chosen = picks(openPicker(kernel, plan, seed), 50);
      assert.deepEqual(
        chosen,
        Array.from({ length: 50 }, () => pickByScan(active, random)),
      );
      for (const host of chosen) assert.equal(active[host], Math.min(...active));
      tables.free(plan);
    }),
    { numRuns: 100 },
  );
});

test('equally busy hosts are scanned into equal shares', () => {
  const hosts = recordsOf([2, 1, 1, 5, 1, 1]).map((record) => ({ record }));
  const picker = openPicker(kernel, tables.buildLeastRequest(hosts, { selection: 'FULL_SCAN' }), 42);
  const counts = new Array<number>(6).fill(0);
  for (const host of picks(picker, 40_000)) counts[host]! += 1;
  assert.deepEqual([counts[0], counts[3]], [0, 0]);
  for (const host of [1, 2, 4, 5]) assert.ok(Math.abs(counts[host]! - 10_000) < 500, `${counts}`);
});

test('two draws keep the busiest host from being chosen unless it is drawn twice', () => {
  const hosts = recordsOf([9, 0, 0, 0]).map((record) => ({ record }));
  const picker = openPicker(kernel, tables.buildLeastRequest(hosts), 7);
  const busiest = picks(picker, 40_000).filter((host) => host === 0).length;
  assert.ok(Math.abs(busiest / 40_000 - 1 / 16) < 0.005, `${busiest}`);
});

test('weighted least request equals the plain schedule while requests come and go, for any bias', () => {
  const exact = [undefined, 0, 1, 2, 0.5];
  const bias = fc.oneof(fc.constantFrom(...exact), fc.double({ min: 0, max: 4, noNaN: true }));
  fc.assert(
    fc.property(weights, seeds, bias, (weights, seed, activeRequestBias) => {
      const active = weights.map(() => 0);
      const records = recordsOf(active);
      const hosts = weights.map((weight, at) => ({ weight, record: records[at]! }));
      const plan = tables.buildLeastRequest(hosts, activeRequestBias === undefined ? {} : { activeRequestBias });
      if (plan.kind !== 'schedule') return assert.equal(activeRequestBias, undefined);
      const power = activeRequestBias ?? 1;
      const weightOf = (host: number): number => weights[host]! / (active[host]! + 1) ** power;
      const twin = new ScheduleReference(weights.length, weightOf, seed % 429_496_729);
      const picker = openPicker(kernel, plan, seed);
      for (let n = 0; n < 60; n += 1) {
        if (n > 0 && twin.isUndecided && !exact.includes(activeRequestBias)) break;
        const host = picker.pick();
        assert.equal(host, twin.pick());
        const change = n % 3 === 2 ? -active[host]! : 1;
        active[host]! += change;
        owner.shared.records.addActiveRequests(records[host]!, change);
      }
      tables.free(plan);
    }),
    { numRuns: 120 },
  );
});

test('random picks follow their seed, reach every host and no weight', () => {
  const plan = tables.buildRandom(addresses(10).map((host, at) => ({ ...host, weight: at + 1 })));
  const chosen = picks(openPicker(kernel, plan, 99), 50_000);
  assert.deepEqual(picks(openPicker(kernel, plan, 99), 100), chosen.slice(0, 100));
  for (let host = 0; host < 10; host += 1) {
    const count = chosen.filter((each) => each === host).length;
    assert.ok(Math.abs(count - 5000) < 400, `host ${host}: ${count}`);
  }
});

test('plans refuse bad input, naming argument, value and limit', () => {
  const records = recordsOf([0, 0]);
  const hosts = records.map((record) => ({ record }));
  assert.throws(() => tables.buildRoundRobin([]), refuses('hosts', '0', '1'));
  assert.throws(() => tables.buildRandom([]), refuses('hosts', '0', '1'));
  assert.throws(() => tables.buildLeastRequest([]), refuses('hosts', '0', '1'));
  for (const weight of [0, 2 ** 32, 1.5, Number.NaN]) {
    assert.throws(
      () => tables.buildRoundRobin([{}, { weight }]),
      refuses('hosts[1].weight', `${weight}`, '4294967295'),
    );
    const weighted = records.map((record) => ({ record, weight }));
    assert.throws(() => tables.buildLeastRequest(weighted), refuses('hosts[0].weight', `${weight}`, '4294967295'));
  }
  for (const choiceCount of [0, 1, 2.5, 2 ** 32]) {
    assert.throws(
      () => tables.buildLeastRequest(hosts, { choiceCount }),
      refuses('choiceCount', `${choiceCount}`, '2'),
    );
  }
  for (const activeRequestBias of [-0.1, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(
      () => tables.buildLeastRequest(hosts, { activeRequestBias }),
      refuses('activeRequestBias', `${activeRequestBias}`, '0'),
    );
  }
});
