// Choice of hosts.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { EdfScheduler } from '../../../src/data-plane/upstream/load-balancer/edf.ts';
import { LeastRequest } from '../../../src/data-plane/upstream/load-balancer/least-request.ts';
import { LoadBalancer } from '../../../src/data-plane/upstream/load-balancer/load-balancer.ts';
import { type PriorityState, priorityLoads } from '../../../src/data-plane/upstream/load-balancer/priority-load.ts';
import { RandomPicker } from '../../../src/data-plane/upstream/load-balancer/random.ts';
import { RoundRobin } from '../../../src/data-plane/upstream/load-balancer/round-robin.ts';
import { HealthFlag } from '../../../src/wasm/shared-records.ts';

function picks<T>(count: number, next: () => T): T[] {
  return Array.from({ length: count }, next);
}

describe('earliest deadline first', () => {
  test('interleaves by weight', () => {
    const scheduler = new EdfScheduler(['a', 'b', 'c'], (item) => ({ a: 1, b: 2, c: 1 })[item]!);
    assert.equal(picks(8, () => scheduler.pick()).join(''), 'bacbbacb');
  });

  test('gives every item its share over a whole round', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 8 }), (weights) => {
        const items = weights.map((_, index) => index);
        const scheduler = new EdfScheduler(items, (item) => weights[item]!);
        const rounds = 5;
        const total = weights.reduce((sum, weight) => sum + weight, 0) * rounds;
        const counts = items.map(() => 0);
        for (let i = 0; i < total; i++) counts[scheduler.pick()!]! += 1;
        for (const item of items) assert.ok(Math.abs(counts[item]! - weights[item]! * rounds) <= 1);
      }),
    );
  });

  test('a start after n picks goes on as if they had been made', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 200 }),
        (weights, done) => {
          const items = weights.map((_, index) => index);
          const emulated = new EdfScheduler(items, (item) => weights[item]!, done);
          const total = weights.reduce((sum, weight) => sum + weight, 0);
          const counts = items.map(() => 0);
          for (let i = 0; i < total; i++) counts[emulated.pick()!]! += 1;
          for (const item of items) assert.ok(Math.abs(counts[item]! - weights[item]!) <= 1);
        },
      ),
    );
  });

  test('has nothing to pick from nothing', () => {
    assert.equal(new EdfScheduler<string>([], () => 1, 10).pick(), undefined);
  });
});

describe('round robin', () => {
  const hosts = ['a', 'b', 'c'].map((name) => ({ name, weight: 1 }));

  test('takes equal hosts in turn, starting at its seed', () => {
    const balancer = new RoundRobin<(typeof hosts)[number]>(1);
    balancer.setHosts(hosts);
    assert.equal(picks(5, () => balancer.next()!.name).join(''), 'bcabc');
  });

  test('keeps its place over a change of hosts', () => {
    const balancer = new RoundRobin<(typeof hosts)[number]>(0);
    balancer.setHosts(hosts);
    balancer.next();
    balancer.setHosts(hosts.slice(0, 2));
    assert.equal(picks(3, () => balancer.next()!.name).join(''), 'bab');
  });

  test('uses weights when they differ, and is null without hosts', () => {
    const balancer = new RoundRobin<(typeof hosts)[number]>(7);
    assert.equal(balancer.next(), null);
    balancer.setHosts([
      { name: 'a', weight: 3 },
      { name: 'b', weight: 1 },
    ]);
    const chosen = picks(400, () => balancer.next()!.name);
    const share = chosen.filter((name) => name === 'a').length;
    assert.ok(Math.abs(share - 300) <= 1, `${share} of 400`);
  });
});

/** A repeatable sequence of 32-bit numbers (xorshift). */
function seededRandom(seed = 2463534242): { u32(): number } {
  let state = seed;
  return {
    u32() {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      return state >>> 0;
    },
  };
}

