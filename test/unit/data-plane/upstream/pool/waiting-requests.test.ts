// Requests that wait for a connection: how they are counted, and what they are told when they wait in vain.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PoolClient } from '../../../../../src/data-plane/upstream/pool/connection-pool.ts';
import type { StreamPool } from '../../../../../src/data-plane/upstream/pool/stream-pool.ts';
import type { CLUSTER_STATS } from '../../../../../src/stats/index.ts';
import { ClusterCount, ClusterPriority } from '../../../../../src/wasm/shared-memory.ts';
import { NO_LIMITS } from '../../../../support/clusters.ts';
import { ANSWER, streamPool, UpstreamRequest } from '../../../../support/upstream-request.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../../support/upstream-workers.ts';

const CONNECT_TIMEOUT_MS = 5000;
const TICK_MS = 8;
const WAITING = 2;

/** One that notes why it has waited in vain. */
class Waiting implements PoolClient {
  told = '';

  onStream(): void {
    this.told += 'connection';
  }

  onPoolFailure(failure: string, detail: string): void {
    this.told += `${failure} ${detail}`.trim();
  }
}

class Bench {
  readonly sockets: FakeUpstreamSocket[] = [];
  readonly workers = new UpstreamWorkers(1, (socket) => void this.sockets.push(socket));
  readonly snapshot;
  readonly pool: StreamPool;

  constructor(maxPendingRequests = 1024) {
    const circuitBreakers = { default: { ...NO_LIMITS, maxPendingRequests }, high: NO_LIMITS };
    this.snapshot = this.workers.cluster(1, { circuitBreakers, connectTimeoutMs: CONNECT_TIMEOUT_MS });
    this.pool = streamPool(this.workers.open(0, this.snapshot).hosts[0]!);
  }

  wait(count = WAITING): Waiting[] {
    return Array.from({ length: count }, () => {
      const client = new Waiting();
      this.pool.newStream(client);
      return client;
    });
  }

  stat(name: keyof typeof CLUSTER_STATS.index): number {
    return this.workers.clusterStat(this.snapshot, name);
  }

  /** Asserts how many wait, in every place that says so. */
  assertWaiting(count: number): void {
    const { recordAddress } = this.snapshot;
    const { pendingRequests } = ClusterCount;
    assert.equal(this.pool.pendingCount, count);
    assert.equal(this.stat('upstream_rq_pending_active'), count);
    assert.equal(this.workers.records.clusterCount(recordAddress, ClusterPriority.default, pendingRequests), count);
  }
}

describe('requests that wait', () => {
  test('are counted as long as they do, and those beyond the limit are refused', () => {
    const bench = new Bench(WAITING);
    const clients = bench.wait(WAITING + 3);
    bench.assertWaiting(WAITING);
    assert.deepEqual(
      clients.map(({ told }) => told),
      ['', '', 'overflow', 'overflow', 'overflow'],
    );
    assert.equal(bench.stat('upstream_rq_pending_overflow'), 3);
    assert.equal(bench.stat('upstream_rq_pending_total'), WAITING);
    for (const [accepted, socket] of bench.sockets.entries()) {
      socket.accept();
      bench.assertWaiting(Math.max(0, WAITING - accepted - 1));
    }
    assert.equal(bench.stat('upstream_rq_pending_failure_eject'), 0);
  });

  test('may go again, once, and are not told anything then', () => {
    const bench = new Bench();
    const clients = bench.wait();
    assert.ok(bench.pool.cancel(clients[1]!));
    bench.assertWaiting(1);
    assert.equal(bench.pool.cancel(clients[1]!), false);
    assert.equal(bench.stat('upstream_rq_cancelled'), 1);
    for (const socket of bench.sockets) socket.accept();
    bench.assertWaiting(0);
    assert.equal(bench.pool.cancel(clients[0]!), false);
    assert.equal(bench.stat('upstream_rq_cancelled'), 1);
    assert.deepEqual(
      clients.map(({ told }) => told),
      ['connection', ''],
    );
    assert.equal(bench.pool.readyCount, 1);
  });

  const failures: Readonly<Record<string, readonly [(bench: Bench) => void, string]>> = {
    'a connection is refused': [
      ({ sockets }) => sockets[0]!.refuse(Object.assign(new Error('refused'), { code: 'ECONNREFUSED', errno: -111 })),
      'remote connection failure delayed connect error: 111',
    ],
    'this machine has no means for a connection': [
      ({ sockets }) => sockets[0]!.refuse(Object.assign(new Error('full'), { code: 'EMFILE' })),
      'local connection failure',
    ],
    'connecting takes too long': [
      ({ workers }) => workers.clock.turn(CONNECT_TIMEOUT_MS + TICK_MS),
      'connection timeout',
    ],
    'the pool is closed': [({ pool }) => pool.close(), 'connection termination'],
  };

  for (const [event, [fail, expected]] of Object.entries(failures)) {
    test(`are told why, each once, when ${event}`, async () => {
      const bench = new Bench();
      const clients = bench.wait();
      assert.equal(bench.pool.expectedCount, WAITING);
      fail(bench);
      for (let turn = 0; turn < 3; turn++) await null;
      assert.deepEqual(
        clients.map(({ told }) => told),
        [expected, expected],
      );
      bench.assertWaiting(0);
      assert.equal(bench.stat('upstream_rq_pending_failure_eject'), WAITING);
      assert.equal(bench.stat('upstream_rq_cancelled'), 0);
      const live = bench.sockets.filter(({ isLive }) => isLive).length;
      assert.equal(bench.pool.size, live);
      assert.equal(bench.pool.expectedCount, live);
      assert.equal(bench.pool.isUsed, live > 0);
      assert.equal(bench.stat('upstream_cx_active'), live);
    });
  }
});

