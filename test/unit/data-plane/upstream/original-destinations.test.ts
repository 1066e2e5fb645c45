// Hosts on demand between main and its workers, whose messages take any time: both real ends of the conversation, with the
// clusters that they stand for made up, in every order of events that chance finds.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { formatAddress, type IpAddress } from '../../../../src/base/address.ts';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { ORIGINAL_DST_HOSTS } from '../../../../src/base/runtime-values.ts';
import { OriginalDstDiscovery } from '../../../../src/control-plane/cluster-manager/discovery/original-dst.ts';
import { UpdateConfirmations } from '../../../../src/control-plane/workers/update-confirmations.ts';
import { TimerWheel } from '../../../../src/data-plane/network/timer-wheel.ts';
import type { CircuitBreaker } from '../../../../src/data-plane/upstream/circuit-breaker.ts';
import type { HostUser } from '../../../../src/data-plane/upstream/destinations.ts';
import { contextFor } from '../../../../src/data-plane/upstream/load-balancer/pick-context.ts';
import { OriginalDestinations } from '../../../../src/data-plane/upstream/original-destinations.ts';
import type { WorkerContext } from '../../../../src/data-plane/worker-context.ts';
import { Loggers } from '../../../../src/log/index.ts';
import { CLUSTER_STATS } from '../../../../src/stats/index.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const CLEANUP_MS = 1000;
const CONNECT_TIMEOUT_MS = 2500;
const MAX_HOSTS = 2;
const MAX_PENDING = 3;
const WORKERS = [0, 1];

/** A host as all threads share it: main has made it, workers use it. */
class SharedHost {
  readonly destination: IpAddress;
  readonly key: string;
  activeConnections = 0;
  uses = 0;
  isEjected = false;
  hasFailedChecks = false;
  isWanted = false;
  isMember = true;
  isFreed = false;

  constructor(address: IpAddress) {
    this.destination = address;
    this.key = formatAddress(address);
  }

  get isUnhealthy(): boolean {
    return this.isEjected || this.hasFailedChecks;
  }

  noteWanted(): void {
    this.isWanted = true;
  }

  takeWanted(): boolean {
    const { isWanted } = this;
    this.isWanted = false;
    return isWanted;
  }
}

type ToWorker =
  | { readonly type: 'added'; readonly generation: number; readonly hosts: readonly SharedHost[] }
  | { readonly type: 'removed'; readonly generation: number; readonly hosts: readonly SharedHost[] }
  | { readonly type: 'refused'; readonly key: string };
type ToMain =
  | { readonly type: 'wanted'; readonly address: IpAddress }
  | { readonly type: 'applied'; readonly generation: number };

class User implements HostUser<SharedHost> {
  state: 'waiting' | 'using' | 'none' | 'cancelled' | 'done' = 'waiting';
  host: SharedHost | null = null;
  /** It was there before its host. */
  hasWaited = false;

  onHost(host: SharedHost): void {
    assert.equal(this.state, 'waiting', 'told once, and not behind a cancel');
    assert.ok(!host.isFreed);
    assert.ok(!host.isUnhealthy, 'nobody gets a host that is not healthy');
    assert.ok(!this.hasWaited || host.isMember, 'who has waited gets a member');
    this.state = 'using';
    this.host = host;
    host.activeConnections += 1;
    host.uses += 1;
  }

  onNoHost(): void {
    assert.equal(this.state, 'waiting', 'told once, and not behind a cancel');
    this.state = 'none';
  }

  end(): void {
    this.state = 'done';
    this.host!.activeConnections -= 1;
  }
}

