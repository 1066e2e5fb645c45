// Route tables of a worker: which one a request goes by, and when the one before it is gone.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { RouteTables } from '../../../../src/data-plane/route/route-tables.ts';
import type { RouteParts, RoutesInUse } from '../../../../src/data-plane/route/routes-in-use.ts';
import type { PublishedRoutes } from '../../../../src/snapshot/index.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const NONE = { virtualHosts: [], ignoresPort: false, internalOnlyHeaders: [] };

function published(id: number, name: string): PublishedRoutes {
  return { id, table: { ...NONE, name }, statBlocks: {}, filterCells: {} };
}

function world() {
  const clock = new ManualClock();
  const tables = new RouteTables({ clock } as unknown as RouteParts);
  const gone: string[] = [];
  const publish = (id: number, name: string): void => tables.publish(published(id, name), () => void gone.push(name));
  return { clock, tables, gone, publish, turn: () => clock.turn(0) };
}

describe('the route tables of a worker', () => {
  it('are empty before they come, and are met in the same slot from then on', () => {
    const { tables, publish } = world();
    const slot = tables.slot(3);
    assert.equal(slot.current.table.name, '');
    publish(3, 'first');
    assert.equal(slot.current.table.name, 'first');
    assert.equal(tables.slot(3), slot);
    assert.equal(tables.slot(4).current.table.name, '');
  });

  it('are gone, a turn later, when the last request that began with them has ended', () => {
    const { tables, gone, publish, turn } = world();
    publish(1, 'first');
    turn();
    assert.deepEqual(gone, ['first']);
    const { current } = tables.slot(1);
    current.enter();
    current.enter();
    publish(1, 'second');
    current.leave();
    turn();
    assert.deepEqual(gone, ['first']);
    current.leave();
    assert.deepEqual(gone, ['first']);
    turn();
    assert.deepEqual(gone, ['first', 'second']);
  });

  it('tell those who have made something of them that they are gone', () => {
    const { tables, publish, turn } = world();
    publish(1, 'first');
    const { current } = tables.slot(1);
    const forgotten: RoutesInUse[] = [];
    current.users.add({ forget: (routes) => void forgotten.push(routes) });
    publish(1, 'second');
    turn();
    assert.deepEqual(forgotten, [current]);
  });

  it('are removed, and confirmed at once where there are none', () => {
    const { tables, gone, publish, turn } = world();
    publish(1, 'first');
    turn();
    const slot = tables.slot(1);
    slot.current.enter();
    const former = slot.current;
    tables.remove(1, () => void gone.push('removed'));
    turn();
    assert.deepEqual(gone, ['first']);
    assert.equal(slot.current.table.name, '');
    former.leave();
    turn();
    tables.remove(1, () => void gone.push('nothing to remove'));
    assert.deepEqual(gone, ['first', 'removed', 'nothing to remove']);
  });

  it('are each confirmed once, whatever requests do, and never while one goes by them', () => {
    const steps = fc.array(fc.record({ act: fc.constantFrom('publish', 'begin', 'end', 'turn'), pick: fc.nat(20) }));
    fc.assert(
      fc.property(steps, (taken) => {
        const { tables, turn } = world();
        const running: RoutesInUse[] = [];
        const confirmed = new Map<RoutesInUse, number>();
        const replaced: RoutesInUse[] = [];
        for (const { act, pick } of taken) {
          if (act === 'publish') {
            const former = tables.slot(1).current;
            replaced.push(former);
            tables.publish(published(1, 'x'), () => {
              assert.ok(!running.includes(former));
              confirmed.set(former, (confirmed.get(former) ?? 0) + 1);
            });
          } else if (act === 'begin') {
            const { current } = tables.slot(1);
            current.enter();
            running.push(current);
          } else if (act === 'end') running.splice(pick % Math.max(running.length, 1), 1)[0]?.leave();
          else turn();
        }
        for (const routes of running.splice(0)) routes.leave();
        turn();
        assert.deepEqual(
          [...confirmed.values()],
          replaced.map(() => 1),
        );
      }),
    );
  });
});
