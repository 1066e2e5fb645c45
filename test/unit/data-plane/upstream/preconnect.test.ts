// Connections that are opened before requests need them: how many, to which hosts, and when none are. pool-model.test.ts has
// the rest for those of one host: never more than the ratio allows, whatever happens.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Http1ClientConnection } from '../../../../src/data-plane/http/codec/http1/client-connection.ts';
import type { Cluster } from '../../../../src/data-plane/upstream/cluster.ts';
import type { Host } from '../../../../src/data-plane/upstream/host.ts';
import { HostForecast } from '../../../../src/data-plane/upstream/host-forecast.ts';
import type { PoolClient } from '../../../../src/data-plane/upstream/pool/connection-pool.ts';
import { RetiredHosts } from '../../../../src/data-plane/upstream/retired-hosts.ts';
import type { CircuitBreakerThresholds, ClusterSnapshot } from '../../../../src/snapshot/index.ts';
import { Framing, Method } from '../../../../src/wasm/http1.ts';
import { ClusterPriority, HealthFlag } from '../../../../src/wasm/shared-memory.ts';
import { NO_LIMITS } from '../../../support/clusters.ts';
import { streamPool } from '../../../support/upstream-request.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../support/upstream-workers.ts';

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

class Request implements PoolClient {
  readonly host: Host;
  readonly awaitsUpgrade = false;
  readonly matchesUpstreamScheme = false;
  readonly upstreamWire = null;
  readonly requestFraming = Framing.NONE;
  readonly requestTrailers = null;
  readonly bufferLimitBytes = 1024;
  state: 'waiting' | 'running' | 'over' = 'waiting';

  constructor(host: Host) {
    this.host = host;
  }

  onStream(connection: Http1ClientConnection): void {
    this.state = 'running';
    connection.start(this, Method.GET, 'GET / HTTP/1.1\r\nhost: x\r\n\r\n', Buffer.alloc(0), 0, 0, true);
  }

  onPoolFailure(): void {
    this.state = 'over';
  }

  onInterimHead(): void {}

  onResponseHead(): boolean {
    this.state = 'over';
    return true;
  }

  onResponseBody(): boolean {
    return true;
  }

  onResponseTrailers(): void {}

  onUpstreamReset(): void {
    this.state = 'over';
  }

  onUpstreamDrain(): void {}
}

interface BenchOptions {
  readonly perHostRatio?: number;
  readonly predictiveRatio?: number;
  readonly hosts?: number;
  readonly limits?: Partial<CircuitBreakerThresholds>;
}

/** A cluster in one worker, whose hosts are chosen in turn. */
class Bench {
  readonly workers: UpstreamWorkers;
  readonly snapshot: ClusterSnapshot;
  readonly cluster: Cluster;
  /** In the order in which they were opened. */
  readonly sockets: FakeUpstreamSocket[] = [];
  readonly requests: Request[] = [];

  constructor({ perHostRatio = 1, predictiveRatio = 1, hosts = 1, limits = {} }: BenchOptions) {
    this.workers = new UpstreamWorkers(1, (socket) => void this.sockets.push(socket));
    const circuitBreakers = { default: { ...NO_LIMITS, ...limits }, high: NO_LIMITS };
    const preconnect = { perHostRatio, predictiveRatio };
    this.snapshot = this.workers.balanced(this.workers.cluster(hosts, { preconnect, circuitBreakers }));
    this.cluster = this.workers.open(0, this.snapshot);
  }

  /** Ports of the hosts of all connections so far. */
  get opened(): number[] {
    return this.sockets.map(portOf);
  }

  get overflows(): number {
    return this.workers.clusterStat(this.snapshot, 'upstream_cx_overflow');
  }

  /** As the router asks. */
  request(): Request {
    const request = new Request(this.cluster.chooseHost(null)!);
    this.requests.push(request);
    this.cluster.forecast?.openAhead(ClusterPriority.default, null);
    request.host.pools.default.newStream(request);
    return request;
  }
}

function portOf({ address }: { readonly address: unknown }): number {
  return (address as { readonly port: number }).port;
}

