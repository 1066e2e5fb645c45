// Virtual hosts on demand between workers that ask, main, and a server, each of which is told of the others later than things happen: nobody
// who waits is forgotten, or waits for time to pass where the server answers, and whoever is told that a host is there has it. By a model.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { FaultBoundary } from '../../../../src/base/fault-boundary.ts';
import { type DiscoveredResponse, discoveryService } from '../../../../src/config/index.ts';
import { unpackAny } from '../../../../src/config/proto/any.ts';
import { RouteTables } from '../../../../src/control-plane/routes/route-tables.ts';
import type { SubscriptionRequest } from '../../../../src/control-plane/subscription/subscription.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { DiscoveredRoutes, PublishedRoutes } from '../../../../src/snapshot/index.ts';
import { AskingWorker } from '../../../support/asking-worker.ts';
import { type JsonObject, mustLoad } from '../../../support/bootstrap.ts';
import { ChangesLink } from '../../../support/changes-link.ts';
import { bytesOf } from '../../../support/control-plane.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';

const TABLE = 'proxy.config.route.v3.RouteConfiguration';
/** By host: the virtual host that has it. */
const SERVED: Readonly<Record<string, string>> = { a: 'a', b: 'b', c: 'all', d: 'all' };
const HOSTS = Object.keys(SERVED);
const TIMEOUT_MS = 1000;
const server = { envoy_grpc: { cluster_name: 'web' } };
const config_source = {
  api_config_source: { api_type: 'DELTA_GRPC', transport_api_version: 'V3', grpc_services: [server] },
  initial_fetch_timeout: '1s',
};
const WANTED: DiscoveredRoutes = {
  name: 'table',
  source: {
    origin: { kind: 'file', path: '/routes', watchedFolder: undefined },
    resourceGeneration: 'v3',
    initialFetchTimeoutMs: TIMEOUT_MS,
  },
  filters: [],
  isOutbound: false,
};
const { discoverable } = mustLoad({
  static_resources: { clusters: [{ name: 'web', load_assignment: { cluster_name: 'web' } }] },
});

type Request = SubscriptionRequest<never>;
type Kind = 'good' | 'other' | 'bad' | 'none';

class World {
  readonly clock = new ManualClock();
  readonly workers = [new AskingWorker(), new AskingWorker()];
  readonly link: ChangesLink;
  /** Whoever wants the table. */
  #table: Request | undefined;
  readonly #tables: RouteTables;
  readonly #id: number;
  #version = 0;

  constructor() {
    const stats = statsFixture();
    const sink = { write() {} };
    const faults = new FaultBoundary((_, error) => assert.fail(String(error)));
    const log = new Loggers({ levels: { default: 'off' }, threadId: 0, sink }).get('rds');
    const { clock } = this;
    const link = new ChangesLink(discoveryService('proxy.config.route.v3.VirtualHost'), { clock, faults, log });
    this.link = link;
    this.#tables = new RouteTables({
      stats: stats.store,
      memory: stats.owner,
      workers: {
        publishRoutes: (routes, gone) => this.#publish(routes, gone),
        removeRoutes: (_, gone) => gone(),
      },
      subscriptions: {
        subscribe: (request) => {
          if (request.prefix !== undefined) return link.subscriptions.subscribe(request);
          this.#table = request as unknown as Request;
          return { start() {}, close() {} };
        },
      },
      clock,
      faults,
      log,
      hash: () => 7n,
      discoverable: () => discoverable,
      clusterNames: () => ['web'],
      onDeprecatedFields: () => {},
    });
    this.#id = this.#tables.lease(WANTED, 'web').id;
    this.table();
  }

  /** Another table, with the same virtual hosts on demand. */
  table(): void {
    this.#version += 1;
    const routes = [{ match: { prefix: `/${this.#version}` }, direct_response: { status: 200 } }];
    const fixed = { name: 'fixed', domains: ['fixed'], routes };
    this.#tellTable({ name: 'table', virtual_hosts: [fixed], vhds: { config_source } });
  }

  request(worker: number, host: string): void {
    this.workers[worker]!.request(host, { kind: 'virtual-host', routeTableId: this.#id, host });
  }

  /** The server has the virtual host of this host so. */
  set(host: string, kind: Kind): void {
    const name = SERVED[host]!;
    const domains = HOSTS.filter((each) => SERVED[each] === name);
    const action = kind === 'bad' ? {} : { direct_response: { status: kind === 'good' ? 200 : 201 } };
    const json = { name, domains, routes: [{ match: { prefix: '/' }, ...action }] };
    // Which of its hosts it answers, it says of one. Of the other a good one shows that by itself.
    const all = name === 'all' ? ['table/c', 'table/d'] : [];
    const aliases = kind === 'bad' ? all : all.slice(0, 1);
    this.link.set(`table/${name}`, kind === 'none' ? undefined : { json, aliases, untoldAliases: all });
  }

  toMain(index: number): boolean {
    return this.workers[index]!.deliverToMain((demand, answer) => {
      if (demand.kind !== 'virtual-host') assert.fail();
      this.#tables.demandHost(demand.routeTableId, demand.host, answer);
    });
  }

  /** Everything arrives, but no time passes. */
  async settle(): Promise<void> {
    await this.link.idle();
    for (;;) {
      const work = this.workers.flatMap((each, index) => [this.toMain(index), each.deliverToWorker()]);
      if (!(await this.link.exchange()) && !work.includes(true)) return;
    }
  }

  #publish({ table }: PublishedRoutes, gone: () => void): void {
    const domains = new Set(table.virtualHosts.flatMap((host) => host.domains));
    for (const worker of this.workers) {
      worker.send(() => {
        worker.known = domains;
      });
    }
    gone();
  }

  #tellTable(json: JsonObject): void {
    const { type, owner } = this.#table!;
    const message = bytesOf(TABLE, json);
    const content = unpackAny({ type_url: `type.googleapis.com/${TABLE}`, value: message })!;
    const { resource } = type().read(content, '', { error: assert.fail, warning() {} });
    const common = { name: 'table', message, warnings: [], deprecatedFields: new Map(), standsAlone: false };
    const offered = {
      name: 'table',
      fingerprint: () => undefined,
      read: () => ({ ...common, isGood: true as const, resource: resource! }),
    };
    const response: DiscoveredResponse<never> = {
      version: `${this.#version}`,
      extent: 'changes',
      removed: [],
      names: ['table'],
      warnings: [],
      offered: () => [offered],
    };
    void owner.onResponse(response);
  }
}

