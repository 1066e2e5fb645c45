// What a TCP proxy draws for each of its connections: where it goes, and how long it may last.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { DownstreamConnection } from '../../../../src/data-plane/network/downstream-connection.ts';
import type { TcpProxySettings } from '../../../../src/snapshot/index.ts';
import { TcpProxyBench } from '../../../support/tcp-proxy-bench.ts';

const DOWNSTREAM = new DownstreamConnection({} as never, 0, 0);

/** A proxy for which chance brings this number. */
function drawing(t: TestContext, settings: Partial<TcpProxySettings>, chance: () => number): TcpProxyBench {
  const bench = new TcpProxyBench(t, { settings });
  Object.assign(bench.context, { random: { u32: chance } });
  return bench;
}

describe('the cluster of a connection', () => {
  test('is drawn by weight: of as many numbers as there is weight, each gets its share', (t) => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 5 }),
        fc.nat(1e6),
        (weights, start) => {
          const clusters = weights.map((weight, index) => ({ cluster: `c${index}`, weight, criteria: null }));
          const total = weights.reduce((sum, weight) => sum + weight, 0);
          let chance = start * total;
          const { proxy } = drawing(t, { clusters }, () => chance++);
          const drawn = Array.from({ length: total }, () => proxy.chooseTarget(DOWNSTREAM).cluster);
          assert.deepEqual(
            drawn,
            weights.flatMap((weight, index) => new Array<string>(weight).fill(`c${index}`)),
          );
        },
      ),
      { numRuns: 10 },
    );
  });

  test('is not left to chance when there is one', (t) => {
    const { proxy } = drawing(t, {}, () => assert.fail('drawn'));
    assert.deepEqual(proxy.chooseTarget(DOWNSTREAM), { cluster: 'web', asks: null });
  });
});

describe('the time that a connection may last', () => {
  const durationMs = (t: TestContext, limitMs: number, jitterPercent: number, chance: () => number): number => {
    const settings = { maxConnectionDurationMs: limitMs, maxConnectionDurationJitterPercent: jitterPercent };
    return drawing(t, settings, chance).proxy.drawDurationMs();
  };

  test('has no end without a limit, and ends at the limit without a spread', (t) => {
    const never = () => assert.fail('drawn');
    assert.equal(durationMs(t, 0, 50, never), Number.POSITIVE_INFINITY);
    assert.equal(durationMs(t, 1000, 0, never), 1000);
    assert.equal(durationMs(t, 99, 1, never), 99);
  });

  test('is spread evenly behind the limit', (t) => {
    const drawn = [0, 1, 149, 150, 301].map((chance) => durationMs(t, 1000, 15, () => chance));
    assert.deepEqual(drawn, [1000, 1001, 1149, 1000, 1001]);
  });
});

test('a connection whose cluster is not known is closed at once where too many wait for one already', async (t) => {
  const source = { origin: { kind: 'ads' }, resourceGeneration: 'v3', initialFetchTimeoutMs: 0 } as const;
  const clusters = [{ cluster: 'gone', weight: 1, criteria: null }];
  const bench = new TcpProxyBench(t, { settings: { clusters, onDemand: { source, timeoutMs: 0 } } });
  const asked = t.mock.method(bench.context.demands, 'ask', () => undefined);
  await bench.client();
  await bench.untilClosed();
  assert.equal(asked.mock.callCount(), 1);
  assert.equal(bench.stat('downstream_cx_no_route'), 1);
});
