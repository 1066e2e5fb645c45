// What one thing was given in shared memory, and how it goes back.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Holdings } from '../../../src/control-plane/holdings.ts';
import { LISTENER_STATS } from '../../../src/stats/index.ts';
import { statsFixture } from '../../support/stats.ts';

it('holdings give back scopes, records and what is kept elsewhere, once and together', () => {
  const { owner, store } = statsFixture();
  const held = (): object => ({
    cells: owner.cells.usedCells,
    records: owner.recordAllocator.usedRecords,
    waiting: owner.reclaimer.waitingCount,
  });
  const before = held();
  const holdings = new Holdings({ stats: store, memory: owner });
  const released: string[] = [];
  holdings.scope('a.').allocate(LISTENER_STATS);
  holdings.scope('b.').allocate(LISTENER_STATS);
  assert.notEqual(holdings.clusterRecord(), holdings.countRecord());
  for (const name of ['first', 'second']) holdings.hold(() => released.push(name));
  assert.deepEqual([released, owner.recordAllocator.usedRecords], [[], 2]);
  for (let times = 0; times < 2; times++) {
    holdings.close();
    assert.deepEqual([held(), released], [before, ['first', 'second']]);
  }
});
