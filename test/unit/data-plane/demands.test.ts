// What requests of a worker wait for: nobody who waits is forgotten, whoever has left is told nothing, and main is asked once.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Demands } from '../../../src/data-plane/demands.ts';
import type { Demand } from '../../../src/snapshot/index.ts';

function host(name: string, routeTableId = 1): Demand {
  return { kind: 'virtual-host', routeTableId, host: name };
}

function world() {
  const asked: [question: number, demand: Demand][] = [];
  const faults: unknown[] = [];
  const demands = new Demands(
    (question, demand) => void asked.push([question, demand]),
    (error) => void faults.push(error),
  );
  return { asked, faults, demands };
}

describe('the demands of a worker', () => {
  it('are asked for once for all who want the same, and again when that has been answered', () => {
    const { asked, demands } = world();
    const told: string[] = [];
    for (let at = 0; at < 1000; at += 1) demands.ask(host('a'), (isThere) => void told.push(`${at} ${isThere}`));
    demands.ask(host('a', 2), () => {});
    assert.deepEqual(
      asked.map(([, demand]) => demand),
      [host('a'), host('a', 2)],
    );
    demands.answered(asked[0]![0], true);
    assert.deepEqual([told.length, told.at(-1), demands.waiting], [1000, '999 true', 1]);
    demands.answered(asked[0]![0], true);
    assert.equal(told.length, 1000);
    demands.ask(host('a'), () => {});
    assert.equal(asked.length, 3);
  });

  it('are bounded in number, and there is room again when some have been answered', () => {
    const { asked, demands } = world();
    for (let at = 0; at < 1000; at += 1) assert.ok(demands.ask(host(`${at}`), () => {}));
    assert.equal(
      demands.ask(host('beyond'), () => {}),
      undefined,
    );
    for (let at = 1000; at < 10_000; at += 1) assert.ok(demands.ask(host('0'), () => {}));
    assert.equal(
      demands.ask(host('0'), () => {}),
      undefined,
    );
    demands.answered(asked[0]![0], false);
    assert.ok(demands.ask(host('beyond'), () => {}));
  });

  it('tell the others of an answer when one of them fails, or has them leave', () => {
    const { asked, faults, demands } = world();
    const told: string[] = [];
    let leave: (() => void) | undefined;
    demands.ask(host('a'), () => {
      leave!();
      throw new Error('fails');
    });
    leave = demands.ask(host('a'), () => void told.push('left'));
    demands.ask(host('a'), () => void told.push('last'));
    demands.answered(asked[0]![0], true);
    assert.deepEqual([told, faults.length, demands.waiting], [['last'], 1, 0]);
  });

  it('tell everybody who has not left exactly once, in whatever order things happen', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('ask' as const), name: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ kind: fc.constant('leave' as const), at: fc.nat(20) }),
      fc.record({ kind: fc.constant('answer' as const), at: fc.nat(5), isThere: fc.boolean() }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const { asked, demands } = world();
        const open: number[] = [];
        const waiters: { name: string; leave: () => void; told: number; hasLeft: boolean; isOpen: boolean }[] = [];
        for (const each of steps) {
          if (each.kind === 'ask') {
            const before = asked.length;
            const waiter = { name: each.name, leave: () => {}, told: 0, hasLeft: false, isOpen: true };
            const isFirst = waiters.every(({ name, isOpen }) => name !== each.name || !isOpen);
            waiter.leave = demands.ask(host(each.name), () => {
              waiter.told += 1;
            })!;
            waiters.push(waiter);
            assert.equal(asked.length - before, isFirst ? 1 : 0);
            if (isFirst) open.push(asked.at(-1)![0]);
          } else if (each.kind === 'leave') {
            const waiter = waiters[each.at % Math.max(1, waiters.length)];
            if (waiter === undefined) continue;
            waiter.leave();
            if (waiter.isOpen) waiter.hasLeft = true;
          } else if (open.length > 0) {
            const [question] = open.splice(each.at % open.length, 1);
            const [, demand] = asked.find(([number]) => number === question)!;
            demands.answered(question!, each.isThere);
            for (const waiter of waiters) {
              if (demand.kind === 'virtual-host' && waiter.name === demand.host) waiter.isOpen = false;
            }
          }
          for (const { told, hasLeft, isOpen } of waiters) assert.equal(told, isOpen || hasLeft ? 0 : 1);
          assert.equal(demands.waiting, waiters.filter(({ hasLeft, isOpen }) => isOpen && !hasLeft).length);
        }
      }),
    );
  });
});
