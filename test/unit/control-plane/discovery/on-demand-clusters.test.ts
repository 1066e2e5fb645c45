// Clusters on demand between workers whose connections and requests wait, main, and a management server, each of which hears of the others
// later than things happen: whoever waits is told, without the help of time where the server answers. By a model.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { discoveryService } from '../../../../src/config/index.ts';
import { OnDemandClusters, type OnDemandManager } from '../../../../src/control-plane/discovery/on-demand-clusters.ts';
import type { ClusterSettings, Demand } from '../../../../src/snapshot/index.ts';
import { AskingWorker } from '../../../support/asking-worker.ts';
import { ChangesLink } from '../../../support/changes-link.ts';
import { cluster } from '../../../support/discovered-proxy.ts';
import { ANY_SOURCE, DiscoveryWorld } from '../../../support/discovery-world.ts';

const TIMEOUT_MS = 1000;
/** One that gets warm before it serves. */
const COLD_MS = 7000;
const NAMES = ['a', 'b'];

type Kind = 'good' | 'cold' | 'bad' | 'none';

class World implements OnDemandManager {
  readonly workers = [new AskingWorker(), new AskingWorker()];
  readonly link: ChangesLink;
  readonly #base = new DiscoveryWorld();
  readonly #clusters: OnDemandClusters;
  readonly #active = new Set<string>();
  readonly #warming = new Set<string>();

  constructor() {
    const deps = this.#base.dependencies;
    this.link = new ChangesLink(discoveryService('proxy.config.cluster.v3.Cluster'), deps);
    this.#clusters = new OnDemandClusters({ ...deps, subscriptions: this.link.subscriptions, manager: this });
  }

  get timers(): number {
    return this.#base.clock.timerCount;
  }

  /** It is nobody else's. */
  has(name: string): boolean {
    return this.#clusters.has(name);
  }

  // ---- The manager ----

  isActive(name: string): boolean {
    return this.#active.has(name);
  }

  put({ name, connectTimeoutMs }: ClusterSettings): boolean {
    if (connectTimeoutMs === COLD_MS && !this.#active.has(name)) this.#warming.add(name);
    else this.#serve(name);
    return true;
  }

  remove(name: string): void {
    this.#warming.delete(name);
    if (this.#active.delete(name)) this.#publish();
  }

  refuse(): void {}

  // ---- What happens ----

  request(worker: number, name: string): number | undefined {
    const demand = { kind: 'cluster' as const, name, source: ANY_SOURCE, timeoutMs: TIMEOUT_MS };
    return this.workers[worker]!.request(name, demand);
  }

  toMain(worker: number): boolean {
    return this.workers[worker]!.deliverToMain((demand: Demand, answer) => {
      if (demand.kind !== 'cluster') assert.fail();
      this.#clusters.demand(demand.name, demand.source, demand.timeoutMs, answer);
    });
  }

  set(name: string, kind: Kind): void {
    const fields = { good: {}, cold: { connect_timeout: `${COLD_MS / 1000}s` }, bad: { connect_timeout: '-1s' } };
    this.link.set(name, kind === 'none' ? undefined : { json: cluster(name, 1, fields[kind]) });
  }

  warm(name: string): boolean {
    if (!this.#warming.delete(name)) return false;
    this.#serve(name);
    return true;
  }

  turn(ms: number): void {
    this.#base.clock.turn(ms);
  }

  /** Everything arrives, but no time passes. */
  async settle(): Promise<void> {
    await this.link.idle();
    for (;;) {
      const hasWorked = [
        ...this.workers.flatMap((each, index) => [this.toMain(index), each.deliverToWorker()]),
        ...NAMES.map((each) => this.warm(each)),
      ].includes(true);
      if (!(await this.link.exchange()) && !hasWorked) return;
    }
  }

  close(): void {
    this.#clusters.close();
  }

  #serve(name: string): void {
    this.#active.add(name);
    this.#publish();
    this.#clusters.activated(name);
  }

  #publish(): void {
    const known = new Set(this.#active);
    for (const worker of this.workers) {
      worker.send(() => {
        worker.known = known;
      });
    }
  }
}

const name = fc.constantFrom(...NAMES);
const worker = fc.nat(1);
const kind = fc.constantFrom<Kind>('good', 'good', 'cold', 'bad', 'none');
const STEP = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('request' as const), worker, name }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('to main' as const), worker }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('to worker' as const), worker }) },
  { weight: 8, arbitrary: fc.record({ type: fc.constantFrom('say' as const, 'hear' as const, 'tell' as const) }) },
  { weight: 5, arbitrary: fc.record({ type: fc.constantFrom('idle' as const, 'exchange' as const) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('turns' as const), count: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('set' as const), name, kind }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('warm' as const), name }) },
  fc.record({ type: fc.constant('leave' as const), worker, at: fc.nat(3) }),
  fc.record({ type: fc.constant('break' as const) }),
  fc.record({ type: fc.constant('time' as const), ms: fc.nat(700) }),
);
type Step = typeof STEP extends fc.Arbitrary<infer Each> ? Each : never;

