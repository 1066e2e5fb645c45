// What one process counts, as its successor goes on with it.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { StatExport, StatImport, statTable } from '../../../../src/stats/index.ts';
import { listing, type StatsFixture, statsFixture } from '../../../support/stats.ts';

const TABLE = statTable({ rq: 'counter', cx_active: 'gauge', membership_total: 'gauge', warming_state: 'gauge' });

interface Pair {
  readonly parent: StatsFixture;
  readonly child: StatsFixture;
  readonly imported: StatImport;
  /** @param isLeft the child has taken over. */
  pull(isLeft?: boolean): Promise<void>;
}

function pair(): Pair {
  const parent = statsFixture();
  const child = statsFixture();
  const exported = new StatExport(parent.store);
  const imported = new StatImport(child.store);
  const pull = async (isLeft = false): Promise<void> => {
    for await (const batch of exported.batches(isLeft)) imported.take(JSON.parse(JSON.stringify(batch)));
    imported.end();
  };
  return { parent, child, imported, pull };
}

describe('stats of a process that leaves', () => {
  it('are counted on by its successor', async () => {
    const { parent, child, pull } = pair();
    const old = parent.store.scope('cluster.web.').allocate(TABLE);
    const own = child.store.scope('cluster.web.').allocate(TABLE);
    old.add('rq', 5);
    await pull();
    own.add('rq', 2);
    assert.equal(child.store.value('cluster.web.rq'), 7);
    await pull();
    assert.equal(child.store.value('cluster.web.rq'), 7);
    old.add('rq', 3);
    await pull();
    assert.equal(child.store.value('cluster.web.rq'), 10);
  });

  it('are held by both as gauges, until it is gone', async () => {
    const { parent, child, imported, pull } = pair();
    const old = parent.store.scope('cluster.web.').allocate(TABLE);
    const own = child.store.scope('cluster.web.').allocate(TABLE);
    old.set('cx_active', 4);
    own.set('cx_active', 1);
    await pull();
    assert.equal(child.store.value('cluster.web.cx_active'), 5);
    old.set('cx_active', 3);
    own.set('cx_active', 2);
    await pull();
    assert.equal(child.store.value('cluster.web.cx_active'), 5);
    imported.close();
    assert.equal(child.store.value('cluster.web.cx_active'), 2);
  });

  it('leave gauges alone that are those of one process', async () => {
    const { parent, child, pull } = pair();
    const told = parent.store.scope('cluster.web.').allocate(TABLE);
    told.set('membership_total', 3);
    told.set('warming_state', 1);
    for (const prefix of ['server.', 'runtime.', 'listener_manager.', 'cluster_manager.', 'overload.a.'])
      parent.store.scope(prefix).gauge('some').set(9);
    child.store.scope('cluster.web.').allocate(TABLE).set('membership_total', 2);
    await pull();
    assert.deepEqual(await listing(child.store, true), ['cluster.web.membership_total: 2']);
  });

  it('are shown for owners that the successor has not, while it is there', async () => {
    const { parent, child, imported, pull } = pair();
    const old = parent.store.scope('cluster.gone.').allocate(TABLE);
    old.add('rq', 2);
    old.set('cx_active', 1);
    await pull();
    assert.deepEqual(await listing(child.store), ['cluster.gone.cx_active: 1', 'cluster.gone.rq: 2']);
    imported.close();
    assert.deepEqual(await listing(child.store), []);
  });

  it('keep their names that workers have made up', async () => {
    const { parent, child, imported, pull } = pair();
    parent.store.scope('cluster.web.').counter('rq_503').add(2);
    child.store.scope('cluster.web.').allocate(TABLE);
    await pull();
    imported.close();
    assert.equal(child.store.value('cluster.web.rq_503'), 2);
    assert.equal(child.store.dynamicCell({ scope: 'cluster.web.', name: 'rq_503' }) > 0, true);
  });

  it('do not come at all where nobody is shown them', async () => {
    const parent = statsFixture();
    const child = statsFixture({ accepts: (name) => !name.includes('gone') });
    parent.store.scope('cluster.gone.').allocate(TABLE).add('rq', 2);
    const imported = new StatImport(child.store);
    for await (const batch of new StatExport(parent.store).batches(false)) imported.take(batch);
    assert.deepEqual(await listing(child.store), []);
  });

  it('are told to sinks once, by one of both', async () => {
    const steps = fc.array(fc.record({ who: fc.constantFrom('old', 'own', 'flush', 'pull'), n: fc.nat(9) }));
    await fc.assert(
      fc.asyncProperty(fc.nat(9), fc.nat(9), steps, async (flushed, unflushed, then) => {
        const { parent, child, pull } = pair();
        const old = parent.store.scope('cluster.web.').allocate(TABLE);
        const own = child.store.scope('cluster.web.').allocate(TABLE);
        let told = 0;
        const flush = async ({ store }: StatsFixture): Promise<void> => {
          for await (const batch of store.countersAndGauges()) for (const stat of batch) told += stat.takeIncrement();
        };
        old.add('rq', flushed);
        await flush(parent);
        old.add('rq', unflushed);
        let counted = flushed + unflushed;
        for (const { who, n } of then) {
          if (who === 'flush') await flush(child);
          else if (who === 'pull') await pull();
          else {
            (who === 'old' ? old : own).add('rq', n);
            counted += n;
          }
        }
        await pull();
        await flush(child);
        assert.equal(child.store.value('cluster.web.rq'), counted);
        assert.equal(told, counted);
      }),
    );
  });

  it('are told to sinks by it after all, when its successor is gone too early', async () => {
    const { parent, pull } = pair();
    parent.store.scope('cluster.web.').allocate(TABLE).add('rq', 3);
    await pull();
    let told = 0;
    for await (const batch of parent.store.countersAndGauges()) for (const stat of batch) told += stat.takeIncrement();
    assert.equal(told, 3);
  });

  it('are told to sinks once, also when their process serves again, and its successor has taken over and gone', async () => {
    const steps = fc.array(fc.record({ who: fc.constantFrom('old', 'own', 'flush'), n: fc.nat(9) }));
    await fc.assert(
      fc.asyncProperty(fc.nat(9), fc.nat(9), steps, fc.nat(9), async (flushed, unflushed, then, last) => {
        const { parent, child, pull } = pair();
        const old = parent.store.scope('cluster.web.').allocate(TABLE);
        const own = child.store.scope('cluster.web.').allocate(TABLE);
        let told = 0;
        const flush = async ({ store }: StatsFixture): Promise<void> => {
          for await (const batch of store.countersAndGauges()) for (const stat of batch) told += stat.takeIncrement();
        };
        old.add('rq', flushed);
        await flush(parent);
        old.add('rq', unflushed);
        await pull(false);
        let counted = flushed + unflushed;
        for (const { who, n } of then) {
          if (who === 'flush') {
            // What a successor is told of it tells its sinks of with the same flush.
            await pull(true);
            await flush(child);
          } else {
            (who === 'old' ? old : own).add('rq', n);
            counted += n;
          }
        }
        await pull(true);
        await flush(child);
        old.add('rq', last);
        await flush(parent);
        assert.equal(told, counted + last);
      }),
    );
  });
});
