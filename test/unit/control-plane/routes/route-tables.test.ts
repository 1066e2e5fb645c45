// What main makes of route tables that come by discovery, with workers and sources that a test plays.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FaultBoundary } from '../../../../src/base/fault-boundary.ts';
import type { DiscoveredResource, DiscoveredResponse } from '../../../../src/config/index.ts';
import { protoSchema } from '../../../../src/config/index.ts';
import { unpackAny } from '../../../../src/config/proto/any.ts';
import { RouteTables } from '../../../../src/control-plane/routes/route-tables.ts';
import type {
  SubscriptionOwner,
  SubscriptionRequest,
} from '../../../../src/control-plane/subscription/subscription.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { DiscoveredRoutes, PublishedRoutes } from '../../../../src/snapshot/index.ts';
import { type JsonObject, mustLoad } from '../../../support/bootstrap.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';

const TYPE = 'type.googleapis.com/proxy.config.route.v3.RouteConfiguration';
const FETCH_LIMIT_MS = 500;

function wanting(name: string, fields: Partial<DiscoveredRoutes> = {}): DiscoveredRoutes {
  const source = {
    origin: { kind: 'file' as const, path: '/routes', watchedFolder: undefined },
    resourceGeneration: 'v3' as const,
    initialFetchTimeoutMs: FETCH_LIMIT_MS,
  };
  return { name, source, filters: [], isOutbound: false, ...fields };
}

interface Sent {
  readonly routes: PublishedRoutes | null;
  readonly id: number;
  readonly gone: () => void;
}

class World {
  readonly stats = statsFixture();
  readonly clock = new ManualClock();
  readonly log: string[] = [];
  readonly sent: Sent[] = [];
  readonly requests: SubscriptionRequest<never>[] = [];
  closed = 0;
  readonly tables: RouteTables;

  constructor() {
    const { discoverable } = mustLoad({ static_resources: { clusters: [] } });
    const sink = { write: ({ message }: { message: string }) => void this.log.push(message) };
    this.tables = new RouteTables({
      stats: this.stats.store,
      memory: this.stats.owner,
      workers: {
        publishRoutes: (routes, gone) => void this.sent.push({ routes, id: routes.id, gone }),
        removeRoutes: (id, gone) => void this.sent.push({ routes: null, id, gone }),
      },
      subscriptions: {
        subscribe: (request) => {
          this.requests.push(request as unknown as SubscriptionRequest<never>);
          const close = (): void => {
            this.closed += 1;
          };
          return { start() {}, close };
        },
      },
      clock: this.clock,
      faults: new FaultBoundary((where, error) => this.log.push(`a fault in ${where}: ${String(error)}`)),
      log: new Loggers({ levels: { default: 'debug' }, threadId: 0, sink }).get('rds'),
      hash: () => 7n,
      discoverable: () => discoverable,
      clusterNames: () => ['web'],
      onDeprecatedFields: () => {},
    });
  }

  /** As a source does that has these tables. */
  answer(version: string, tables: readonly JsonObject[], at = this.requests.length - 1): readonly string[] {
    const { type, owner } = this.requests[at]!;
    const resources = tables.map((table) => this.#read(table, type()));
    const response: DiscoveredResponse<never> = {
      version,
      extent: 'all',
      removed: [],
      names: resources.map(({ name }) => name),
      warnings: [],
      offered: () =>
        resources.map((resource) => ({ name: resource.name, fingerprint: () => undefined, read: () => resource })),
    };
    return (owner as SubscriptionOwner<never>).onResponse(response) as readonly string[];
  }

  #read(table: JsonObject, type: ReturnType<SubscriptionRequest<never>['type']>): DiscoveredResource<never> {
    const routeType = protoSchema().messageType('proxy.config.route.v3.RouteConfiguration');
    const message = routeType.encode(routeType.fromObject(table)).finish();
    const errors: string[] = [];
    const faults = { error: (at: string, text: string) => void errors.push(`${at}: ${text}`), warning() {} };
    const content = unpackAny({ type_url: TYPE, value: message })!;
    const { resource, deprecatedFields } = type.read(content, 'resources[0]', faults);
    const common = { name: type.nameOf(content.message), message, warnings: [] };
    if (errors.length > 0) return { ...common, isGood: false, errors };
    return { ...common, isGood: true, resource: resource!, deprecatedFields, standsAlone: false };
  }

