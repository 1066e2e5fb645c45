// Which responses end their connections while listeners drain.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { RandomSequence } from '../../../src/base/random.ts';
import { Drains, ListenerDrain } from '../../../src/data-plane/drains.ts';
import type { DrainProgress, ListenerSettings } from '../../../src/snapshot/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';

type Kind = Pick<ListenerSettings, 'trafficDirection' | 'drainType'>;

const OUTBOUND: Kind = { trafficDirection: 'OUTBOUND', drainType: 'default' };
const INBOUND: Kind = { trafficDirection: 'INBOUND', drainType: 'default' };

function open(seed = 1) {
  const clock = new ManualClock();
  const drains = new Drains(clock, new RandomSequence(seed));
  const serverHealth = { isFailing: false };
  const listener = (kind: Kind): ListenerDrain => new ListenerDrain({ drains, serverHealth }, kind);
  return { clock, drains, serverHealth, listener };
}

function gradual(durationMs: number, elapsedMs = 0): DrainProgress {
  return { strategy: 'gradual', durationMs, elapsedMs };
}

const ASKED = 20_000;

function closedOf(listener: ListenerDrain): number {
  let closed = 0;
  for (let index = 0; index < ASKED; index += 1) if (listener.closes()) closed += 1;
  return closed;
}

describe('a response of a listener that drains', () => {
  it('ends its connection as often as the share of the drain time that has passed says, and always behind it', () => {
    // Doubles of fast-check are nearly all next to nothing.
    const thousandths = (max: number): fc.Arbitrary<number> => fc.nat({ max }).map((number) => number / 1000);
    const anyDrain = fc.record({
      durationMs: fc.integer({ min: 1000, max: 3_600_000 }),
      share: thousandths(1200),
      before: thousandths(1000),
      seed: fc.integer(),
    });
    fc.assert(
      fc.property(anyDrain, ({ durationMs, share, before, seed }) => {
        const { clock, drains, listener } = open(seed);
        const elapsedMs = durationMs * share;
        // A part of the time has passed before this worker heard of the drain.
        drains.begin({ inbound: null, others: gradual(durationMs, elapsedMs * before) });
        clock.turn(elapsedMs - elapsedMs * before);
        const expected = Math.min(share, 1);
        const closed = closedOf(listener(OUTBOUND)) / ASKED;
        if (share > 1.001) assert.equal(closed, 1);
        // Six standard deviations, and the millisecond that times are cut to.
        const tolerance = 6 * Math.sqrt(0.25 / ASKED) + 1 / durationMs;
        assert.ok(Math.abs(closed - expected) <= tolerance, `${closed} for ${expected}`);
      }),
      { numRuns: 50 },
    );
  });

  it('ends it from the start where the strategy is immediate, or there is no drain time', () => {
    for (const progress of [{ ...gradual(600_000), strategy: 'immediate' } as const, gradual(0)]) {
      const { drains, listener } = open();
      drains.begin({ inbound: progress, others: progress });
      assert.equal(closedOf(listener(OUTBOUND)), ASKED);
    }
  });

  it('is left alone where others drain', () => {
    const { drains, listener } = open();
    const [inbound, outbound] = [listener(INBOUND), listener(OUTBOUND)];
    assert.deepEqual([inbound.closes(), outbound.closes()], [false, false]);
    drains.begin({ inbound: gradual(0), others: null });
    assert.deepEqual([inbound.closes(), outbound.closes()], [true, false]);
    drains.begin({ inbound: gradual(600_000), others: gradual(0) });
    assert.deepEqual([inbound.closes(), outbound.closes()], [false, true]);
    assert.deepEqual([inbound.isCertain, outbound.isCertain], [false, false]);
  });

  it('ends it while health checks fail, unless the listener drains only with its own end', () => {
    const { drains, serverHealth, listener } = open();
    const [follows, stays] = [listener(INBOUND), listener({ ...INBOUND, drainType: 'modify-only' })];
    serverHealth.isFailing = true;
    assert.deepEqual([follows.isCertain, follows.closes()], [true, true]);
    assert.deepEqual([stays.isCertain, stays.closes()], [false, false]);
    drains.begin({ inbound: gradual(600_000), others: null });
    assert.deepEqual([follows.closes(), stays.closes()], [true, false]);
    serverHealth.isFailing = false;
    assert.deepEqual([follows.isCertain, follows.closes()], [false, false]);
    // The operator's drain takes both.
    drains.begin({ inbound: gradual(0), others: null });
    assert.deepEqual([follows.closes(), stays.closes()], [true, true]);
  });
});

describe('a connection that hears of a drain by no response', () => {
  it('has its moment in the time that is left, all moments alike', () => {
    const { clock, drains, listener } = open();
    drains.begin({ inbound: null, others: gradual(1000, 200) });
    clock.turn(300);
    const moments = Array.from({ length: ASKED }, () => listener(OUTBOUND).noticeMs);
    assert.ok(moments.every((ms) => Number.isInteger(ms) && ms >= 0 && ms < 500));
    for (let from = 0; from < 500; from += 100) {
      const share = moments.filter((ms) => ms >= from && ms < from + 100).length / ASKED;
      assert.ok(Math.abs(share - 0.2) < 0.02, `${share} from ${from} ms`);
    }
  });

  it('has none without a drain of its listener', () => {
    const { drains, serverHealth, listener } = open();
    drains.begin({ inbound: gradual(1000), others: null });
    serverHealth.isFailing = true;
    assert.equal(listener(OUTBOUND).noticeMs, Number.POSITIVE_INFINITY);
    assert.ok(listener(INBOUND).noticeMs < 1000);
  });

  it('has it at once when the time is over, or there is none', () => {
    const { clock, drains, listener } = open();
    drains.begin({ inbound: { ...gradual(1000), strategy: 'immediate' }, others: gradual(1000) });
    assert.equal(listener(INBOUND).noticeMs, 0);
    clock.turn(1001);
    assert.equal(listener(OUTBOUND).noticeMs, 0);
  });

  it('has it by the drain that leaves less time', () => {
    const { drains, listener } = open();
    drains.begin({ inbound: null, others: gradual(1_000_000_000) });
    const removed = listener(OUTBOUND);
    removed.begin(gradual(10));
    assert.ok(removed.noticeMs < 10);
  });
});
