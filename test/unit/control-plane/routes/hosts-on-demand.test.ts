// Virtual hosts on demand between workers that ask, main, and a server, each of which is told of the others later than things happen: nobody
// who waits is forgotten, and whoever is told that a host is there has it. By a model.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { FaultBoundary } from '../../../../src/base/fault-boundary.ts';
import type { DiscoveredResponse } from '../../../../src/config/index.ts';
import { unpackAny } from '../../../../src/config/proto/any.ts';
import { RouteTables } from '../../../../src/control-plane/routes/route-tables.ts';
import type { SubscriptionRequest } from '../../../../src/control-plane/subscription/subscription.ts';
import { Demands } from '../../../../src/data-plane/demands.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { Demand, DiscoveredRoutes, PublishedRoutes } from '../../../../src/snapshot/index.ts';
import { type JsonObject, mustLoad } from '../../../support/bootstrap.ts';
import { bytesOf } from '../../../support/control-plane.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';

const TABLE = 'proxy.config.route.v3.RouteConfiguration';
const HOST = 'proxy.config.route.v3.VirtualHost';
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
const fail = (error: unknown): never => assert.fail(String(error));

class Worker {
  readonly toMain: [number, Demand][] = [];
  readonly toWorker: (() => void)[] = [];
  readonly told: number[] = [];
  domains = new Set<string>();
  readonly demands = new Demands((question, demand) => void this.toMain.push([question, demand]), fail);

  request(host: string, routeTableId: number): void {
    if (this.domains.has(host)) return;
    const at = this.told.push(0) - 1;
    this.demands.ask({ kind: 'virtual-host', routeTableId, host }, (isThere) => {
      this.told[at]! += 1;
      if (isThere) assert.ok(this.domains.has(host), `a worker that has been told of ${host} too early`);
    });
  }
}

class World {
  readonly clock = new ManualClock();
  readonly workers = [new Worker(), new Worker()];
  readonly asked = new Set<string>();
  readonly #requests: Request[] = [];
  readonly #tables: RouteTables;
  readonly #id: number;
  #version = 0;

  constructor() {
    const stats = statsFixture();
    const sink = { write() {} };
    this.#tables = new RouteTables({
      stats: stats.store,
      memory: stats.owner,
      workers: {
        publishRoutes: (routes, gone) => this.#publish(routes, gone),
        removeRoutes: (_, gone) => gone(),
      },
      subscriptions: {
        subscribe: (request) => {
          this.#requests.push(request as unknown as Request);
          const ask = (name: string): void => void this.asked.add(name);
          return { start() {}, close() {}, ask, unask: (name) => void this.asked.delete(name) };
        },
      },
      clock: this.clock,
      faults: new FaultBoundary((_, error) => assert.fail(String(error))),
      log: new Loggers({ levels: { default: 'off' }, threadId: 0, sink }).get('rds'),
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
    void this.#tell(0, TABLE, new Map([['table', { name: 'table', virtual_hosts: [fixed], vhds: { config_source } }]]));
  }

