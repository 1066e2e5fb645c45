// Listeners that come and go on the main thread: what the workers are told, what is told of them, and what is given back.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { WeirError } from '../../../../src/base/errors.ts';
import { ListenerManager } from '../../../../src/control-plane/listener-manager/listener-manager.ts';
import { TicketSecret } from '../../../../src/control-plane/listener-manager/ticket-secret.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { DrainProgress, ListenerSettings, ListenerSnapshot } from '../../../../src/snapshot/index.ts';
import { LISTENER_STATS } from '../../../../src/stats/index.ts';
import {
  httpFilter,
  type JsonObject,
  listenerWith,
  mustLoad,
  ROUTER,
  socketAddress,
  tapFilter,
  tcpFilter,
  withListeners,
} from '../../../support/bootstrap.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { NO_FILTERS_LEASED } from '../../../support/no-filters.ts';
import { NO_ROUTES_LEASED } from '../../../support/no-routes.ts';
import { NO_SECRETS_LEASED } from '../../../support/no-secrets.ts';
import { leaveSocket } from '../../../support/stale-socket.ts';
import { statsFixture } from '../../../support/stats.ts';

interface Stopped {
  readonly id: number;
  readonly successor: number | null;
  readonly drain: DrainProgress | null;
  readonly applied: () => void;
}

class Fixture {
  readonly stats = statsFixture({ workerCount: 2 });
  readonly opened: { readonly snapshot: ListenerSnapshot; readonly predecessor: number | null }[] = [];
  readonly stopped: Stopped[] = [];
  readonly changed: {
    readonly snapshot: ListenerSnapshot;
    readonly drain: DrainProgress;
    readonly gone: () => void;
  }[] = [];
  readonly clock = new ManualClock();
  readonly log: string[] = [];
  /** Workers cannot open the next one. */
  refusal: Error | undefined;
  /** What workers wait for before they open one. */
  gate: Promise<void> | undefined;
  readonly manager: ListenerManager;

  constructor() {
    const sink = { write: ({ message }: { message: string }) => void this.log.push(message) };
    this.manager = new ListenerManager({
      faults: NO_FAULTS,
      stats: this.stats.store,
      memory: this.stats.owner,
      concurrency: 2,
      loggers: new Loggers({ levels: { default: 'debug' }, threadId: 0, sink }),
      clock: this.clock,
      drainMs: 600,
      drainStrategy: 'immediate',
      ticketSecret: new TicketSecret(),
      routes: NO_ROUTES_LEASED,
      secrets: NO_SECRETS_LEASED,
      filters: NO_FILTERS_LEASED,
      workers: {
        openListener: (snapshot, predecessor) => this.#opened(snapshot, predecessor),
        secureListener: (_listener, _chains, applied) => applied(),
        updateChains: async (snapshot, drain, gone) => void this.changed.push({ snapshot, drain, gone }),
        shareSockets: async (id, addressIndex) => [id, addressIndex],
        stopAccepting: (id, applied) => this.stopped.push({ id, successor: null, drain: null, applied }),
        stopListener: (id, successor, drain, applied) => this.stopped.push({ id, successor, drain, applied }),
      },
    });
  }