describe('connections ahead of the requests of a host', () => {
  for (const [ratio, opened] of [
    [1, [1, 2, 3, 4, 5]],
    [1.25, [2, 3, 4, 5, 7]],
    [1.5, [2, 3, 5, 6, 8]],
    [3, [3, 6, 9, 12, 15]],
  ] as const) {
    test(`are there at a ratio of ${ratio}`, () => {
      const bench = new Bench({ perHostRatio: ratio });
      const counts = opened.map(() => {
        bench.request();
        return bench.sockets.length;
      });
      assert.deepEqual(counts, opened);
    });
  }

  test('are used by the requests that follow, which have more opened', () => {
    const bench = new Bench({ perHostRatio: 2 });
    bench.request();
    for (const socket of bench.sockets) socket.accept();
    assert.equal(bench.request().state, 'running');
    assert.equal(bench.sockets.length, 4);
  });

  test('are not opened again for requests that come one after the other', () => {
    const bench = new Bench({ perHostRatio: 2 });
    bench.request();
    for (const socket of bench.sockets) socket.accept();
    for (let n = 0; n < 5; n++) {
      bench.sockets.find(({ received }) => received !== '' && received.length > 0)!.send(ANSWER);
      bench.request();
    }
    assert.equal(bench.sockets.length, 2);
  });

  test('are not tried again after one that was refused, before the next request', () => {
    const bench = new Bench({ perHostRatio: 3 });
    bench.request();
    bench.sockets[0]!.accept();
    bench.sockets[1]!.refuse();
    bench.workers.clock.turn(1000);
    assert.equal(bench.sockets.length, 3);
    bench.request();
    assert.equal(bench.sockets.length, 6);
  });

  test('are three with each request at most, with the one that it needs', () => {
    const bench = new Bench({ perHostRatio: 3 });
    const { recordAddress } = bench.snapshot.hosts[0]!;
    bench.workers.records.setHealthFlag(recordAddress, HealthFlag.failedActiveHealthCheck, true);
    for (let n = 0; n < 3; n++) bench.request();
    for (const socket of bench.sockets) socket.accept();
    assert.equal(bench.sockets.length, 3);
    bench.workers.records.setHealthFlag(recordAddress, HealthFlag.failedActiveHealthCheck, false);
    bench.request();
    assert.equal(bench.sockets.length, 6);
  });

  test('that are expected are opened while these are not enough, to a host that is well', () => {
    const bench = new Bench({});
    const pool = bench.cluster.hosts[0]!.pools.default;
    const { recordAddress } = bench.snapshot.hosts[0]!;
    bench.workers.records.setHealthFlag(recordAddress, HealthFlag.failedActiveHealthCheck, true);
    assert.equal(pool.openForNext(2), false);
    bench.workers.records.setHealthFlag(recordAddress, HealthFlag.failedActiveHealthCheck, false);
    assert.deepEqual(
      [1, 2, 3].map(() => pool.openForNext(2)),
      [true, true, false],
    );
    assert.equal(bench.sockets.length, 2);
    assert.equal(bench.overflows, 0);
  });

  test('stay below the limit of connections, also where the first one goes beyond it', () => {
    const bench = new Bench({ perHostRatio: 3, limits: { maxConnections: 2 } });
    bench.request();
    assert.equal(bench.sockets.length, 2);
    assert.equal(bench.overflows, 1);
    const none = new Bench({ perHostRatio: 3, limits: { maxConnections: 0 } });
    none.request();
    assert.equal(none.sockets.length, 1);
    // The one beyond the limit, and one that was not opened.
    assert.equal(none.overflows, 2);
  });

  test('stay below the limit of each host', () => {
    const bench = new Bench({ perHostRatio: 3, limits: { maxConnectionsPerHost: 2 } });
    bench.request();
    assert.equal(bench.sockets.length, 2);
  });

  for (const flag of ['failedActiveHealthCheck', 'degradedActiveHealthCheck'] as const) {
    test(`are not opened to a host by ${flag}`, () => {
      const bench = new Bench({ perHostRatio: 3 });
      bench.workers.records.setHealthFlag(bench.snapshot.hosts[0]!.recordAddress, HealthFlag[flag], true);
      bench.request();
      assert.equal(bench.sockets.length, 1);
    });
  }

  test('leave the places that others wait for to those', () => {
    const bench = new Bench({ perHostRatio: 2, hosts: 2, limits: { maxConnections: 4 } });
    const [first, second] = bench.cluster.hosts;
    const ask = (host: Host): void => host.pools.default.newStream(new Request(host));
    ask(first!);
    for (const socket of bench.sockets) socket.accept();
    for (let n = 0; n < 3; n++) ask(second!);
    assert.deepEqual(bench.opened, [1, 1, 2, 2]);
    // Another worker gives a place back, of which this one has not heard yet.
    bench.workers.records.addClusterCount(bench.snapshot.recordAddress, ClusterPriority.default, 0, -1);
    ask(first!);
    assert.deepEqual(bench.opened, [1, 1, 2, 2]);
    bench.workers.clock.turn(24);
    assert.deepEqual(bench.opened, [1, 1, 2, 2, 2]);
  });
});