function shares<T extends { readonly name: string }>(count: number, next: () => T | null): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let i = 0; i < count; i++) {
    const name = next()?.name ?? 'none';
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

describe('random', () => {
  test('takes all hosts equally, whatever their weights', () => {
    const picker = new RandomPicker<{ name: string; weight: number }>(seededRandom());
    assert.equal(picker.next(), null);
    picker.setHosts(['a', 'b', 'c', 'd'].map((name, index) => ({ name, weight: 1 + index * 10 })));
    for (const count of Object.values(shares(40_000, () => picker.next()))) {
      assert.ok(Math.abs(count - 10_000) < 400, `${count}`);
    }
  });
});

describe('least request', () => {
  interface Host {
    readonly name: string;
    readonly weight: number;
    active: number;
  }
  const host = (name: string, active: number, weight = 1): Host => ({ name, weight, active });
  const balancer = (choiceCount: number, activeRequestBias?: number): LeastRequest<Host> =>
    new LeastRequest<Host>(seededRandom(), { choiceCount, activeRequestBias }, ({ active }) => active);

  test('takes the busiest of n hosts only when every choice falls on it', () => {
    for (const choiceCount of [2, 3]) {
      const picker = balancer(choiceCount);
      picker.setHosts([host('a', 0), host('b', 0), host('busy', 9)]);
      const { busy = 0 } = shares(27_000, () => picker.next());
      const expected = 27_000 / 3 ** choiceCount;
      assert.ok(Math.abs(busy - expected) < expected * 0.1, `${busy} instead of ${expected}`);
    }
  });

  test('keeps the first choice among equals, so that idle hosts share equally', () => {
    const picker = balancer(2);
    picker.setHosts([host('a', 1), host('b', 1)]);
    const { a = 0 } = shares(20_000, () => picker.next());
    assert.ok(Math.abs(a - 10_000) < 400, `${a}`);
  });

  test('follows weights where they differ, less so the busier a host is', () => {
    const picker = balancer(2);
    picker.setHosts([host('heavy', 0, 3), host('light', 0, 1)]);
    assert.ok(Math.abs(shares(4000, () => picker.next()).heavy! - 3000) <= 2);
    const loaded = balancer(2);
    loaded.setHosts([host('heavy', 5, 3), host('light', 0, 1)]);
    assert.ok(Math.abs(shares(3000, () => loaded.next()).heavy! - 1000) <= 2);
  });

  test('a bias of 0 forgets the load, and a negative one is taken for 1', () => {
    const blind = balancer(2, 0);
    blind.setHosts([host('busy', 99), host('idle', 0)]);
    assert.ok(Math.abs(shares(1000, () => blind.next()).busy! - 500) <= 2);
    const wrong = balancer(2, -3);
    wrong.setHosts([host('busy', 1), host('idle', 0)]);
    assert.ok(Math.abs(shares(3000, () => wrong.next()).busy! - 1000) <= 2);
  });

  test('evens out requests of unequal length better than chance', () => {
    const hosts = Array.from({ length: 10 }, (_, index) => host(`h${index}`, 0));
    const spread = (next: () => Host | null): number => {
      for (const each of hosts) each.active = 0;
      const random = seededRandom(99);
      const running: { host: Host; left: number }[] = [];
      let peak = 0;
      for (let i = 0; i < 5000; i++) {
        const chosen = next()!;
        chosen.active++;
        running.push({ host: chosen, left: 1 + (random.u32() % 100) });
        peak = Math.max(peak, chosen.active);
        for (const request of [...running]) {
          if (--request.left > 0) continue;
          request.host.active--;
          running.splice(running.indexOf(request), 1);
        }
      }
      return peak;
    };
    const least = balancer(2);
    least.setHosts(hosts);
    const random = new RandomPicker<Host>(seededRandom());
    random.setHosts(hosts);
    assert.ok(spread(() => least.next()) < spread(() => random.next()) / 1.5);
  });
});

describe('the load of priorities', () => {
  /** Hosts, healthy, degraded and excluded of each priority. */
  type Row = readonly [hosts: number, healthy: number, degraded?: number, excluded?: number];
  const state = ([hosts, healthy, degraded = 0, excluded = 0]: Row): PriorityState => {
    const counts = { hosts, healthy, degraded, excluded };
    return { counts, capacity: counts };
  };
  const LIMITS = { overprovisioningFactor: 140, healthyPanicThreshold: 50 };
  const cases: {
    name: string;
    rows: Row[];
    healthy: number[];
    degraded?: number[];
    panic?: boolean[];
    threshold?: number;
  }[] = [
    {
      name: 'all healthy: the first takes everything',
      rows: [
        [10, 10],
        [10, 10],
      ],
      healthy: [100, 0],
    },
    {
      name: '72 of 100 are still enough',
      rows: [
        [100, 72],
        [100, 100],
      ],
      healthy: [100, 0],
    },
    {
      name: 'what the first cannot take spills over',
      rows: [
        [100, 50],
        [100, 100],
      ],
      healthy: [70, 30],
    },
    {
      name: 'three in a row',
      rows: [
        [100, 25],
        [100, 25],
        [100, 100],
      ],
      healthy: [35, 35, 30],
    },
    {
      name: 'too few in all: shares grow to 100',
      rows: [
        [100, 25],
        [100, 25],
      ],
      healthy: [50, 50],
      panic: [true, true],
    },
    {
      name: 'rounding goes to the first',
      rows: [
        [100, 20],
        [100, 20],
        [100, 20],
      ],
      healthy: [34, 33, 33],
      panic: [true, true, true],
      threshold: 30,
    },
    {
      name: 'an empty first priority',
      rows: [
        [0, 0],
        [4, 4],
      ],
      healthy: [0, 100],
    },
    {
      name: 'degraded hosts come after all healthy ones',
      rows: [
        [10, 5, 5],
        [10, 2],
      ],
      healthy: [70, 28],
      degraded: [2, 0],
    },
    { name: 'excluded hosts do not count', rows: [[10, 5, 0, 5]], healthy: [100] },
    {
      name: 'panic by size when nobody is healthy',
      rows: [
        [30, 0],
        [10, 0],
      ],
      healthy: [75, 25],
      panic: [true, true],
    },
    {
      name: 'one in panic, one not',
      rows: [
        [100, 10],
        [100, 55],
      ],
      healthy: [16, 84],
      panic: [true, false],
    },
    {
      name: 'no panic at all with threshold 0',
      rows: [
        [100, 0],
        [100, 0],
      ],
      healthy: [100, 0],
      threshold: 0,
      panic: [false, false],
    },
    { name: 'no hosts', rows: [[0, 0]], healthy: [100], panic: [true] },
  ];
  for (const { name, rows, healthy, degraded, panic, threshold = 50 } of cases) {
    test(name, () => {
      const loads = priorityLoads(rows.map(state), { ...LIMITS, healthyPanicThreshold: threshold });
      assert.deepEqual(loads.healthy, healthy);
      assert.deepEqual(loads.degraded, degraded ?? rows.map(() => 0));
      assert.deepEqual(loads.isPanic, panic ?? rows.map(() => false));
    });
  }

  test('always makes 100 in all', () => {
    const row = fc.tuple(fc.nat(50), fc.nat(50), fc.nat(50), fc.nat(50)).map(([healthy, degraded, ill, excluded]) => {
      const hosts = healthy + degraded + ill;
      return state([hosts, healthy, degraded, Math.min(excluded, ill)]);
    });
    const limits = fc.record({
      overprovisioningFactor: fc.integer({ min: 1, max: 300 }),
      healthyPanicThreshold: fc.integer({ min: 0, max: 100 }),
    });
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 5 }), limits, (states, limit) => {
        const { healthy, degraded } = priorityLoads(states, limit);
        const all = [...healthy, ...degraded];
        assert.equal(
          all.reduce((sum, load) => sum + load, 0),
          100,
        );
        assert.ok(all.every((load) => load >= 0 && load <= 100));
      }),
    );
  });
});