  value(name: string, table = 'table'): number | undefined {
    return this.stats.store.value(`http.web.rds.${table}.${name}`);
  }

  get usedCells(): number {
    return this.stats.owner.cells.usedCells;
  }
}

function table(version: number, fields: JsonObject = {}): JsonObject {
  const route = { match: { prefix: '/' }, direct_response: { status: 200 }, stat_prefix: `r${version}` };
  return { name: 'table', virtual_hosts: [{ name: 'v', domains: ['*'], routes: [route] }], ...fields };
}

const tick = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe('route tables by discovery', () => {
  it('are asked for once for all who want the same, and read once for all who read alike', () => {
    const world = new World();
    const first = world.tables.lease(wanting('table'), 'web');
    const second = world.tables.lease(wanting('table'), 'other');
    const filtered = world.tables.lease(wanting('table', { filters: [{ name: 'f', type: 'x' }] }), 'web');
    const elsewhere = world.tables.lease(wanting('else'), 'web');
    assert.equal(world.requests.length, 2);
    assert.deepEqual([...world.requests[0]!.names!], ['table']);
    assert.equal(first.id, second.id);
    assert.equal(new Set([first.id, filtered.id, elsewhere.id]).size, 3);
    world.answer('1', [table(1)], 0);
    assert.deepEqual(
      world.sent.map(({ id, routes }) => [id, Object.keys(routes!.statBlocks)]),
      [
        [first.id, ['vhost.v.route.r1.']],
        [filtered.id, ['vhost.v.route.r1.']],
      ],
    );
    assert.deepEqual(
      [...world.tables.published()].map(({ id }) => id),
      [first.id, filtered.id],
    );
    assert.equal(world.value('config_reload'), 1);
  });

  it('are ready with the first answer of whatever kind, or when none comes in time', async () => {
    const world = new World();
    const lease = world.tables.lease(wanting('table'), 'web');
    const absent = world.tables.lease(wanting('absent'), 'web');
    const silent = world.tables.lease(wanting('silent'), 'web');
    const failing = world.tables.lease(wanting('failing'), 'web');
    assert.deepEqual(
      [lease, absent, silent, failing].map(({ isReady }) => isReady),
      [false, false, false, false],
    );
    world.answer('1', [table(1)], 0);
    world.answer('1', [table(1)], 1);
    world.requests[3]!.owner.onFailed();
    assert.deepEqual(
      [lease, absent, silent, failing].map(({ isReady }) => isReady),
      [true, true, false, true],
    );
    assert.equal(world.value('update_empty', 'absent'), 1);
    world.clock.turn(FETCH_LIMIT_MS);
    await silent.whenReady;
    await tick();
    assert.equal(silent.isReady, true);
    assert.equal(world.value('init_fetch_timeout', 'silent'), 1);
    assert.match(world.log.join('\n'), /route configuration silent: there has been no answer for 500 ms/);
  });

  it('replace one another, and what the former was given is given back when no worker uses it', () => {
    const world = new World();
    world.tables.lease(wanting('table'), 'web');
    world.answer('1', [table(1)]);
    const used = world.usedCells;
    world.answer('2', [table(2)]);
    assert.deepEqual(
      world.sent.map(({ id }) => id),
      [1, 1],
    );
    assert.equal(world.usedCells > used, true);
    world.sent[1]!.gone();
    assert.equal(world.usedCells, used);
    for (let version = 3; version < 1000; version += 1) {
      world.answer(`${version}`, [table(version)]);
      world.sent.at(-1)!.gone();
    }
    assert.equal(world.usedCells, used);
    // One that is as it was takes no effect, but has another version.
    const count = world.sent.length;
    world.answer('1000', [table(999)]);
    assert.equal(world.sent.length, count);
    assert.equal(world.tables.dump()[0]!.accepted!.version, '1000');
  });

  it('stay as they are where the next may not be, and say why', () => {
    const world = new World();
    world.tables.lease(wanting('table'), 'web');
    world.answer('1', [table(1)]);
    const refusals = world.answer('2', [table(2, { virtual_hosts: [{ name: 'v', domains: [] }] })]);
    assert.match(refusals.join(), /^route configuration table: resources\[0\]\.virtual_hosts\[0\]\.domains/);
    assert.match(world.answer('3', [table(3), table(4)]).join(), /it holds 2 of this name/);
    assert.equal(world.sent.length, 1);
    const [{ accepted, refused }] = world.tables.dump() as [ReturnType<RouteTables['dump']>[0]];
    assert.deepEqual([accepted!.version, refused!.version], ['1', '3']);
    assert.deepEqual(
      [...world.tables.failures()].map(({ name }) => name),
      ['table'],
    );
    world.answer('5', [table(5)]);
    assert.equal(world.tables.dump()[0]!.refused, undefined);
    world.answer('6', []);
    assert.equal(world.tables.dump()[0]!.accepted!.version, '5');
    assert.equal(world.value('update_empty'), 1);
  });

  it('may name clusters that are not there, unless they want them checked', () => {
    const world = new World();
    world.tables.lease(wanting('table'), 'web');
    const to = (fields: JsonObject): JsonObject => {
      const route = { match: { prefix: '/' }, route: { cluster: 'later' } };
      return { name: 'table', virtual_hosts: [{ name: 'v', domains: ['*'], routes: [route] }], ...fields };
    };
    assert.deepEqual(world.answer('1', [to({})]), []);
    const refusals = world.answer('2', [to({ validate_clusters: { value: true } })]);
    assert.match(refusals.join(), /cluster "later" does not exist/);
  });

  it('are read for whom comes later out of what is there', () => {
    const world = new World();
    world.tables.lease(wanting('table'), 'web');
    world.answer('1', [table(1)]);
    const late = world.tables.lease(wanting('table', { isOutbound: true }), 'web');
    assert.equal(late.isReady, true);
    assert.deepEqual([world.requests.length, world.sent.length, world.sent[1]!.id], [1, 2, late.id]);
    assert.deepEqual(world.sent[1]!.routes!.table, world.sent[0]!.routes!.table);
  });

  it('go with the last who wants them, and leave nothing behind', () => {
    const world = new World();
    const used = world.usedCells;
    const first = world.tables.lease(wanting('table'), 'web');
    const second = world.tables.lease(wanting('table'), 'web');
    world.answer('1', [table(1)]);
    first.release();
    first.release();
    assert.equal(world.closed, 0);
    second.release();
    assert.equal(world.closed, 1);
    assert.deepEqual([world.sent.at(-1)!.routes, world.sent.at(-1)!.id], [null, second.id]);
    assert.deepEqual(world.answer('2', [table(2)]), []);
    assert.equal(world.sent.length, 2);
    world.sent.at(-1)!.gone();
    assert.equal(world.usedCells, used);
    assert.deepEqual([...world.tables.published()], []);
    // Whoever wants it again asks anew.
    world.tables.lease(wanting('table'), 'web');
    assert.equal(world.requests.length, 2);
  });

  it('that find no room leave the one before them', () => {
    const world = new World();
    world.tables.lease(wanting('table'), 'web');
    world.answer('1', [table(1)]);
    const used = world.usedCells;
    world.stats.owner.cells.allocate = () => {
      throw new Error('shared memory is full');
    };
    assert.deepEqual(world.answer('2', [table(2)]), ['route configuration table: shared memory is full']);
    assert.deepEqual([world.sent.length, world.usedCells], [1, used]);
    assert.equal(world.tables.dump()[0]!.accepted!.version, '1');
  });
});