  request(worker: number, host: string): void {
    this.workers[worker]!.request(host, this.#id);
  }

  /** @returns false where nobody has asked for it. */
  async answer(host: string, isThere: boolean): Promise<boolean> {
    const name = `table/${host}`;
    if (!this.asked.has(name)) return false;
    if (isThere) await this.push(host);
    else await this.#tell(1, HOST, new Map(), [name]);
    return true;
  }

  async push(...hosts: readonly string[]): Promise<void> {
    const routes = [{ match: { prefix: '/' }, direct_response: { status: 200 } }];
    const resources = hosts.map((host): [string, JsonObject] => [
      `table/${host}`,
      { name: host, domains: [host], routes },
    ]);
    await this.#tell(1, HOST, new Map(resources));
  }

  deliverToMain(index: number): boolean {
    const worker = this.workers[index]!;
    const message = worker.toMain.shift();
    if (message === undefined) return false;
    const [question, demand] = message;
    if (demand.kind !== 'virtual-host') return false;
    this.#tables.demandHost(demand.routeTableId, demand.host, (isThere) => {
      worker.toWorker.push(() => worker.demands.answered(question, isThere));
    });
    return true;
  }

  deliverToWorker(index: number): boolean {
    const message = this.workers[index]!.toWorker.shift();
    message?.();
    return message !== undefined;
  }

  #publish({ table }: PublishedRoutes, gone: () => void): void {
    const domains = new Set(table.virtualHosts.flatMap((host) => host.domains));
    for (const worker of this.workers) {
      worker.toWorker.push(() => {
        worker.domains = domains;
      });
    }
    gone();
  }

  async #tell(
    at: number,
    typeName: string,
    resources: ReadonlyMap<string, JsonObject>,
    removed: readonly string[] = [],
  ): Promise<void> {
    const { type, owner } = this.#requests[at]!;
    const read = [...resources].map(([name, json]) => {
      const message = bytesOf(typeName, json);
      const content = unpackAny({ type_url: `type.googleapis.com/${typeName}`, value: message })!;
      const { resource } = type().read(content, '', { error: assert.fail, warning() {} });
      const common = { name, message, warnings: [], deprecatedFields: new Map(), standsAlone: false };
      return {
        name,
        fingerprint: () => undefined,
        read: () => ({ ...common, isGood: true as const, resource: resource! }),
      };
    });
    const response: DiscoveredResponse<never> = {
      version: `${this.#version}`,
      extent: 'changes',
      removed,
      names: read.map(({ name }) => name),
      warnings: [],
      offered: () => read,
    };
    assert.deepEqual(await owner.onResponse(response), []);
  }
}

describe('virtual hosts on demand', () => {
  it('come several at a time, to all who wait', async () => {
    const world = new World();
    world.request(0, 'a');
    world.request(1, 'b');
    for (const index of [0, 1]) while (world.deliverToMain(index));
    await world.push('a', 'b', 'c');
    for (const index of [0, 1]) while (world.deliverToWorker(index));
    for (const { told, domains } of world.workers) {
      assert.deepEqual([told, [...domains]], [[1], ['fixed', 'a', 'b', 'c']]);
    }
  });

  it('leave nobody waiting, and are there for whoever is told so, in whatever order messages come', async () => {
    const host = fc.constantFrom('a', 'b', 'c');
    const worker = fc.nat(1);
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('request' as const), worker, host }) },
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('to main' as const), worker }) },
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('to worker' as const), worker }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('answer' as const), host, isThere: fc.boolean() }) },
      fc.record({ kind: fc.constant('push' as const), hosts: fc.uniqueArray(host, { minLength: 1 }) }),
      fc.record({ kind: fc.constant('table' as const) }),
      fc.record({ kind: fc.constant('time' as const), ms: fc.nat(700) }),
    );
    const run = async (
      steps: readonly (typeof step extends fc.Arbitrary<infer Step> ? Step : never)[],
    ): Promise<void> => {
      const world = new World();
      for (const each of steps) {
        if (each.kind === 'request') world.request(each.worker, each.host);
        else if (each.kind === 'to main') world.deliverToMain(each.worker);
        else if (each.kind === 'to worker') world.deliverToWorker(each.worker);
        else if (each.kind === 'answer') await world.answer(each.host, each.isThere);
        else if (each.kind === 'push') await world.push(...each.hosts);
        else if (each.kind === 'table') world.table();
        else world.clock.turn(each.ms);
      }
      for (const index of [0, 1]) while (world.deliverToMain(index));
      world.clock.turn(TIMEOUT_MS);
      for (const index of [0, 1]) while (world.deliverToWorker(index));
      for (const { told, demands } of world.workers) {
        assert.ok(told.every((count) => count === 1));
        assert.equal(demands.waiting, 0);
      }
    };
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 30 }), run), { numRuns: 60 });
  });
});