/** A request that has got a connection of its own. */
function served(bench: Bench): UpstreamRequest {
  const request = new UpstreamRequest();
  bench.pool.newStream(request);
  bench.sockets.at(-1)!.accept();
  return request;
}

describe('the connections of a pool', () => {
  test('are closed when it drains, idle ones at once and the others after their request', async () => {
    const bench = new Bench();
    const requests = [served(bench), served(bench), served(bench)];
    bench.sockets[0]!.send(ANSWER);
    assert.equal(bench.pool.readyCount, 1);
    bench.pool.drain();
    assert.deepEqual(
      bench.sockets.map(({ isLive }) => isLive),
      [false, true, true],
    );
    bench.sockets[2]!.send(ANSWER);
    await null;
    assert.deepEqual(
      bench.sockets.map(({ isLive }) => isLive),
      [false, true, false],
    );
    bench.sockets[1]!.send(ANSWER);
    for (let turn = 0; turn < 3; turn++) await null;
    assert.deepEqual(
      requests.map(({ outcome }) => outcome),
      ['answered', 'answered', 'answered'],
    );
    assert.equal(bench.pool.isUsed, false);
    assert.equal(bench.pool.readyCount, 0);
  });

  test('end with their request once it is closed', () => {
    const bench = new Bench();
    bench.pool.close();
    const late = served(bench);
    bench.sockets[0]!.send(ANSWER);
    assert.equal(late.outcome, 'answered');
    assert.equal(bench.sockets[0]!.isLive, false);
  });

  test('are used again, the one that was used last first', () => {
    const bench = new Bench();
    served(bench);
    served(bench);
    const [first, second] = bench.sockets;
    second!.send(ANSWER);
    first!.send(ANSWER);
    first!.received = '';
    second!.received = '';
    bench.pool.newStream(new UpstreamRequest());
    assert.notEqual(first!.received, '');
    assert.equal(second!.received, '');
    assert.equal(bench.pool.readyCount, 1);
  });

  for (const [ended, wasIdle] of [
    [0, true],
    [1, true],
    [1, false],
  ] as const) {
    test(`are forgotten one by one: the ${ended === 0 ? 'first' : 'second'}, ${wasIdle ? 'idle' : 'busy'}`, () => {
      const bench = new Bench();
      served(bench);
      served(bench);
      bench.sockets[0]!.send(ANSWER);
      if (wasIdle) bench.sockets[1]!.send(ANSWER);
      bench.sockets[ended]!.reset();
      assert.deepEqual([bench.pool.size, bench.pool.readyCount], [1, 1]);
      const request = new UpstreamRequest();
      bench.pool.newStream(request);
      bench.sockets[1 - ended]!.send(ANSWER);
      assert.equal(request.outcome, 'answered');
    });
  }

  test('that cannot be made are told of in the log, with the host and the reason', () => {
    const bench = new Bench();
    const lines: string[] = [];
    const log = { enabled: (level: string) => level === 'debug', debug: (line: string) => void lines.push(line) };
    Object.assign(bench.workers.contexts[0]!.logs, { pool: { ofFile: () => log } });
    bench.wait(1);
    bench.sockets[0]!.refuse(new Error('refused'));
    assert.deepEqual(lines, ['cannot connect to 127.0.0.1:1: refused']);
  });

  test('are forgotten when an upstream ends them, also idle ones', async () => {
    const bench = new Bench();
    served(bench);
    served(bench);
    for (const socket of bench.sockets) socket.send(ANSWER);
    bench.sockets[0]!.reset();
    await null;
    assert.equal(bench.pool.readyCount, 1);
    assert.equal(bench.pool.size, 1);
    const request = new UpstreamRequest();
    bench.pool.newStream(request);
    bench.sockets[1]!.send(ANSWER);
    assert.equal(request.outcome, 'answered');
    assert.equal(bench.sockets.length, 2);
  });
});
