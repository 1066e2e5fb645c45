// Connections to a host that belong to one client: whose they are, when they end, and what is left of them.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { DownstreamConnection } from '../../../../src/data-plane/network/downstream-connection.ts';
import type { Host } from '../../../../src/data-plane/upstream/host.ts';
import { ClientPools } from '../../../../src/data-plane/upstream/pool/client-pools.ts';
import { HostPools } from '../../../../src/data-plane/upstream/pool/host-pools.ts';
import { ClusterPriority } from '../../../../src/wasm/shared-memory.ts';
import { ANSWER, UpstreamRequest } from '../../../support/upstream-request.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../support/upstream-workers.ts';

const { default: byDefault, high } = ClusterPriority;

function client(): DownstreamConnection {
  return new DownstreamConnection({} as Socket, 0, 1024);
}

class Bench {
  readonly sockets: FakeUpstreamSocket[] = [];
  readonly workers = new UpstreamWorkers(1, (socket) => void this.sockets.push(socket));
  readonly snapshot = this.workers.cluster(1, { poolsPerClient: true });
  readonly cluster = this.workers.open(0, this.snapshot);
  readonly host: Host = this.cluster.hosts[0]!;

  request(downstream: DownstreamConnection | null, priority: ClusterPriority = byDefault): UpstreamRequest {
    const request = new UpstreamRequest();
    this.host.poolFor(priority, downstream).newStream(request);
    return request;
  }

  /** The host leaves. @returns told when nothing uses it any more. */
  leave(): { isUnused: boolean } {
    const state = { isUnused: false };
    this.host.retire(() => {
      state.isUnused = true;
    });
    return state;
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await null;
}

describe('the connections of a client', () => {
  test('are no other client’s, nor those of requests that belong to nobody', () => {
    const bench = new Bench();
    const [one, other] = [client(), client()];
    const pools = [one, other, null].map((each) => bench.host.poolFor(byDefault, each));
    assert.equal(new Set(pools).size, 3);
    assert.equal(bench.host.poolFor(byDefault, one), pools[0]);
    assert.notEqual(bench.host.poolFor(high, one), bench.host.poolFor(high, null));
  });

  test('close with it when they are idle, and those of others stay', async () => {
    const bench = new Bench();
    const [one, other] = [client(), client()];
    for (const each of [one, other]) bench.request(each);
    for (const socket of bench.sockets) {
      socket.accept();
      socket.send(ANSWER);
    }
    one.closed();
    await settle();
    assert.deepEqual(
      bench.sockets.map(({ isLive }) => isLive),
      [false, true],
    );
    assert.equal(bench.workers.records.activeConnections(bench.host.record), 1);
  });

  test('end after what they carry, or after they are there', async () => {
    const bench = new Bench();
    const one = client();
    bench.request(one);
    bench.request(one, high);
    bench.sockets[0]!.accept();
    one.closed();
    assert.ok(bench.sockets.every(({ isLive }) => isLive));
    bench.sockets[0]!.send(ANSWER);
    bench.sockets[1]!.accept();
    bench.sockets[1]!.send(ANSWER);
    await settle();
    assert.ok(bench.sockets.every(({ isLive }) => !isLive));
  });

  test('are those of all clients once it has gone: nobody would end them', () => {
    const bench = new Bench();
    const one = client();
    one.closed();
    assert.equal(bench.host.poolFor(byDefault, one), bench.host.pools.default);
  });

  test('are renewed with the others when their host has failed', async () => {
    const bench = new Bench();
    bench.request(client());
    bench.sockets[0]!.accept();
    bench.sockets[0]!.send(ANSWER);
    bench.host.renewConnections();
    await settle();
    assert.equal(bench.sockets[0]!.isLive, false);
  });

  test('keep a host that has left in use as long as one carries a request', async () => {
    const bench = new Bench();
    bench.request(client());
    bench.sockets[0]!.accept();
    const state = bench.leave();
    await settle();
    assert.equal(state.isUnused, false);
    bench.sockets[0]!.send(ANSWER);
    await settle();
    assert.equal(state.isUnused, true);
  });

  test('of a client that has gone keep a host in use as long as one carries a request', async () => {
    const bench = new Bench();
    const one = client();
    bench.request(one);
    bench.sockets[0]!.accept();
    one.closed();
    const state = bench.leave();
    await settle();
    assert.equal(state.isUnused, false);
    bench.sockets[0]!.send(ANSWER);
    await settle();
    assert.equal(state.isUnused, true);
  });

  test('of a client that comes to a host which is leaving end after their request', async () => {
    const bench = new Bench();
    const carrying = client();
    bench.request(carrying);
    const state = bench.leave();
    bench.request(client());
    for (const socket of bench.sockets) {
      socket.accept();
      socket.send(ANSWER);
    }
    await settle();
    assert.ok(bench.sockets.every(({ isLive }) => !isLive));
    assert.equal(state.isUnused, true);
  });

  test('end at once with the cluster', async () => {
    const bench = new Bench();
    bench.request(client());
    bench.sockets[0]!.accept();
    bench.cluster.close();
    await settle();
    assert.equal(bench.sockets[0]!.isLive, false);
  });
});

test('nothing is kept of clients that have left', async () => {
  const bench = new Bench();
  const pools = new ClientPools(() => new HostPools((priority) => bench.host.pools.for(priority)));
  for (let n = 0; n < 3; n++) {
    const one = client();
    pools.of(one);
    assert.equal(pools.size, 1);
    one.closed();
    one.closed();
    assert.equal(pools.size, 0);
  }
});

test('what a client has left behind is kept until it has ended', async () => {
  const bench = new Bench();
  const pools = new ClientPools(() => new HostPools((priority) => bench.host.pools.for(priority)));
  const one = client();
  const request = new UpstreamRequest();
  pools.of(one).for(byDefault).newStream(request);
  bench.sockets[0]!.accept();
  one.closed();
  pools.of(client());
  assert.equal(pools.size, 2);
  bench.sockets[0]!.send(ANSWER);
  await settle();
  pools.forgetUnused();
  assert.equal(pools.size, 1);
});