class Worker {
  readonly inbox: ToWorker[] = [];
  readonly outbox: ToMain[] = [];
  readonly users: User[] = [];
  readonly destinations: OriginalDestinations<SharedHost>;
  readonly wheel: TimerWheel;
  pending = 0;
  readonly #breaker = {
    tryAcquirePending: () => {
      if (this.pending >= MAX_PENDING) return false;
      this.pending += 1;
      return true;
    },
    releasePending: () => {
      this.pending -= 1;
    },
  } as unknown as CircuitBreaker;
  #unconfirmed: Extract<ToWorker, { readonly type: 'removed' }>[] = [];

  constructor(clock: ManualClock) {
    this.wheel = new TimerWheel(clock, (error) => {
      throw error;
    });
    const context = {
      clock,
      wheel: this.wheel,
      stats: { values: new Float64Array(CLUSTER_STATS.size) },
      requestHost: (_cluster: string, address: IpAddress) => this.outbox.push({ type: 'wanted', address }),
    } as unknown as WorkerContext;
    const owner = { name: 'any', statBase: 0, waitMs: CONNECT_TIMEOUT_MS };
    this.destinations = new OriginalDestinations(context, owner, { header: null, port: 0 });
  }

  ask(port: number): void {
    const user = new User();
    this.users.push(user);
    this.destinations.choose(contextFor({ kind: 'ip', ip: '10.0.0.1', port }), this.#breaker, user);
    user.hasWaited = user.state === 'waiting';
  }

  receive(message: ToWorker): void {
    switch (message.type) {
      case 'added':
        for (const host of message.hosts) this.destinations.add(host);
        this.outbox.push({ type: 'applied', generation: message.generation });
        break;
      case 'removed':
        for (const host of message.hosts) this.destinations.remove(host);
        this.#unconfirmed.push(message);
        this.confirm();
        break;
      case 'refused':
        this.destinations.refuse(message.key, 'overflow');
    }
  }

  /** What has been removed is confirmed when nobody here uses it. */
  confirm(): void {
    const used = new Set(this.in('using').map(({ host }) => host));
    const isDone = ({ hosts }: { readonly hosts: readonly SharedHost[] }): boolean =>
      !hosts.some((host) => used.has(host));
    for (const { generation } of this.#unconfirmed.filter(isDone)) this.outbox.push({ type: 'applied', generation });
    this.#unconfirmed = this.#unconfirmed.filter((message) => !isDone(message));
  }

  in(state: User['state']): User[] {
    return this.users.filter((user) => user.state === state);
  }
}

class Model {
  readonly clock = new ManualClock();
  readonly workers = WORKERS.map(() => new Worker(this.clock));
  readonly made: SharedHost[] = [];
  readonly #members = new Map<string, SharedHost>();
  readonly #confirmations = new UpdateConfirmations(NO_FAULTS);
  /** What main does at the end of its turn. */
  readonly #atEndOfTurn: (() => void)[] = [];
  /** Hosts of every message that brought some. */
  readonly batches: number[] = [];
  readonly discovery: OriginalDstDiscovery<SharedHost>;

  constructor() {
    const members = this.#members;
    const loggers = new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } });
    const runtime = new RuntimeValues(new Map([[ORIGINAL_DST_HOSTS, String(MAX_HOSTS)]]));
    const afterMessages = (callback: () => void) => void this.#atEndOfTurn.push(callback);
    const tools = { clock: this.clock, log: loggers.get('upstream'), runtime, afterMessages };
    this.discovery = new OriginalDstDiscovery({ kind: 'original-dst', cleanupIntervalMs: CLEANUP_MS }, tools, {
      name: 'any',
      get size() {
        return members.size;
      },
      members: () => [...members.values()],
      member: (key) => members.get(key),
      make: ({ address }) => {
        const host = new SharedHost(address as IpAddress);
        this.made.push(host);
        members.set(host.key, host);
        return host;
      },
      publish: (hosts, onApplied) => {
        this.batches.push(hosts.length);
        this.#publish((generation) => ({ type: 'added', generation, hosts }), onApplied);
      },
      remove: (hosts) => {
        for (const host of hosts) {
          assert.ok(!host.isEjected, 'an ejected host is kept until it comes back');
          host.isMember = false;
          members.delete(formatAddress(host.destination));
        }
        this.#publish(
          (generation) => ({ type: 'removed', generation, hosts }),
          () => {
            for (const host of hosts) {
              assert.equal(host.activeConnections, 0, 'nobody uses what is freed');
              host.isFreed = true;
            }
          },
        );
      },
      onReady: () => {},
    });
    this.discovery.start();
  }

  get memberCount(): number {
    return this.#members.size;
  }

  get members(): readonly SharedHost[] {
    return [...this.#members.values()];
  }

  endTurn(): void {
    for (const callback of this.#atEndOfTurn.splice(0)) callback();
  }

  #publish(message: (generation: number) => ToWorker, onApplied: () => void): void {
    const generation = this.#confirmations.begin(WORKERS, onApplied);
    for (const worker of this.workers) worker.inbox.push(message(generation));
  }

  toMain(index: number): void {
    const worker = this.workers[index]!;
    const message = worker.outbox.shift();
    if (message?.type === 'applied') this.#confirmations.confirm(message.generation, index);
    else if (message !== undefined && this.discovery.want(message.address) !== undefined) {
      worker.inbox.push({ type: 'refused', key: formatAddress(message.address) });
    }
  }

  toWorker(index: number): void {
    const message = this.workers[index]!.inbox.shift();
    if (message !== undefined) this.workers[index]!.receive(message);
  }

  deliverAll(): void {
    this.endTurn();
    while (this.workers.some(({ inbox, outbox }) => inbox.length + outbox.length > 0)) {
      for (const index of WORKERS) {
        this.toMain(index);
        this.toWorker(index);
      }
      this.endTurn();
    }
  }

  check(): void {
    assert.ok(this.memberCount <= MAX_HOSTS, 'never more hosts than may be');
    for (const worker of this.workers) {
      assert.equal(worker.pending, worker.in('waiting').length, 'who waits counts as waiting, and nobody else');
      for (const { host, hasWaited } of worker.in('using')) {
        assert.ok(!host!.isFreed, 'what is used is not freed');
        assert.ok(!hasWaited || host!.isMember, 'a host in use survives every cleanup');
      }
    }
  }
}

