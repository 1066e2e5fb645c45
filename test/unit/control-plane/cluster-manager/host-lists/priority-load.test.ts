import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  type PriorityState,
  priorityLoads,
} from '../../../../../src/control-plane/cluster-manager/host-lists/priority-load.ts';

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
      name: 'excluded hosts take nothing away from what the others can take',
      rows: [
        [10, 4, 0, 5],
        [10, 10],
      ],
      healthy: [100, 0],
    },
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
    { name: 'no hosts, and no panic', rows: [[0, 0]], healthy: [100], threshold: 0 },
    { name: 'just as many as the threshold asks for', rows: [[100, 50]], healthy: [100] },
    { name: 'one less than that', rows: [[100, 49]], healthy: [100], panic: [true] },
    {
      name: 'healthy and degraded ones count alike against the threshold',
      rows: [[100, 25, 25]],
      healthy: [50],
      degraded: [50],
    },
    { name: 'excluded hosts count neither for panic nor against it', rows: [[100, 20, 0, 60]], healthy: [100] },
    {
      name: 'rounding goes to the first that has healthy hosts',
      rows: [
        [100, 0, 20],
        [100, 20],
        [100, 20],
      ],
      healthy: [0, 34, 33],
      degraded: [33, 0, 0],
      threshold: 0,
    },
    {
      name: 'rounding goes to the first that has degraded hosts where none is healthy',
      rows: [
        [100, 0],
        [100, 0, 20],
        [100, 0, 20],
        [100, 0, 20],
      ],
      healthy: [0, 0, 0, 0],
      degraded: [0, 34, 33, 33],
      threshold: 0,
    },
    {
      name: 'rounding goes to the first that has hosts where all are in panic',
      rows: [
        [0, 0],
        [7, 0],
        [7, 0],
        [7, 0],
      ],
      healthy: [0, 34, 33, 33],
      panic: [true, true, true, true],
    },
  ];
  for (const { name, rows, healthy, degraded, panic, threshold = 50 } of cases) {
    test(name, () => {
      const loads = priorityLoads(rows.map(state), { ...LIMITS, healthyPanicThreshold: threshold });
      assert.deepEqual(loads.healthy, healthy);
      assert.deepEqual(loads.degraded, degraded ?? rows.map(() => 0));
      assert.deepEqual(loads.isPanic, panic ?? rows.map(() => false));
    });
  }

  // The documented tables: of 100 hosts each, so many healthy ones, and percent of all requests, by priority. Where the
  // documents round (36, 36 and 28; 7 and 93), what the formula leaves goes to the first priority.
  const documented: readonly (readonly [healthy: readonly number[], loads: readonly number[]])[] = [
    [
      [100, 100],
      [100, 0],
    ],
    [
      [72, 100],
      [100, 0],
    ],
    [
      [71, 100],
      [99, 1],
    ],
    [
      [50, 100],
      [70, 30],
    ],
    [
      [25, 100],
      [35, 65],
    ],
    [
      [0, 100],
      [0, 100],
    ],
    [
      [72, 72],
      [100, 0],
    ],
    [
      [71, 71],
      [99, 1],
    ],
    [
      [50, 50],
      [70, 30],
    ],
    [
      [50, 60],
      [70, 30],
    ],
    [
      [25, 25],
      [50, 50],
    ],
    [
      [5, 65],
      [8, 92],
    ],
    [
      [100, 100, 100],
      [100, 0, 0],
    ],
    [
      [72, 72, 100],
      [100, 0, 0],
    ],
    [
      [71, 71, 100],
      [99, 1, 0],
    ],
    [
      [50, 50, 100],
      [70, 30, 0],
    ],
    [
      [25, 100, 100],
      [35, 65, 0],
    ],
    [
      [25, 25, 100],
      [35, 35, 30],
    ],
    [
      [25, 25, 20],
      [37, 35, 28],
    ],
  ];
  for (const [healthy, loads] of documented) {
    test(`of ${healthy.join(', ')} of 100 healthy hosts is ${loads.join(', ')}`, () => {
      const states = healthy.map((count) => state([100, count]));
      assert.deepEqual(priorityLoads(states, { ...LIMITS, healthyPanicThreshold: 0 }).healthy, loads);
    });
  }

  test('is as documented with degraded hosts, healthy, degraded and ill ones of 100', () => {
    for (const [healthy, degraded, loads] of [
      [100, 0, [100, 0]],
      [71, 0, [100, 0]],
      [71, 29, [99, 1]],
      [25, 65, [35, 65]],
      [5, 0, [100, 0]],
    ] as const) {
      const shares = priorityLoads([state([100, healthy, degraded])], LIMITS);
      assert.deepEqual([shares.healthy[0], shares.degraded[0]], loads);
    }
  });

  test('panics as documented: below half, and only where all priorities together cannot take everything', () => {
    for (const [healthy, panic] of [
      [
        [72, 100],
        [false, false],
      ],
      [
        [25, 100],
        [false, false],
      ],
      [
        [0, 100],
        [false, false],
      ],
      [
        [72, 72],
        [false, false],
      ],
      [
        [71, 71],
        [false, false],
      ],
      [
        [50, 60],
        [false, false],
      ],
      [
        [25, 100],
        [false, false],
      ],
      [
        [25, 25],
        [true, true],
      ],
      [
        [5, 65],
        [true, false],
      ],
    ] as const) {
      const states = healthy.map((count) => state([100, count]));
      assert.deepEqual(priorityLoads(states, LIMITS).isPanic, panic, healthy.join());
    }
  });

  test('tells how much of all requests each could take, and counts healthy and degraded ones against panic', () => {
    const { isPanic, availability } = priorityLoads([state([10, 1, 1]), state([10, 0, 5])], LIMITS);
    assert.deepEqual([isPanic, availability], [[true, false], { healthy: [14, 0], degraded: [14, 70] }]);
  });

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
