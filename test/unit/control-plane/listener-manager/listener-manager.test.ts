// Listeners that come and go on the main thread: what the workers are told, what is told of them, and what is given back.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WeirError } from '../../../../src/base/errors.ts';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { ListenerManager } from '../../../../src/control-plane/listener-manager/listener-manager.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { ListenerSettings, ListenerSnapshot } from '../../../../src/snapshot/index.ts';
import {
  httpFilter,
  type JsonObject,
  listenerWith,
  mustLoad,
  socketAddress,
  withListeners,
} from '../../../support/bootstrap.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';

interface Stopped {
  readonly id: number;
  readonly successor: number | null;
  readonly drainMs: number;
  readonly applied: () => void;
}

class Fixture {
  readonly stats = statsFixture({ workerCount: 2 });
  readonly opened: { readonly snapshot: ListenerSnapshot; readonly predecessor: number | null }[] = [];
  readonly stopped: Stopped[] = [];
  readonly clock = new ManualClock();
  /** Workers cannot open the next one. */
  refusal: Error | undefined;
  readonly manager = new ListenerManager({
    stats: this.stats.store,
    memory: this.stats.owner,
    concurrency: 2,
    loggers: new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } }),
    runtime: new RuntimeValues(new Map([['proxy.resource_limits.listener.new.connection_limit', '7']])),
    clock: this.clock,
    drainMs: 600,
    workers: {
      openListener: async (snapshot, predecessor) => {
        if (this.refusal) throw this.refusal;
        this.opened.push({ snapshot, predecessor });
        return snapshot.settings.addresses.map((_, index) => 4000 + index);
      },
      stopListener: (id, successor, drainMs, applied) => this.stopped.push({ id, successor, drainMs, applied }),
    },
  });

  get held(): object {
    const { cells, recordAllocator, reclaimer } = this.stats.owner;
    return { cells: cells.usedCells, records: recordAllocator.usedRecords, waiting: reclaimer.waitingCount };
  }

  get states(): (readonly string[])[] {
    return this.manager
      .dump()
      .map(({ name, version, state, error }) =>
        error === '' ? [name, version, state] : [name, version, state, error],
      );
  }

  value(name: string): number | undefined {
    return this.stats.store.value(`listener_manager.${name}`);
  }
}

function settings(fields: JsonObject = {}): ListenerSettings {
  const listener = listenerWith([httpFilter({ stat_prefix: 'new' })], {
    name: 'new',
    address: socketAddress('127.0.0.1', 0),
    ...fields,
  });
  return mustLoad(withListeners(listener)).listeners[0]!;
}

const LARGER = { per_connection_buffer_limit_bytes: 5000 };

describe('listeners that come and go', () => {
  it('are replaced by successors that take over their sockets, and given back when their connections have ended', async () => {
    const fixture = new Fixture();
    const { manager, opened, stopped } = fixture;
    const before = fixture.held;
    assert.ok(await manager.put(settings(), 'one'));
    assert.deepEqual(fixture.states, [['new', 'one', 'active']]);
    assert.equal(opened[0]!.predecessor, null);
    const one = fixture.held;
    assert.notDeepEqual(one, before);
    fixture.clock.turn(1000);
    assert.ok(await manager.put(settings(), 'two'));
    assert.deepEqual([fixture.states, opened.length], [[['new', 'two', 'active']], 1]);
    assert.equal(manager.dump()[0]!.updatedMs, fixture.clock.wallMs());
    assert.ok(await manager.put(settings(LARGER), 'three'));
    assert.equal(opened[1]!.predecessor, opened[0]!.snapshot.id);
    const { id, successor, drainMs } = stopped[0]!;
    assert.deepEqual([id, successor, drainMs], [opened[0]!.snapshot.id, opened[1]!.snapshot.id, 600]);
    assert.deepEqual(fixture.states, [
      ['new', 'three', 'active'],
      ['new', 'two', 'draining'],
    ]);
    assert.equal(fixture.value('total_listeners_draining'), 1);
    stopped[0]!.applied();
    assert.deepEqual([fixture.states, fixture.held], [[['new', 'three', 'active']], one]);
    assert.ok(await manager.remove('new'));
    assert.equal(await manager.remove('new'), false);
    assert.deepEqual([fixture.states, stopped[1]!.successor], [[['new', 'three', 'draining']], null]);
    stopped[1]!.applied();
    assert.deepEqual([fixture.states, fixture.held], [[], before]);
    const counts = ['added', 'modified', 'removed'].map((what) => fixture.value(`listener_${what}`));
    assert.deepEqual(counts, [1, 1, 1]);
  });

  it('leave everything as it was where they cannot be opened', async () => {
    const fixture = new Fixture();
    const { manager, stopped } = fixture;
    await manager.put(settings(), 'one');
    const one = fixture.held;
    fixture.refusal = new Error('not today');
    await assert.rejects(manager.put(settings(LARGER), 'two'), { code: 'WEIR_LISTEN_FAILED' });
    stopped[0]!.applied();
    assert.equal(stopped[0]!.successor, null);
    const error = "error adding listener '127.0.0.1:0' (new): not today";
    assert.deepEqual(fixture.states, [
      ['new', 'one', 'active'],
      ['new', 'two', 'failed', error],
    ]);
    assert.deepEqual(fixture.held, one);
    fixture.refusal = undefined;
    await manager.put(settings(LARGER), 'three');
    assert.deepEqual(fixture.states[0], ['new', 'three', 'active']);
  });

  it('have nothing left of what they had been given when not all of it can be had', async () => {
    const fixture = new Fixture();
    const { manager, opened, stats, held } = fixture;
    // The record of its limit, which comes after its stats.
    stats.owner.recordAllocator.allocateCount = () => {
      throw new WeirError('WEIR_SHARED_MEMORY_FULL', 'nothing left');
    };
    await assert.rejects(manager.put(settings(), 'one'), { code: 'WEIR_LISTEN_FAILED' });
    const error = "error adding listener '127.0.0.1:0' (new): nothing left";
    assert.deepEqual([fixture.states, fixture.held, opened.length], [[['new', 'one', 'failed', error]], held, 0]);
  });

  it('cannot have any address of another', async () => {
    const fixture = new Fixture();
    const { manager, opened } = fixture;
    const at = (port: number): JsonObject => ({ address: socketAddress('127.0.0.1', port) });
    await manager.put(settings({ name: 'two', ...at(4000), additional_addresses: [at(4001)] }), 'one');
    for (const port of [4000, 4001]) {
      await assert.rejects(manager.put(settings(at(port)), 'one'), /listener two has the same address/);
    }
    assert.equal(opened.length, 1);
    await manager.put(settings(at(4002)), 'one');
    assert.equal(opened.length, 2);
  });

  it('cannot have the address of another, nor the name of one of the bootstrap', async () => {
    const fixture = new Fixture();
    const { manager, opened } = fixture;
    const address = { address: socketAddress('127.0.0.1', 4000) };
    await manager.addStatic(settings({ name: 'static', ...address }));
    await assert.rejects(manager.put(settings(address), 'one'), /listener static has the same address/);
    assert.equal(await manager.put(settings({ name: 'static' }), 'two'), false);
    assert.equal(await manager.remove('static'), false);
    assert.equal(opened.length, 1);
  });
});
