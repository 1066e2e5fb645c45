// Which hosts a request may not have, and what that makes of the choice.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Cluster } from '../../../../src/data-plane/upstream/cluster.ts';
import type { Host } from '../../../../src/data-plane/upstream/host.ts';
import type { HostSelection } from '../../../../src/data-plane/upstream/host-selection.ts';
import { RetiredHosts } from '../../../../src/data-plane/upstream/retired-hosts.ts';
import { DataPlaneFixture, loopback } from '../../../support/data-plane.ts';

class Selection implements HostSelection {
  draw = 99;
  readonly maxDraws: number;
  readonly spentPriorities = new Set<number>();
  readonly asked: Host[] = [];
  readonly #isWanted: (host: Host) => boolean;

  constructor(maxDraws: number, isWanted: (host: Host) => boolean) {
    this.maxDraws = maxDraws;
    this.#isWanted = isWanted;
  }

  accepts(host: Host): boolean {
    this.asked.push(host);
    return this.#isWanted(host);
  }
}

describe('a choice of a host', () => {
  const proxy = new DataPlaneFixture();
  let cluster: Cluster;

  before(() => {
    const snapshot = proxy.cluster('three', [loopback(1), loopback(2), loopback(3)]);
    cluster = new Cluster(proxy.context, snapshot);
    cluster.updateHosts(snapshot, new RetiredHosts(() => {}));
  });
  after(async () => {
    cluster.close();
    await proxy.close();
  });

  test('goes on until a host is accepted', () => {
    for (let round = 0; round < 9; round += 1) {
      const selection = new Selection(3, ({ label }) => label.endsWith(':2'));
      assert.equal(cluster.chooseHost(null, selection)!.label.split(':')[1], '2');
    }
  });

  test('takes the last host that may be drawn, without asking', () => {
    const selection = new Selection(3, () => false);
    const last = cluster.chooseHost(null, selection)!;
    assert.equal(selection.asked.length, 2);
    assert.ok(!selection.asked.includes(last));
    assert.equal(selection.draw, 2);
    const single = new Selection(1, () => false);
    assert.notEqual(cluster.chooseHost(null, single), null);
    assert.deepEqual(single.asked, []);
  });

  test('ends at once where there is no host', () => {
    const snapshot = proxy.cluster('none', []);
    const empty = new Cluster(proxy.context, snapshot);
    empty.updateHosts(snapshot, new RetiredHosts(() => {}));
    const selection = new Selection(1_000_000_000, () => false);
    assert.equal(empty.chooseHost(null, selection), null);
    assert.deepEqual(selection.asked, []);
  });
});