const host = fc.constantFrom(...HOSTS);
const worker = fc.nat(1);
const kind = fc.constantFrom<Kind>('good', 'good', 'other', 'bad', 'none');
const STEP = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('request' as const), worker, host }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('to main' as const), worker }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('to worker' as const), worker }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constantFrom('say' as const, 'hear' as const, 'tell' as const) }) },
  { weight: 5, arbitrary: fc.record({ type: fc.constantFrom('idle' as const, 'exchange' as const) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('set' as const), host, kind }) },
  fc.record({ type: fc.constantFrom('table' as const, 'break' as const) }),
  fc.record({ type: fc.constant('time' as const), ms: fc.nat(700) }),
);
type Step = typeof STEP extends fc.Arbitrary<infer Each> ? Each : never;
/** Few, which are likely to meet in one turn, or many, which lead far. */
const STEPS = fc.oneof(fc.array(STEP, { maxLength: 8 }), fc.array(STEP, { maxLength: 40, size: 'max' }));

async function take(world: World, step: Step): Promise<void> {
  const { link, workers } = world;
  if (step.type === 'request') world.request(step.worker, step.host);
  else if (step.type === 'to main') world.toMain(step.worker);
  else if (step.type === 'to worker') workers[step.worker]!.deliverToWorker();
  else if (step.type === 'say') link.say();
  else if (step.type === 'hear') link.hear();
  else if (step.type === 'tell') link.tell();
  else if (step.type === 'idle') await link.idle();
  else if (step.type === 'exchange') await link.exchange();
  else if (step.type === 'set') world.set(step.host, step.kind);
  else if (step.type === 'table') world.table();
  else if (step.type === 'break') link.breakOff();
  else if (step.type === 'time') world.clock.turn(step.ms);
}

function assertAllTold({ workers }: World): void {
  for (const { told, waiting } of workers) {
    assert.ok(
      told.every((count) => count === 1),
      `requests are told ${told} times`,
    );
    assert.equal(waiting, 0);
  }
}

describe('virtual hosts on demand', () => {
  it('come several at a time, to all who wait', async () => {
    const world = new World();
    world.request(0, 'a');
    world.request(1, 'b');
    for (const each of ['a', 'b', 'c']) world.set(each, 'good');
    await world.settle();
    for (const { told, known } of world.workers) assert.deepEqual([told, [...known]], [[1], ['fixed', 'a', 'b']]);
  });

  it('are asked for anew behind their end also by names that were not theirs', async () => {
    for (const each of ['a', 'c', 'd']) {
      const world = new World();
      for (const kindOf of ['good', 'none'] as const) {
        world.set(each, kindOf);
        await world.settle();
        world.request(0, each);
        await world.settle();
      }
      assertAllTold(world);
      assert.equal(world.workers[0]!.told.length, 2);
    }
  });

  it('are told of behind a refusal of what should have come in their place', async () => {
    for (const each of ['a', 'c']) {
      const world = new World();
      world.request(0, each);
      for (const kindOf of ['good', 'bad', 'none'] as const) {
        world.set(each, kindOf);
        await world.settle();
      }
      assert.deepEqual([...world.workers[0]!.known], ['fixed']);
    }
  });

  it('leave nobody waiting for time to pass where the server answers, in whatever order things happen', async () => {
    const run = async (steps: readonly Step[]): Promise<void> => {
      const world = new World();
      for (const step of steps) await take(world, step);
      await world.settle();
      assertAllTold(world);
      // And whoever wants one now is told what is true now.
      for (const each of HOSTS) world.set(each, each === 'a' ? 'other' : 'none');
      await world.settle();
      for (const each of HOSTS) world.request(0, each);
      await world.settle();
      assertAllTold(world);
      assert.deepEqual([...world.workers[0]!.known], ['fixed', 'a']);
    };
    await fc.assert(fc.asyncProperty(STEPS, run), { numRuns: 100 });
  });

  it('leave nobody waiting for ever where it does not', async () => {
    const run = async (steps: readonly Step[]): Promise<void> => {
      const world = new World();
      for (const step of steps) await take(world, step);
      for (const index of [0, 1]) while (world.toMain(index));
      world.clock.turn(TIMEOUT_MS);
      for (const each of world.workers) while (each.deliverToWorker());
      assertAllTold(world);
    };
    await fc.assert(fc.asyncProperty(STEPS, run), { numRuns: 60 });
  });
});