  async #opened(snapshot: ListenerSnapshot, predecessor: number | null): Promise<readonly number[]> {
    if (this.refusal) throw this.refusal;
    this.opened.push({ snapshot, predecessor });
    await this.gate;
    const { addresses, bindsToPort } = snapshot.settings;
    return addresses.map((address, index) => (address.kind === 'pipe' ? 0 : bindsToPort ? 4000 + index : address.port));
  }

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

  /** How many there are by what they are at. */
  get totals(): unknown[] {
    return ['active', 'warming', 'draining'].map((state) => this.value(`total_listeners_${state}`));
  }

  /** Connections of a listener, as its workers count them. */
  connect(worker: number, { statBlock }: ListenerSnapshot, count: number): void {
    const { stats } = this.stats.workers[worker]!;
    stats.values[stats.base(statBlock) + LISTENER_STATS.index.downstream_cx_active]! += count;
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

/** With filter chains for ports of their own, each of which counts under its name, or with further filters. */
function chained(...chains: readonly (string | JsonObject)[]): ListenerSettings {
  const filter_chains = chains.map((chain) => {
    const name = typeof chain === 'string' ? chain : 'limited';
    const filters = [...(typeof chain === 'string' ? [] : [chain]), tcpFilter({ stat_prefix: name })];
    return { name, filter_chain_match: { destination_port: name.charCodeAt(0) }, filters };
  });
  return settings({ filter_chains });
}

function limitFilter(): JsonObject {
  const type = 'type.googleapis.com/envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit';
  return { name: 'limit', typed_config: { '@type': type, stat_prefix: 'few', max_connections: 1 } };
}

const folder = mkdtempSync(path.join(tmpdir(), 'weir-listeners-'));
after(() => rmSync(folder, { recursive: true }));

const LARGER = { per_connection_buffer_limit_bytes: 5000 };

describe('listeners that come and go', () => {
  it('cannot begin to share a port that they keep, and can leave it, or share another', async () => {
    const { manager, opened } = new Fixture();
    const at = (port: number, enable_reuse_port: boolean) =>
      settings({ address: socketAddress('127.0.0.1', port), enable_reuse_port });
    assert.ok(await manager.put(at(4000, false), 'one'));
    await assert.rejects(manager.put(at(4000, true), 'two'), {
      message:
        "error adding listener '127.0.0.1:4000' (new): enable_reuse_port cannot begin at an address that the listener keeps",
    });
    assert.equal(opened.length, 1);
    assert.ok(await manager.put(at(4001, true), 'three'));
    assert.ok(await manager.put(at(4001, false), 'four'));
    assert.equal(opened.length, 3);
  });

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
    assert.deepEqual(fixture.totals, [1, 0, 0]);
    assert.equal(manager.dump()[0]!.updatedMs, fixture.clock.wallMs());
    assert.ok(await manager.put(settings(LARGER), 'three'));
    assert.equal(opened[1]!.predecessor, opened[0]!.snapshot.id);
    const { id, successor, drain } = stopped[0]!;
    assert.deepEqual([id, successor], [opened[0]!.snapshot.id, opened[1]!.snapshot.id]);
    assert.deepEqual(drain, { strategy: 'immediate', elapsedMs: 0, durationMs: 600 });
    assert.deepEqual(fixture.states, [
      ['new', 'three', 'active'],
      ['new', 'two', 'draining'],
    ]);
    assert.deepEqual(fixture.totals, [1, 0, 1]);
    stopped[0]!.applied();
    assert.deepEqual(fixture.totals, [1, 0, 0]);
    assert.deepEqual([fixture.states, fixture.held], [[['new', 'three', 'active']], one]);
    assert.ok(await manager.remove('new'));
    assert.equal(await manager.remove('new'), false);
    assert.deepEqual([fixture.states, stopped[1]!.successor], [[['new', 'three', 'draining']], null]);
    assert.deepEqual(fixture.totals, [0, 0, 1]);
    stopped[1]!.applied();
    assert.deepEqual([fixture.states, fixture.held, fixture.totals], [[], before, [0, 0, 0]]);
    await manager.put(settings(), 'four');
    const counts = ['added', 'modified', 'removed', 'create_success'].map((what) => fixture.value(`listener_${what}`));
    assert.deepEqual(counts, [2, 1, 1, 6]);
    assert.deepEqual(
      opened.map(({ snapshot }) => snapshot.id),
      [1, 2, 3],
    );
    const accepts = 'listener new accepts on 127.0.0.1:4000';
    assert.deepEqual(fixture.log, [accepts, accepts, 'listener new is removed', accepts]);
  });

  it('with other filter chains alone stay what they are, and give back chains that have gone with their last connection', async () => {
    const fixture = new Fixture();
    const { manager, opened, changed, stopped, clock } = fixture;
    const before = fixture.held;
    const added: string[] = [];
    manager.observer = {
      complete: () => added.push('complete'),
      add: () => added.push('add'),
      remove: () => added.push('remove'),
    };
    await manager.put(chained('a', 'b'), 'one');
    const held = fixture.held;
    const first = opened[0]!.snapshot;
    clock.turn(1000);
    await manager.put(chained('c', 'a'), 'two');
    const { snapshot, drain, gone } = changed[0]!;
    assert.deepEqual(drain, { strategy: 'immediate', elapsedMs: 0, durationMs: 600 });
    assert.equal(snapshot.id, first.id);
    assert.equal(snapshot.filterChains[1], first.filterChains[0]);
    assert.ok(!first.filterChains.some(({ id }) => id === snapshot.filterChains[0]!.id));
    assert.deepEqual([...manager.listeners()][0]!.snapshot, snapshot);
    assert.deepEqual([fixture.states, opened.length, stopped.length], [[['new', 'two', 'active']], 1, 0]);
    assert.equal(manager.dump()[0]!.updatedMs, clock.wallMs());
    assert.deepEqual(added, ['complete', 'add', 'complete', 'remove', 'add']);
    const names = ['listener_modified', 'listener_in_place_updated', 'total_filter_chains_draining'];
    assert.deepEqual(
      names.map((name) => fixture.value(name)),
      [1, 1, 1],
    );
    assert.deepEqual(fixture.totals, [1, 0, 0]);
    let isQuiet = false;
    const quiet = manager.whenNoneDrains().then(() => {
      isQuiet = true;
    });
    await new Promise(setImmediate);
    assert.equal(isQuiet, false);
    assert.notDeepEqual(fixture.held, held);
    gone();
    await quiet;
    assert.deepEqual([fixture.held, fixture.value('total_filter_chains_draining')], [held, 0]);
    // An operator's drain goes on, and one that has stopped is opened anew.
    manager.beginDrain('all');
    await manager.put(chained('a'), 'three');
    assert.equal([...manager.listeners()][0]!.accepting, 'draining');
    changed[1]!.gone();
    await manager.remove('new');
    stopped[0]!.applied();
    assert.deepEqual([fixture.held, fixture.value('total_filter_chains_draining')], [before, 0]);
    assert.match(fixture.log.join(), /listener new has other filter chains; 1 of the former drain/);
  });

  it('stay as they are when there is no room for another filter chain', async (t) => {
    const fixture = new Fixture();
    const { manager, changed } = fixture;
    await manager.put(chained('a', 'b'), 'one');
    const held = fixture.held;
    const { recordAllocator } = fixture.stats.owner;
    const full = t.mock.method(recordAllocator, 'allocateCount', () => {
      throw new WeirError('WEIR_SHARED_MEMORY_FULL', 'full');
    });
    const limit = limitFilter();
    await assert.rejects(manager.put(chained('c', 'a', limit), 'two'), {
      message: "error adding listener '127.0.0.1:0' (new): full",
    });
    assert.equal(full.mock.callCount(), 1);
    assert.deepEqual([changed.length, fixture.held], [0, held]);
    assert.deepEqual(fixture.states[0], ['new', 'one', 'active']);
    full.mock.restore();
    await manager.put(chained('c', 'a', limit), 'three');
    assert.deepEqual(changed[0]!.snapshot.filterChains.length, 3);
    assert.equal(fixture.value('listener_create_failure'), 1);
  });

  it('are left to another process, and opened again as often as it takes when that is gone', async () => {
    const fixture = new Fixture();
    const { manager, opened, clock } = fixture;
    const outbound = (name: string, ip: string): ListenerSettings =>
      settings({ name, address: socketAddress(ip, 0), traffic_direction: 'OUTBOUND' });
    await manager.put(settings({ traffic_direction: 'INBOUND' }), 'one');
    await manager.put(outbound('two', '127.0.0.2'), 'two');
    manager.stopAccepting('inbound');
    manager.leave();
    assert.equal(await manager.put(outbound('three', '127.0.0.3'), 'three'), false);
    fixture.refusal = new Error('in use');
    await manager.takeBack();
    clock.turn(99);
    assert.equal(opened.length, 2);
    fixture.refusal = undefined;
    clock.turn(1);
    // Behind it, because changes wait for one another.
    assert.ok(await manager.put(outbound('three', '127.0.0.3'), 'three'));
    assert.equal(await manager.put(settings({ name: 'four', traffic_direction: 'INBOUND' }), 'four'), false);
    assert.deepEqual(
      [...manager.listeners()].map(({ name, accepting, version }) => [name, accepting, version]),
      [
        // By order of the operator.
        ['new', 'stopped', 'one'],
        ['two', 'yes', 'two'],
        ['three', 'yes', 'three'],
      ],
    );
    await manager.takeBack();
    assert.equal(opened.length, 4);
    assert.equal(clock.timerCount, 0);
  });

  it('stop accepting by direction, are refused from then on, and stay in the set until they are taken away', async () => {
    const fixture = new Fixture();
    const { manager, opened, stopped } = fixture;
    const one = settings({ name: 'one', traffic_direction: 'INBOUND' });
    const two = settings({ name: 'two', address: socketAddress('127.0.0.2', 0) });
    await manager.put(one, 'one');
    await manager.put(two, 'two');
    const draining = (): unknown[] =>
      ['listener_stopped', 'total_listeners_draining'].map((name) => fixture.value(name));
    const accepting = (): string[] => [...manager.listeners()].map((listener) => listener.accepting);
    manager.beginDrain('inbound');
    assert.deepEqual(
      [draining(), accepting()],
      [
        [0, 1],
        ['draining', 'yes'],
      ],
    );
    manager.stopAccepting('inbound');
    // Changes wait for it.
    assert.equal(await manager.put(settings({ ...LARGER, name: 'one', traffic_direction: 'INBOUND' }), 'more'), false);
    assert.ok(await manager.put(settings({ name: 'three', address: socketAddress('127.0.0.3', 0) }), 'three'));
    assert.deepEqual([stopped.map(({ id }) => id), draining()], [[opened[0]!.snapshot.id], [1, 1]]);
    manager.beginDrain('inbound');
    assert.deepEqual(accepting(), ['stopped', 'yes', 'yes']);
    manager.stopAccepting('all');
    manager.stopAccepting('inbound');
    assert.equal(await manager.put(settings({ name: 'four', address: socketAddress('127.0.0.4', 0) }), 'four'), false);
    await manager.addStatic(settings({ name: 'five', address: socketAddress('127.0.0.5', 0) }));
    assert.deepEqual([opened.length, stopped.length, draining()], [3, 3, [3, 3]]);
    const refused = (name: string, direction: string): string =>
      `listener ${name} can not be added because listeners in the traffic direction ${direction} are stopped`;
    const quiet = (name: string): string => `listener ${name} accepts no more connections`;
    const lines = (): string[] => fixture.log.splice(0).filter((line) => !line.includes('accepts on'));
    assert.deepEqual(lines(), [
      quiet('one'),
      refused('one', 'INBOUND'),
      quiet('two'),
      quiet('three'),
      refused('four', 'UNSPECIFIED'),
      refused('five', 'UNSPECIFIED'),
    ]);
    for (const { applied } of stopped) applied();
    assert.deepEqual(
      [draining(), lines()],
      [[3, 0], ['one', 'two', 'three'].map((name) => `the last connection of listener ${name} has ended`)],
    );
    assert.deepEqual(
      fixture.states.map(([name, , state]) => `${name} ${state}`),
      ['one active', 'two active', 'three active'],
    );
    // As they have been stopped, workers are told that they may forget them.
    assert.ok(await manager.remove('one'));
    assert.deepEqual([stopped[3]!.id, draining()], [opened[0]!.snapshot.id, [3, 1]]);
    stopped[3]!.applied();
    assert.deepEqual([fixture.states.length, draining()], [2, [3, 0]]);
  });

  it('keep the messages that they were made of', async () => {
    const { manager, clock, ...fixture } = new Fixture();
    const shown = () => manager.dump().map(({ message, addedViaApi, state }) => [String(message), addedViaApi, state]);
    await manager.addStatic(settings({ name: 'fixed' }), Uint8Array.of(1));
    assert.equal(manager.version, '');
    await manager.put(settings(), 'one', Uint8Array.of(2));
    assert.equal(manager.version, 'one');
    await manager.put(settings(), 'two', Uint8Array.of(3));
    await manager.put(settings(LARGER), 'three', Uint8Array.of(4));
    assert.deepEqual(shown(), [
      ['1', false, 'active'],
      ['4', true, 'active'],
      ['3', true, 'draining'],
    ]);
    assert.equal(manager.version, 'three');
    assert.equal(clock.wallMs(), manager.dump()[1]!.updatedMs);
    assert.equal(fixture.opened.length, 3);
  });

  it('leave those of the bootstrap alone where discovery has one of their name that may not be', async () => {
    const { manager } = new Fixture();
    const message = new Uint8Array(0);
    await manager.addStatic(settings({ name: 'fixed' }));
    manager.refuse({ name: 'fixed', message, error: 'is bad' }, 'one');
    assert.deepEqual([[...manager.failures()], [...manager.discoveredNames()]], [[], []]);
    manager.refuse({ name: 'other', message, error: 'is bad' }, 'one');
    assert.deepEqual([...manager.discoveredNames()], ['other']);
    await manager.remove('other');
    assert.deepEqual([...manager.discoveredNames()], []);
    manager.accept('two');
    assert.equal(manager.version, 'two');
  });

  it('count as draining once, though they are taken away while they drain', async () => {
    const fixture = new Fixture();
    const { manager, stopped } = fixture;
    await manager.put(settings(), 'one');
    manager.beginDrain('all');
    assert.deepEqual(fixture.totals, [1, 0, 1]);
    await manager.remove('new');
    assert.deepEqual(fixture.totals, [0, 0, 1]);
    stopped[0]!.applied();
    assert.deepEqual(fixture.totals, [0, 0, 0]);
  });

  it('tell of the taps in their chains', async () => {
    const { manager } = new Fixture();
    const chain = (id: string): JsonObject => ({ filters: [httpFilter({ http_filters: [tapFilter(id), ROUTER] })] });
    const plain = { filters: [tcpFilter({})], filter_chain_match: { destination_port: 1 } };
    await manager.put(settings({ filter_chains: [chain('a'), plain], default_filter_chain: chain('b') }), 'one');
    await manager.put(settings({ name: 'other', address: socketAddress('127.0.0.2', 0) }), 'one');
    assert.deepEqual(manager.tapConfigIds(), new Set(['a', 'b']));
  });

  it('leave everything as it was where they cannot be opened', async () => {
    const fixture = new Fixture();
    const { manager, stopped } = fixture;
    await manager.put(settings(), 'one');
    const one = fixture.held;
    fixture.refusal = new Error('not today');
    const { refusal: cause } = fixture;
    await assert.rejects(manager.put(settings(LARGER), 'two'), { code: 'WEIR_LISTEN_FAILED', source: 'config', cause });
    assert.deepEqual([fixture.totals, fixture.value('listener_create_failure')], [[1, 0, 1], 1]);
    stopped[0]!.applied();
    assert.equal(stopped[0]!.successor, null);
    const error = "error adding listener '127.0.0.1:0' (new): not today";
    assert.deepEqual(fixture.states, [
      ['new', 'one', 'active'],
      ['new', 'two', 'failed', error],
    ]);
    assert.ok(manager.dump()[1]!.addedViaApi);
    assert.deepEqual(fixture.held, one);
    fixture.refusal = undefined;
    await manager.put(settings(LARGER), 'three');
    assert.deepEqual(fixture.states, [
      ['new', 'three', 'active'],
      ['new', 'one', 'draining'],
    ]);
  });

  it('are forgotten where they could not be had, once they are removed', async () => {
    const fixture = new Fixture();
    fixture.refusal = new Error('not today');
    await assert.rejects(fixture.manager.put(settings(), 'one'));
    fixture.stopped[0]!.applied();
    assert.equal(fixture.states.length, 1);
    assert.equal(await fixture.manager.remove('new'), false);
    assert.deepEqual([fixture.states, fixture.log, fixture.value('listener_removed')], [[], [], 0]);
  });

  it('are warming until the workers have opened them', async () => {
    const fixture = new Fixture();
    const { promise, resolve } = Promise.withResolvers<void>();
    fixture.gate = promise;
    const put = fixture.manager.put(settings(), 'one');
    await new Promise(setImmediate);
    assert.deepEqual([fixture.states, fixture.totals], [[['new', 'one', 'warming']], [0, 1, 0]]);
    resolve();
    await put;
    assert.deepEqual([fixture.states, fixture.totals], [[['new', 'one', 'active']], [1, 0, 0]]);
  });

  it('have their connections counted, whatever they are at, and once where they share their stats', async () => {
    const fixture = new Fixture();
    const { manager, opened } = fixture;
    const { promise, resolve } = Promise.withResolvers<void>();
    await manager.put(settings(), 'one');
    await manager.put(settings(LARGER), 'two');
    await manager.put(settings({ name: 'other', stat_prefix: 'other' }), 'one');
    fixture.gate = promise;
    const warming = manager.put(settings({ name: 'late', stat_prefix: 'late' }), 'one');
    await new Promise(setImmediate);
    const [drained, successor, other, late] = opened.map(({ snapshot }) => snapshot);
    assert.equal(drained!.statBlock, successor!.statBlock);
    fixture.connect(0, drained!, 1);
    fixture.connect(1, drained!, 2);
    fixture.connect(1, other!, 4);
    fixture.connect(0, late!, 8);
    assert.equal(manager.activeConnections(), 15);
    resolve();
    await warming;
    await manager.remove('other');
    assert.equal(manager.activeConnections(), 15);
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
      await assert.rejects(manager.put(settings(at(port)), 'one'), ({ message, cause }: Error) => {
        assert.match(message, /listener two has the same address/);
        assert.equal((cause as WeirError).code, 'WEIR_LISTEN_FAILED');
        return true;
      });
    }
    assert.equal(opened.length, 1);
    await manager.put(settings(at(4002)), 'one');
    assert.equal(opened.length, 2);
  });

  it('may have the address of their predecessor, and port 0 as often as they like', async () => {
    const { manager, opened, log } = new Fixture();
    const address = { address: socketAddress('127.0.0.1', 4000) };
    await manager.put(settings(address), 'one');
    await manager.put(settings({ ...address, ...LARGER }), 'two');
    const settingsOf = (name: string) => ({ ...settings({ name }), bindsToPort: false });
    for (const name of ['a', 'b']) await manager.put(settingsOf(name), 'one');
    assert.equal(opened.length, 4);
    assert.equal(log.at(-1), 'listener b is handed what is meant for 127.0.0.1:0');
  });

  it('have their path cleared of what a process has left there, except what their predecessor has open', async () => {
    const { manager } = new Fixture();
    const pipe = path.join(folder, 'pipe');
    const at = (...addresses: JsonObject[]): JsonObject => ({
      address: { pipe: { path: pipe } },
      additional_addresses: addresses.map((address) => ({ address })),
    });
    await leaveSocket(pipe);
    await manager.put(settings(at(socketAddress('127.0.0.1', 0))), 'one');
    assert.equal(existsSync(pipe), false);
    assert.deepEqual(
      [...manager.listeners()].map(({ addresses }) => addresses),
      [
        [
          { kind: 'pipe', path: pipe, mode: 0 },
          { kind: 'ip', ip: '127.0.0.1', port: 4001 },
        ],
      ],
    );
    await leaveSocket(pipe);
    await manager.put(settings(at()), 'two');
    assert.ok(existsSync(pipe));
    await manager.put(settings(), 'three');
    await manager.put(settings(at()), 'four');
    assert.equal(existsSync(pipe), false);
  });

  it('cannot have the address of another, nor the name of one of the bootstrap', async () => {
    const fixture = new Fixture();
    const { manager, opened } = fixture;
    const address = { address: socketAddress('127.0.0.1', 4000) };
    await manager.addStatic(settings({ name: 'static', ...address }));
    assert.deepEqual(fixture.states, [['static', '', 'active']]);
    await assert.rejects(manager.put(settings(address), 'one'), /listener static has the same address/);
    assert.equal(await manager.put(settings({ name: 'static' }), 'two'), false);
    assert.equal(await manager.remove('static'), false);
    await manager.addStatic(settings({ name: 'static' }));
    assert.deepEqual([opened.length, fixture.log.at(-1)], [1, 'a second listener static is left out']);
  });

  it('are told apart while they are being opened together, and listed as they were asked for', async () => {
    const fixture = new Fixture();
    const { manager, opened } = fixture;
    const address = { address: socketAddress('127.0.0.1', 4000) };
    const gate = Promise.withResolvers<void>();
    fixture.gate = gate.promise;
    const first = manager.addStatic(settings({ name: 'first', ...address }));
    const sameAddress = assert.rejects(
      manager.addStatic(settings({ name: 'second', ...address })),
      /listener first has the same address/,
    );
    await manager.addStatic(settings({ name: 'first', address: socketAddress('127.0.0.1', 4001) }));
    assert.deepEqual([opened.length, fixture.log.at(-1)], [1, 'a second listener first is left out']);
    await sameAddress;
    fixture.gate = undefined;
    await manager.addStatic(settings({ name: 'quick', address: socketAddress('127.0.0.1', 4001) }));
    gate.resolve();
    await first;
    assert.deepEqual(
      fixture.states.map(([name]) => name),
      ['first', 'quick'],
    );
  });

  it('are counted together, in case that there is a limit to all of them', async () => {
    const { manager, opened } = new Fixture();
    await manager.put(settings({ name: 'one' }), '');
    await manager.put(settings({ name: 'two', address: socketAddress('127.0.0.1', 4001) }), '');
    const [one, two] = opened.map(({ snapshot }) => snapshot);
    assert.deepEqual(one!.globalLimit, two!.globalLimit);
    assert.notEqual(one!.limit.recordAddress, two!.limit.recordAddress);
  });
});
