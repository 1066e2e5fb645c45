// Another bootstrap as steps: their order, what a step that fails leaves behind, and who waits for whom. The managers here only note
// what they are told, and refuse what real ones cannot do; test/integration/library/apply-bootstrap.test.ts has real ones.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { WeirError } from '../../../../src/base/errors.ts';
import type { BootstrapConfig } from '../../../../src/config/index.ts';
import {
  type BootstrapUpdateParts,
  BootstrapUpdates,
  fixedChanges,
} from '../../../../src/control-plane/server/bootstrap-update.ts';
import type { ClusterSettings, ListenerSettings } from '../../../../src/snapshot/index.ts';
import {
  clusterNamed,
  httpFilter,
  type JsonObject,
  listenerWith,
  mustLoad,
  ROUTER,
  socketAddress,
} from '../../../support/bootstrap.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const CLUSTERS = ['x', 'y'];
/** `c` has the address of `a` by another name; they never stand side by side. */
const PORTS: Readonly<Record<string, number>> = { a: 10_001, b: 10_002, c: 10_001 };

interface Wanted {
  /** Seconds of each cluster's connect timeout. */
  readonly clusters: Readonly<Record<string, number>>;
  /** Cluster of each listener. */
  readonly listeners: Readonly<Record<string, string>>;
  readonly runtime: number;
}

function configOf({ clusters, listeners, runtime }: Wanted): BootstrapConfig {
  const route = (cluster: string): JsonObject => ({ match: { prefix: '/' }, route: { cluster } });
  const filterTo = (cluster: string) =>
    httpFilter({
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route(cluster)] }] },
      http_filters: [ROUTER],
    });
  return mustLoad({
    layered_runtime: { layers: [{ name: 'base', static_layer: { key: runtime } }] },
    static_resources: {
      clusters: Object.entries(clusters).map(([name, seconds]) =>
        clusterNamed(name, { connect_timeout: `${seconds}s` }),
      ),
      listeners: Object.entries(listeners).map(([name, cluster]) =>
        listenerWith([filterTo(cluster)], { name, address: socketAddress('127.0.0.1', PORTS[name]!) }),
      ),
    },
  });
}

/** A server without sockets, and with one fault at most. */
class NotedServer {
  readonly clusters = new Map<string, ClusterSettings>();
  readonly listeners = new Map<string, ListenerSettings>();
  runtime: unknown;
  /** What it has been told, in order. */
  readonly steps: string[] = [];
  /** The step that fails, from 1; it counts down. */
  failsAfter = Number.POSITIVE_INFINITY;
  drained = Promise.resolve();
  serving = Promise.resolve();
  shown: readonly Uint8Array[] = [];
  readonly updates: BootstrapUpdates;

  constructor(config: BootstrapConfig) {
    for (const settings of config.clusters) this.clusters.set(settings.name, settings);
    for (const settings of config.listeners) this.listeners.set(settings.name, settings);
    this.runtime = config.runtimeLayers;
    const parts = {
      clock: new ManualClock(),
      faults: NO_FAULTS,
      runtime: {
        load: async (layers: unknown) => {
          this.#step('runtime');
          this.runtime = layers;
        },
      },
      clusters: {
        put: (settings: ClusterSettings) => {
          this.#step(`put cluster ${settings.name}`);
          this.clusters.set(settings.name, settings);
          return true;
        },
        remove: (name: string) => {
          this.#step(`remove cluster ${name}`);
          return this.clusters.delete(name);
        },
        whenAllServe: () => this.serving,
      },
      listeners: {
        put: async (settings: ListenerSettings) => {
          this.#step(`put listener ${settings.name}`);
          for (const other of this.listeners.values()) {
            const isTaken = other.name !== settings.name && samePort(other, settings);
            assert.equal(isTaken, false, `${other.name} has the address of ${settings.name}`);
          }
          this.listeners.set(settings.name, settings);
          return true;
        },
        remove: async (name: string) => {
          this.#step(`remove listener ${name}`);
          return this.listeners.delete(name);
        },
        whenNoneDrains: () => this.drained,
      },
      config: { replaceBootstrap: ({ messages }: BootstrapConfig) => (this.shown = messages.clusters) },
    };
    this.updates = new BootstrapUpdates(config, parts as unknown as BootstrapUpdateParts);
  }

  get state() {
    const sorted = <Settings>(all: Map<string, Settings>) => [...all].sort(([a], [b]) => (a < b ? -1 : 1));
    return structuredClone({
      clusters: sorted(this.clusters),
      listeners: sorted(this.listeners),
      runtime: this.runtime,
    });
  }

  #step(text: string): void {
    this.steps.push(text);
    this.failsAfter -= 1;
    if (this.failsAfter === 0) throw new WeirError('WEIR_LISTEN_FAILED', text);
  }
}