describe('the balancer of a cluster', () => {
  interface Host {
    readonly name: string;
    readonly weight: number;
    readonly priority: number;
    healthFlags: number;
  }
  const host = (name: string, priority = 0, healthFlags = 0, weight = 1): Host => ({
    name,
    priority,
    healthFlags,
    weight,
  });
  const UNHEALTHY = HealthFlag.failedActiveHealthCheck;
  const DEGRADED = HealthFlag.degradedEdsHealth;

  function balancer(fields: { weightedPriorityHealth?: boolean; healthyPanicThreshold?: number } = {}): {
    balancer: LoadBalancer<Host>;
    panics: () => number;
  } {
    let panicCount = 0;
    const created = new LoadBalancer<Host>({
      overprovisioningFactor: 140,
      healthyPanicThreshold: 50,
      weightedPriorityHealth: false,
      random: seededRandom(),
      createPicker: () => new RoundRobin<Host>(0),
      onPanic: () => panicCount++,
      ...fields,
    });
    return { balancer: created, panics: () => panicCount };
  }

  test('leaves unhealthy hosts out as long as enough others are there', () => {
    const { balancer: choice, panics } = balancer();
    choice.setHosts([host('a'), host('ill', 0, UNHEALTHY), host('b'), host('c')]);
    assert.deepEqual(
      shares(30, () => choice.next()),
      { a: 10, b: 10, c: 10 },
    );
    assert.equal(panics(), 0);
  });

  test('uses all of them in panic, and counts each such request', () => {
    const { balancer: choice, panics } = balancer();
    choice.setHosts([host('a'), host('b', 0, UNHEALTHY), host('c', 0, UNHEALTHY)]);
    assert.deepEqual(
      shares(30, () => choice.next()),
      { a: 10, b: 10, c: 10 },
    );
    assert.equal(panics(), 30);
  });

  test('has no host when all are unhealthy and panic is off', () => {
    const { balancer: choice } = balancer({ healthyPanicThreshold: 0 });
    choice.setHosts([host('a', 0, UNHEALTHY)]);
    assert.equal(choice.next(), null);
  });

  test('spills over to the next priority by shares', () => {
    const { balancer: choice } = balancer();
    choice.setHosts([host('a'), host('ill', 0, UNHEALTHY), host('next', 1)]);
    const { a = 0, next = 0, ill = 0 } = shares(10_000, () => choice.next());
    assert.ok(Math.abs(a - 7000) < 300 && Math.abs(next - 3000) < 300, `${a} and ${next}`);
    assert.equal(ill, 0);
  });

  test('uses degraded hosts for what healthy ones cannot take', () => {
    const { balancer: choice } = balancer();
    choice.setHosts([host('a'), host('slow', 0, DEGRADED)]);
    const { a = 0, slow = 0 } = shares(10_000, () => choice.next());
    assert.ok(Math.abs(a - 7000) < 300 && Math.abs(slow - 3000) < 300, `${a} and ${slow}`);
  });

  test('weighs health where asked to', () => {
    const { balancer: choice } = balancer({ weightedPriorityHealth: true });
    choice.setHosts([host('big', 0, 0, 9), host('ill', 0, UNHEALTHY), host('next', 1)]);
    assert.deepEqual(
      shares(100, () => choice.next()),
      { big: 100 },
    );
  });

  test('sees a change of health with the next update, and a priority that has emptied', () => {
    const { balancer: choice } = balancer();
    const hosts = [host('a'), host('b'), host('next', 1)];
    choice.setHosts(hosts);
    hosts[0]!.healthFlags = UNHEALTHY;
    hosts[1]!.healthFlags = UNHEALTHY;
    choice.setHosts(hosts);
    assert.deepEqual(
      shares(50, () => choice.next()),
      { next: 50 },
    );
    choice.setHosts([]);
    assert.equal(choice.next(), null);
  });
});