const STEPS = [
  'ask',
  'to-main',
  'end-turn',
  'to-worker',
  'end',
  'cancel',
  'cleanup',
  'time',
  'quiet',
  'health',
] as const;
const step = fc.record({
  kind: fc.constantFrom(...STEPS),
  worker: fc.constantFrom(...WORKERS),
  n: fc.nat({ max: 3 }),
});

function act(
  model: Model,
  { kind, worker: index, n }: { kind: (typeof STEPS)[number]; worker: number; n: number },
): void {
  const worker = model.workers[index]!;
  switch (kind) {
    case 'ask':
      worker.ask(1 + n);
      break;
    case 'to-main':
      model.toMain(index);
      break;
    case 'end-turn':
      model.endTurn();
      break;
    case 'health': {
      const host = model.members[n >> 1];
      if (host === undefined) break;
      if (n % 2 === 0) host.isEjected = !host.isEjected;
      else host.hasFailedChecks = !host.hasFailedChecks;
      break;
    }
    case 'to-worker':
      model.toWorker(index);
      break;
    case 'end': {
      const user = worker.in('using')[n];
      if (user === undefined) break;
      user.end();
      // Connections do so at their end, whatever they have been doing.
      worker.destinations.cancel(user);
      worker.confirm();
      break;
    }
    case 'cancel': {
      const user = worker.in('waiting')[n];
      if (user === undefined) break;
      user.state = 'cancelled';
      worker.destinations.cancel(user);
      break;
    }
    case 'cleanup':
      // A few of them, or they would hardly ever find the same host twice.
      for (let round = 0; round <= n; round += 1) model.clock.turn(CLEANUP_MS);
      break;
    case 'quiet':
      model.deliverAll();
      break;
    case 'time':
      model.clock.turn(CLEANUP_MS / 3);
  }
}