function samePort(a: ListenerSettings, b: ListenerSettings): boolean {
  return JSON.stringify(a.addresses) === JSON.stringify(b.addresses);
}

/** What is due has happened. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

const seconds = fc.integer({ min: 1, max: 2 });
const wanted: fc.Arbitrary<Wanted> = fc
  .record({
    clusters: fc.dictionary(fc.constantFrom(...CLUSTERS), seconds, { minKeys: 1 }),
    names: fc.constantFrom([], ['a'], ['b'], ['c'], ['a', 'b'], ['b', 'c']),
    runtime: seconds,
    pick: fc.nat(),
  })
  .map(({ clusters, names, runtime, pick }) => {
    const targets = Object.keys(clusters);
    const listeners = Object.fromEntries(names.map((name, at) => [name, targets[(pick + at) % targets.length]!]));
    return { clusters: { ...clusters }, listeners, runtime };
  });

describe('another bootstrap', () => {
  it('puts clusters before the listeners that ask for them, and takes away what nobody asks for behind them', async () => {
    const server = new NotedServer(configOf({ clusters: { x: 1 }, listeners: { a: 'x', b: 'x' }, runtime: 1 }));
    await server.updates.apply(configOf({ clusters: { y: 1 }, listeners: { b: 'y', c: 'y' }, runtime: 2 }));
    await settled();
    assert.deepEqual(server.steps, [
      'runtime',
      'put cluster y',
      'remove listener a',
      'put listener b',
      'put listener c',
      'remove cluster x',
    ]);
  });

  it('touches nothing that is the same', async () => {
    const config = { clusters: { x: 1, y: 1 }, listeners: { a: 'x', b: 'y' }, runtime: 1 };
    const server = new NotedServer(configOf(config));
    await server.updates.apply(configOf(config));
    await server.updates.apply(configOf({ ...config, clusters: { x: 1, y: 2 } }));
    assert.deepEqual(server.steps, ['put cluster y']);
  });

  it('is whole, or undone to the last step, whichever step fails', async () => {
    await fc.assert(
      fc.asyncProperty(wanted, wanted, wanted, fc.integer({ min: 1, max: 8 }), async (first, from, to, failsAfter) => {
        const [former, next] = [configOf(from), configOf(to)];
        const server = new NotedServer(configOf(first));
        // Removing clusters is no step of the update: it comes when nobody uses them any more.
        const drained = Promise.withResolvers<void>();
        server.drained = drained.promise;
        await server.updates.apply(former);
        const before = server.state;
        const shown = server.shown;
        server.failsAfter = failsAfter;
        const isDone = await server.updates.apply(next).then(
          () => true,
          () => false,
        );
        if (!isDone) {
          assert.deepEqual(server.state, before);
          assert.equal(server.shown, shown);
          // What failed can be tried again.
          await server.updates.apply(next);
        }
        // The update may have had fewer steps, and what comes behind it is none.
        server.failsAfter = Number.POSITIVE_INFINITY;
        const expected = new NotedServer(next).state;
        assert.deepEqual(server.state.listeners, expected.listeners);
        assert.deepEqual(server.state.runtime, expected.runtime);
        for (const [name, settings] of expected.clusters) assert.deepEqual(server.clusters.get(name), settings);
        assert.deepEqual(server.shown, next.messages.clusters);
        drained.resolve();
        await settled();
        assert.deepEqual(server.state, expected);
      }),
      { numRuns: 60 },
    );
  });

  it('waits until its clusters serve before any listener changes', async () => {
    const server = new NotedServer(configOf({ clusters: { x: 1 }, listeners: { a: 'x' }, runtime: 1 }));
    const serving = Promise.withResolvers<void>();
    server.serving = serving.promise;
    const done = server.updates.apply(configOf({ clusters: { y: 1 }, listeners: { a: 'y' }, runtime: 1 }));
    await settled();
    assert.deepEqual(server.steps, ['put cluster y']);
    serving.resolve();
    await done;
    assert.deepEqual(server.steps.slice(0, 2), ['put cluster y', 'put listener a']);
  });

  it('keeps a cluster that has left while connections of former listeners may ask for it, and one that came back', async () => {
    const first = { clusters: { x: 1, y: 1 }, listeners: {}, runtime: 1 };
    const server = new NotedServer(configOf(first));
    const drained = Promise.withResolvers<void>();
    server.drained = drained.promise;
    await server.updates.apply(configOf({ ...first, clusters: {} }));
    await settled();
    assert.deepEqual([...server.clusters.keys()], ['x', 'y']);
    await server.updates.apply(configOf({ ...first, clusters: { y: 1 } }));
    drained.resolve();
    await settled();
    assert.deepEqual([...server.clusters.keys()], ['y']);
  });

  it('that fails leaves a cluster that was about to go as it was, until it may go', async () => {
    const server = new NotedServer(configOf({ clusters: { x: 1 }, listeners: {}, runtime: 1 }));
    const drained = Promise.withResolvers<void>();
    server.drained = drained.promise;
    await server.updates.apply(configOf({ clusters: {}, listeners: {}, runtime: 1 }));
    const before = server.state;
    server.failsAfter = 2;
    const back = configOf({ clusters: { x: 2, y: 1 }, listeners: {}, runtime: 1 });
    await assert.rejects(server.updates.apply(back), { code: 'WEIR_LISTEN_FAILED' });
    assert.deepEqual(server.state, before);
    drained.resolve();
    await settled();
    assert.deepEqual([...server.clusters.keys()], []);
  });

  it('says that it is half done when it cannot be undone either', async () => {
    const server = new NotedServer(configOf({ clusters: { x: 1 }, listeners: {}, runtime: 1 }));
    const next = configOf({ clusters: { x: 1, y: 1 }, listeners: { a: 'y' }, runtime: 1 });
    const remove = server.clusters.delete.bind(server.clusters);
    server.clusters.delete = (name) => {
      if (name === 'y') throw new Error('held');
      return remove(name);
    };
    server.failsAfter = 2;
    await assert.rejects(server.updates.apply(next), (error: WeirError) => {
      assert.deepEqual([error.code, (error.cause as WeirError).code], ['WEIR_HALF_DONE', 'WEIR_LISTEN_FAILED']);
      assert.match(error.message, /^put listener a; and what had been changed before could not be undone: held$/);
      return true;
    });
  });

  it('comes after those before it, whatever has become of them', async () => {
    const at = (runtime: number) => configOf({ clusters: {}, listeners: {}, runtime });
    const server = new NotedServer(at(1));
    server.failsAfter = 1;
    const results = await Promise.allSettled([2, 3, 4].map((runtime) => server.updates.apply(at(runtime))));
    assert.deepEqual(
      results.map(({ status }) => status),
      ['rejected', 'fulfilled', 'fulfilled'],
    );
    assert.deepEqual(server.runtime, at(4).runtimeLayers);
  });

  it('ends with its server: what waits is refused, and nothing is taken away any more', async () => {
    const server = new NotedServer(configOf({ clusters: { x: 1 }, listeners: { a: 'x' }, runtime: 1 }));
    server.serving = new Promise(() => {});
    const next = configOf({ clusters: { y: 1 }, listeners: { a: 'y' }, runtime: 1 });
    const underWay = server.updates.apply(next);
    const waiting = server.updates.apply(next);
    await settled();
    server.updates.stop();
    for (const update of [underWay, waiting, server.updates.apply(next)]) {
      await assert.rejects(update, { code: 'WEIR_STOPPED' });
    }
    assert.deepEqual(server.steps, ['put cluster y']);
  });

  it('removes no cluster of a server that has stopped meanwhile', async () => {
    const server = new NotedServer(configOf({ clusters: { x: 1 }, listeners: {}, runtime: 1 }));
    const drained = Promise.withResolvers<void>();
    server.drained = drained.promise;
    await server.updates.apply(configOf({ clusters: {}, listeners: {}, runtime: 1 }));
    server.updates.stop();
    drained.resolve();
    await settled();
    assert.deepEqual(server.steps, []);
  });
});

describe('what cannot change while a server runs', () => {
  const base = mustLoad({});
  const cases: readonly (readonly [fields: JsonObject, named: readonly string[]])[] = [
    [{ node: { id: 'other' } }, ['node']],
    [{ admin: { address: socketAddress('127.0.0.1', 9) } }, ['admin']],
    [{ stats_flush_interval: '7s' }, ['stats_flush_interval']],
    [{ header_prefix: 'x-envoy' }, ['header_prefix']],
    [{ stats_config: { stats_matcher: { reject_all: true } } }, ['stats_config.stats_matcher']],
    [
      { node: { id: 'other' }, stats_config: { stats_tags: [{ tag_name: 'a', fixed_value: 'b' }] } },
      ['node', 'stats_config.stats_tags'],
    ],
    [
      {
        layered_runtime: {
          layers: [{ name: 'base', static_layer: { 'overload.global_downstream_max_connections': 5 } }],
        },
      },
      [],
    ],
    [{ static_resources: { clusters: [clusterNamed('x')] } }, []],
    [{ layered_runtime: { layers: [{ name: 'base', static_layer: { key: 5 } }] } }, []],
  ];
  for (const [fields, named] of cases) {
    it(`is named: ${JSON.stringify(named)} of ${JSON.stringify(fields)}`, async () => {
      const next = mustLoad(fields);
      assert.deepEqual(fixedChanges(base, next), named);
      if (named.length === 0) return;
      const server = new NotedServer(base);
      await assert.rejects(server.updates.apply(next), { code: 'WEIR_CANNOT_CHANGE', detail: named.join('\n') });
      assert.deepEqual(server.steps, []);
    });
  }
});