describe('connections ahead of the requests of a cluster', () => {
  test('go to the hosts that the next requests then go to', () => {
    const bench = new Bench({ predictiveRatio: 3, hosts: 4 });
    const first = bench.request();
    assert.equal(bench.sockets.length, 4);
    assert.deepEqual(new Set(bench.opened).size, 4);
    assert.equal(bench.opened.at(-1), portOf(first.host));
    for (const socket of bench.sockets) socket.accept();
    const next = bench.opened.slice(0, 3);
    assert.deepEqual(
      next.map(() => portOf(bench.request().host)),
      next,
    );
    assert.ok(bench.requests.every(({ state }) => state === 'running'));
  });

  test('are as many as the ratio asks for, up to one request foreseen for each host', () => {
    const bench = new Bench({ predictiveRatio: 3, hosts: 8 });
    const counts = Array.from({ length: 5 }, () => {
      bench.request();
      return bench.sockets.length;
    });
    // Of 15 for the fifth request all but two: nobody knows where a ninth request would go.
    assert.deepEqual(counts, [4, 6, 9, 12, 13]);
  });

  test('are three with each request at most, with more to make up for', () => {
    const bench = new Bench({ predictiveRatio: 3, hosts: 8 });
    bench.request();
    for (const socket of bench.sockets.splice(0))
      if (portOf(socket) !== portOf(bench.requests[0]!.host)) socket.refuse();
    bench.request();
    // And the one that the request needs.
    assert.equal(bench.sockets.length, 4);
  });

  test('are none where no host can be foreseen, or the foreseen one wants none', () => {
    const bench = new Bench({ hosts: 4 });
    const [, ill, well] = bench.cluster.hosts;
    bench.workers.records.setHealthFlag(ill!.record, HealthFlag.failedOutlierCheck, true);
    const turns = [ill!, well!, null, well!];
    const forecast = new HostForecast(3, () => turns.shift()!);
    forecast.forget(bench.cluster.hosts);
    forecast.openAhead(ClusterPriority.default, null);
    assert.deepEqual(bench.opened, []);
    forecast.openAhead(ClusterPriority.default, null);
    assert.deepEqual(bench.opened, [portOf(well!)]);
    assert.deepEqual([forecast.take(), forecast.take(), forecast.take()], [ill, well, null]);
  });

  test('leave the turns of the hosts as they are', () => {
    const ahead = new Bench({ predictiveRatio: 2, hosts: 5 });
    const plain = new Bench({ hosts: 5 });
    const turns = (bench: Bench): number[] => Array.from({ length: 12 }, () => portOf(bench.request().host));
    assert.deepEqual(turns(ahead), turns(plain));
  });

  test('foresee no more requests than there are healthy hosts', () => {
    const bench = new Bench({ hosts: 4 });
    const { hosts } = bench.cluster;
    for (const { record } of hosts.slice(2))
      bench.workers.records.setHealthFlag(record, HealthFlag.failedOutlierCheck, true);
    const turns = hosts.slice(0, 2);
    const forecast = new HostForecast(3, () => turns.shift() ?? assert.fail('one too many'));
    forecast.openAhead(ClusterPriority.default, null);
    assert.deepEqual(bench.opened, []);
    forecast.forget(hosts);
    forecast.openAhead(ClusterPriority.default, null);
    assert.deepEqual(bench.opened, [1, 2]);
  });

  test('forget what they foresaw when the members change', () => {
    const bench = new Bench({ predictiveRatio: 3, hosts: 4 });
    bench.request();
    const [last] = bench.snapshot.hosts.slice(-1);
    const left = { ...bench.snapshot, hosts: [last!] };
    bench.cluster.updateHosts(bench.workers.balanced(left), new RetiredHosts(() => {}));
    for (let n = 0; n < 4; n++) assert.equal(portOf(bench.request().host), 4);
  });

  test('know of every request and connection, whatever becomes of it', () => {
    const bench = new Bench({ predictiveRatio: 1.1, limits: { maxRequests: 1 } });
    const { totals } = bench.cluster.forecast!;
    const seen = (): number[] => [totals.requests, totals.capacity];
    const [pool] = bench.cluster.hosts.map(({ pools }) => pools.default);
    const add = (): void => pool!.newStream(new Request(bench.cluster.hosts[0]!));
    add();
    assert.deepEqual(seen(), [1, 1]);
    bench.sockets[0]!.accept();
    assert.deepEqual(seen(), [1, 1]);
    bench.sockets[0]!.send(ANSWER);
    assert.deepEqual(seen(), [0, 1]);
    bench.sockets[0]!.reset();
    assert.deepEqual(seen(), [0, 0]);
    add();
    add();
    assert.deepEqual(seen(), [2, 2]);
    bench.sockets[1]!.accept();
    bench.sockets[2]!.accept();
    // The second one is refused: one request may run.
    assert.deepEqual(seen(), [1, 2]);
    add();
    assert.deepEqual(seen(), [1, 2]);
    bench.sockets[1]!.reset();
    bench.sockets[2]!.reset();
    add();
    bench.workers.clock.turn(10_000);
    assert.deepEqual(seen(), [0, 0]);
    add();
    bench.sockets.at(-1)!.refuse();
    assert.deepEqual(seen(), [0, 0]);
  });

  test('never pass the ratio, whatever ends meanwhile, and know what all pools hold', () => {
    const act = fc.record({
      kind: fc.constantFrom('request', 'request', 'accept', 'answer', 'lose', 'refuse', 'cancel'),
      which: fc.nat(20),
    });
    const ratios = fc.constantFrom(1.1, 1.5, 2, 3);
    fc.assert(
      fc.property(ratios, fc.nat(4), fc.nat(5), fc.array(act, { maxLength: 60 }), (ratio, more, most, acts) => {
        const limits = { maxConnections: most + 1 };
        const bench = new Bench({ predictiveRatio: ratio, hosts: more + 1, limits });
        const { forecast, hosts } = bench.cluster;
        const sum = (of: (host: Host) => number): number => hosts.reduce((total, host) => total + of(host), 0);
        const pick = <T>(items: readonly T[], n: number): T | undefined => items[n % items.length];
        for (const { kind, which } of acts) {
          const { requests, capacity } = forecast!.totals;
          const before = bench.sockets.length;
          if (kind === 'request') {
            bench.request();
            const ahead = bench.sockets.length - before - 1;
            assert.ok(ahead <= 3);
            assert.ok(ahead <= 0 || capacity + ahead < (requests + 1) * ratio + 1);
            assert.ok(ahead <= 0 || capacity + ahead <= limits.maxConnections);
          } else if (kind === 'cancel') {
            const waiting = pick(
              bench.requests.filter(({ state }) => state === 'waiting'),
              which,
            );
            if (waiting?.host.pools.default.cancel(waiting)) waiting.state = 'over';
          } else {
            const isConnecting = kind === 'accept' || kind === 'refuse';
            const live = bench.sockets.filter((socket) => (isConnecting ? socket.isConnecting : socket.isOpen));
            const socket = pick(live, which);
            if (kind === 'accept') socket?.accept();
            else if (kind === 'refuse') socket?.refuse();
            else if (kind === 'lose') socket?.reset();
            else socket?.send(ANSWER);
          }
          assert.deepEqual(forecast!.totals, {
            requests: sum((host) => streamPool(host).requestCount),
            capacity: sum((host) => streamPool(host).size),
          });
        }
        bench.cluster.close();
        assert.deepEqual(forecast!.totals, { requests: 0, capacity: 0 });
      }),
    );
  });
});
