// What workers wait for, as main keeps it: each name is asked for once, and everybody who waits is told once, in a bounded time.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { OpenDemands } from '../../../src/control-plane/open-demands.ts';
import { ManualClock } from '../../support/manual-clock.ts';

describe('demands at the main thread', () => {
  it('are told that there is nothing when it takes too long for each, and asked for anew by the next', () => {
    const clock = new ManualClock();
    const late: string[] = [];
    const told: boolean[] = [];
    const demands = new OpenDemands(clock, (name) => void late.push(name));
    const add = (timeoutMs: number): boolean => demands.add('a', timeoutMs, (isThere) => void told.push(isThere));
    assert.deepEqual([add(100), add(5000)], [true, false]);
    clock.turn(99);
    assert.deepEqual(told, []);
    clock.turn(1);
    assert.deepEqual([told, late, [...demands.names]], [[false], [], ['a']]);
    clock.turn(4900);
    assert.deepEqual([told, late, [...demands.names]], [[false, false], ['a'], []]);
    assert.equal(add(0), true);
    clock.turn(15_000);
    assert.deepEqual([told.length, late, clock.timerCount], [3, ['a', 'a'], 0]);
  });

  it('are no more than a thousand names at a time', () => {
    const demands = new OpenDemands(new ManualClock(), () => {});
    for (let at = 0; at < 1000; at += 1)
      assert.equal(
        demands.add(`${at}`, 1, () => assert.fail()),
        true,
      );
    const told: boolean[] = [];
    assert.equal(
      demands.add('beyond', 1, (isThere) => void told.push(isThere)),
      false,
    );
    assert.deepEqual(told, [false]);
  });

  it('tell everybody exactly once, however answers and times fall', () => {
    const name = fc.constantFrom('a', 'b');
    const step = fc.oneof(
      fc.record({ kind: fc.constant('add' as const), name, timeoutMs: fc.integer({ min: 1, max: 50 }) }),
      fc.record({ kind: fc.constant('settle' as const), name, isThere: fc.boolean() }),
      fc.record({ kind: fc.constant('turn' as const), ms: fc.integer({ min: 1, max: 30 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.boolean(), (steps, closes) => {
        const clock = new ManualClock();
        const demands = new OpenDemands(clock, () => {});
        const told: number[] = [];
        for (const each of steps) {
          if (each.kind === 'add') {
            const at = told.push(0) - 1;
            const isOpen = [...demands.names].includes(each.name);
            assert.equal(
              demands.add(each.name, each.timeoutMs, () => {
                told[at]! += 1;
              }),
              !isOpen,
            );
          } else if (each.kind === 'settle') demands.settle(each.name, each.isThere);
          else clock.turn(each.ms);
          assert.ok(told.every((count) => count <= 1));
        }
        if (closes) demands.close();
        else clock.turn(50);
        assert.ok(told.every((count) => count === 1));
        assert.equal(clock.timerCount, 0);
      }),
    );
  });
});