/** Few, which are likely to meet in one turn, or many, which lead far. */
const STEPS = fc.oneof(fc.array(STEP, { maxLength: 8 }), fc.array(STEP, { maxLength: 40, size: 'max' }));

async function take(world: World, step: Step): Promise<void> {
  const { link, workers } = world;
  if (step.type === 'request') world.request(step.worker, step.name);
  else if (step.type === 'to main') world.toMain(step.worker);
  else if (step.type === 'to worker') workers[step.worker]!.deliverToWorker();
  else if (step.type === 'say') link.say();
  else if (step.type === 'hear') link.hear();
  else if (step.type === 'tell') link.tell();
  else if (step.type === 'idle') await link.idle();
  else if (step.type === 'exchange') await world.link.exchange();
  else if (step.type === 'set') world.set(step.name, step.kind);
  else if (step.type === 'warm') world.warm(step.name);
  else if (step.type === 'leave') workers[step.worker]!.leave(step.at);
  else if (step.type === 'break') link.breakOff();
  else if (step.type === 'time') world.turn(step.ms);
  else if (step.type === 'turns') for (let turn = 0; turn < step.count; turn += 1) await null;
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

describe('clusters on demand', () => {
  it('are there at once for a worker that has not heard yet that they are', async () => {
    const world = new World();
    world.set('a', 'good');
    world.request(0, 'a');
    world.toMain(0);
    await world.link.exchange();
    world.request(1, 'a');
    await world.settle();
    assertAllTold(world);
    assert.deepEqual([...world.workers[1]!.known], ['a']);
  });

  it('are theirs who tell of all clusters until they have come, and behind their end', async () => {
    const world = new World();
    world.request(0, 'a');
    world.toMain(0);
    assert.equal(world.has('a'), false);
    for (const kindOf of ['good', 'none'] as const) {
      world.set('a', kindOf);
      await world.settle();
      assert.equal(world.has('a'), kindOf === 'good');
    }
  });

  it('are asked for anew where the server has not heard yet that nobody wants them', async () => {
    const world = new World();
    world.request(0, 'a');
    world.toMain(0);
    world.link.say();
    world.link.hear();
    world.link.tell();
    await world.link.idle();
    world.request(1, 'a');
    world.toMain(1);
    await world.settle();
    assertAllTold(world);
  });

  it('leave nobody waiting for time to pass where the server answers, in whatever order things happen', async () => {
    const run = async (steps: readonly Step[]): Promise<void> => {
      const world = new World();
      for (const step of steps) await take(world, step);
      await world.settle();
      assertAllTold(world);
      // And whoever wants one now is told what is true now.
      for (const each of NAMES) world.set(each, each === 'a' ? 'good' : 'none');
      await world.settle();
      for (const each of NAMES) world.request(0, each);
      await world.settle();
      assertAllTold(world);
      assert.deepEqual([...world.workers[0]!.known], ['a']);
      assert.equal(world.timers, 0);
    };
    await fc.assert(fc.asyncProperty(STEPS, run), { numRuns: 150 });
  });

  it('leave nobody waiting for ever where it does not, nor when the proxy ends', async () => {
    const run = async (steps: readonly Step[], ends: boolean): Promise<void> => {
      const world = new World();
      for (const step of steps) await take(world, step);
      for (const index of [0, 1]) while (world.toMain(index));
      if (ends) world.close();
      else world.turn(TIMEOUT_MS);
      for (const each of world.workers) while (each.deliverToWorker());
      assertAllTold(world);
      assert.equal(world.timers, 0);
    };
    await fc.assert(fc.asyncProperty(STEPS, fc.boolean(), run), { numRuns: 100 });
  });
});
