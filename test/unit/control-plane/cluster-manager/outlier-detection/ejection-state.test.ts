// How long ejections of one host last, by the times that are configured.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ActiveHost } from '../../../../../src/control-plane/cluster-manager/active-host.ts';
import { EjectionState } from '../../../../../src/control-plane/cluster-manager/outlier-detection/ejection-state.ts';

describe('the ejections of a host', () => {
  const NO_HOST = {} as ActiveHost;

  it('grow by a step each, to one step beyond the limit, and shrink by one for each interval in service', () => {
    const step = fc.constantFrom('eject' as const, 'forgive' as const);
    const times = fc.record({
      baseEjectionTimeMs: fc.integer({ min: 1, max: 5 }),
      maxEjectionTimeMs: fc.integer({ min: 1, max: 20 }),
      intervalMs: fc.integer({ min: 1, max: 10 }),
    });
    fc.assert(
      fc.property(times, fc.array(step, { maxLength: 40 }), fc.nat(3), (limits, steps, jitterMs) => {
        const { baseEjectionTimeMs: baseMs, maxEjectionTimeMs: maxMs, intervalMs } = limits;
        const state = new EjectionState(NO_HOST);
        let nowMs = 1000;
        let count = 0;
        let ejections = 0;
        for (const each of steps) {
          if (each === 'forgive') {
            state.forgive(nowMs + intervalMs - 1, limits);
            nowMs += intervalMs;
            state.forgive(nowMs, limits);
            count = Math.max(0, count - 1);
          } else {
            state.eject(nowMs, limits, jitterMs);
            count = Math.min(count + 1, Math.ceil(maxMs / baseMs) + 1);
            ejections += 1;
            const lastsMs = Math.min(count * baseMs, maxMs) + jitterMs;
            assert.deepEqual([state.ejections, state.ejectedAtMs], [ejections, nowMs]);
            assert.equal(state.isOver(nowMs + lastsMs - 1, limits), false);
            assert.equal(state.isOver(nowMs + lastsMs, limits), true);
            nowMs += lastsMs;
          }
          // Each interval in service is counted from here.
          state.uneject(nowMs);
          assert.equal(state.unejectedAtMs, nowMs);
        }
      }),
    );
  });

  it('are none to be forgiven where there has been none', () => {
    const limits = { baseEjectionTimeMs: 10, maxEjectionTimeMs: 100, intervalMs: 10 };
    const state = new EjectionState(NO_HOST);
    for (const nowMs of [100, 200]) state.forgive(nowMs, limits);
    state.eject(300, limits, 0);
    assert.deepEqual([state.isOver(309, limits), state.isOver(310, limits)], [false, true]);
  });

  it('take as many intervals in service to be forgotten as there are steps, however often they went to the limit', () => {
    const limits = { baseEjectionTimeMs: 10, maxEjectionTimeMs: 20, intervalMs: 10 };
    const state = new EjectionState(NO_HOST);
    for (const nowMs of [100, 200, 300, 400, 500]) state.eject(nowMs, limits, 0);
    state.uneject(600);
    for (const nowMs of [610, 620, 630]) state.forgive(nowMs, limits);
    state.eject(700, limits, 0);
    assert.deepEqual([state.isOver(709, limits), state.isOver(710, limits)], [false, true]);
  });
});

describe('what a host did in the last interval', () => {
  it('is what it has done since the one before, for either origin', () => {
    const volumes = { external: { total: 7, success: 5 }, local: { total: 4, success: 3 } };
    const state = new EjectionState({ outlierVolume: (origin) => ({ ...volumes[origin] }) } as ActiveHost);
    const last = (): object => ({ external: state.lastInterval('external'), local: state.lastInterval('local') });
    const nothing = { total: 0, success: 0 };
    assert.deepEqual(last(), { external: nothing, local: nothing });
    state.endInterval();
    assert.deepEqual(last(), volumes);
    volumes.external = { total: 17, success: 6 };
    assert.deepEqual(state.lastInterval('external'), { total: 7, success: 5 });
    state.endInterval();
    assert.deepEqual(last(), { external: { total: 10, success: 1 }, local: nothing });
  });
});
