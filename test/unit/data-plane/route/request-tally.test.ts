// The scopes that a route table's tallies hold open.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TallyScopes } from '../../../../src/data-plane/route/request-tally.ts';
import type { WorkerStats } from '../../../../src/stats/index.ts';

test('a table holds each scope open once, from when a host asks for it until it is closed', () => {
  const told: string[] = [];
  const stats = {
    openScope: (scope: string) => told.push(`open ${scope}`),
    closeScope: (scope: string) => told.push(`close ${scope}`),
    base: (block: number) => block,
  } as unknown as WorkerStats;
  const cart = 'vhost.shop.vcluster.cart.';
  const other = 'vhost.shop.vcluster.other.';
  const route = 'vhost.shop.route.buy.';
  const scopes = new TallyScopes(stats, { [cart]: 1, [other]: 2, [route]: 3 });
  const tallyOf = scopes.ofHost({ name: 'shop', virtualClusters: [{ name: 'cart', headers: [] }] });
  assert.notEqual(tallyOf('buy'), null);
  assert.notEqual(tallyOf('buy'), null);
  assert.notEqual(tallyOf(undefined), null);
  assert.equal(scopes.ofHost({ name: 'plain' })(undefined), null);
  assert.deepEqual(told.splice(0), [`open ${cart}`, `open ${other}`, `open ${route}`]);
  scopes.close();
  assert.deepEqual(told.splice(0), [`close ${cart}`, `close ${other}`, `close ${route}`]);
  scopes.close();
  assert.deepEqual(told, []);
});