describe('hosts on demand, over messages that take their time', () => {
  it('answer each question once, stay while they are used, and are freed when nobody uses them', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
        const model = new Model();
        for (const each of steps) {
          act(model, each);
          model.check();
        }
        model.deliverAll();
        model.check();
        for (const worker of model.workers) {
          assert.equal(worker.in('waiting').length, 0, 'nobody waits when all has been said');
          for (const user of worker.in('using')) user.end();
          worker.confirm();
        }
        for (const host of model.members) host.isEjected = false;
        for (let round = 0; round < 3; round += 1) {
          model.deliverAll();
          model.clock.turn(CLEANUP_MS);
        }
        model.deliverAll();
        assert.equal(model.memberCount, 0);
        assert.deepEqual(
          [...new Set(model.made.map(({ isFreed }) => isFreed))].filter((isFreed) => !isFreed),
          [],
        );
        model.discovery.stop();
        for (const { wheel } of model.workers) wheel.close();
      }),
      { numRuns: 300 },
    );
  });

  it('keep nobody waiting for longer than a connection may take', () => {
    const model = new Model();
    const [worker] = model.workers;
    worker!.ask(1);
    model.clock.turn(CONNECT_TIMEOUT_MS + 10);
    assert.equal(worker!.in('none').length, 1);
    // The answer comes nevertheless, and is of use to the next.
    model.deliverAll();
    worker!.ask(1);
    assert.equal(worker!.in('using').length, 1);
    model.discovery.stop();
  });

  it('are asked for once, however many want one', () => {
    const model = new Model();
    const [worker] = model.workers;
    for (let n = 0; n < MAX_PENDING; n += 1) worker!.ask(1);
    assert.equal(worker!.outbox.length, 1);
    // The limit of requests that wait holds for these, too.
    worker!.ask(1);
    assert.equal(worker!.in('none').length, 1);
    model.deliverAll();
    assert.equal(worker!.in('using').length, MAX_PENDING);
    model.discovery.stop();
  });

  it('go to the workers together, where they were wanted together', () => {
    const model = new Model();
    const [first, second] = model.workers;
    first!.ask(1);
    first!.ask(2);
    second!.ask(1);
    for (const index of [0, 0, 1]) model.toMain(index);
    assert.deepEqual(model.batches, []);
    model.deliverAll();
    assert.deepEqual(model.batches, [2]);
    assert.deepEqual([first!.in('using').length, second!.in('using').length], [2, 1]);
    model.discovery.stop();
  });

  it('are kept, with what is known of their health, while somebody wants them', () => {
    const model = new Model();
    const [worker] = model.workers;
    worker!.ask(1);
    model.deliverAll();
    const [host] = model.members;
    worker!.in('using')[0]!.end();
    host!.hasFailedChecks = true;
    for (let round = 0; round < 5; round += 1) {
      worker!.ask(1);
      model.clock.turn(CLEANUP_MS);
    }
    assert.deepEqual([worker!.in('none').length, model.memberCount], [5, 1]);
    model.clock.turn(CLEANUP_MS);
    model.deliverAll();
    assert.equal(model.memberCount, 0);
    model.discovery.stop();
  });

  it('are told to nobody when their cluster has been stopped meanwhile', () => {
    const model = new Model();
    model.workers[0]!.ask(1);
    model.toMain(0);
    model.discovery.stop();
    model.deliverAll();
    assert.deepEqual(model.batches, []);
  });

  it('come to no one any more when their cluster goes', () => {
    const model = new Model();
    const [worker] = model.workers;
    worker!.ask(1);
    worker!.ask(2);
    worker!.destinations.close();
    assert.deepEqual([worker!.in('none').length, worker!.pending], [2, 0]);
    model.discovery.stop();
    model.deliverAll();
    assert.equal(model.memberCount, 0);
  });
});
