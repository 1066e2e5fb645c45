// The clusters of a worker over the updates that main publishes: which of them stay, what happens to the connections of
// those that do not, and when the worker confirms.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Cluster } from '../../../../src/data-plane/upstream/cluster.ts';
import { ClusterMap } from '../../../../src/data-plane/upstream/cluster-map.ts';
import {
  type ClusterSnapshot,
  type HostSnapshot,
  type HostsUpdate,
  packClusters,
  packTls,
  type UpstreamTlsSettings,
} from '../../../../src/snapshot/index.ts';
import { ANSWER, UpstreamRequest } from '../../../support/upstream-request.ts';
import { upstreamTls } from '../../../support/upstream-tls.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../support/upstream-workers.ts';

class Bench {
  readonly sockets: FakeUpstreamSocket[] = [];
  readonly workers = new UpstreamWorkers(1, (socket) => void this.sockets.push(socket));
  readonly map = new ClusterMap(this.workers.contexts[0]!);
  /** Names of the updates that the worker has confirmed, in order. */
  readonly confirmed: string[] = [];

  get cluster(): Cluster {
    return this.map.get('web')!;
  }

  update(name: string, updated: readonly ClusterSnapshot[], removed: readonly string[] = []): void {
    this.map.update(packClusters(updated), removed, () => this.confirmed.push(name));
  }

  /** A request on a new connection to the cluster's first host. */
  request(): { request: UpstreamRequest; socket: FakeUpstreamSocket } {
    const request = new UpstreamRequest();
    this.cluster.hosts[0]!.pools.default.newStream(request);
    const socket = this.sockets.at(-1)!;
    socket.accept();
    return { request, socket };
  }

  /** A connection that waits for its next request. */
  idle(): FakeUpstreamSocket {
    const { request, socket } = this.request();
    socket.send(ANSWER);
    assert.equal(request.outcome, 'answered');
    return socket;
  }

  /** Whatever the worker does by itself at once. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await null;
  }
}

test('a cluster is there from its update to its removal', async () => {
  const bench = new Bench();
  assert.equal(bench.map.get('web'), undefined);
  bench.update('first', [bench.workers.cluster(2, {})]);
  assert.equal(bench.cluster.name, 'web');
  assert.equal(bench.cluster.hosts.length, 2);
  bench.update('second', [], ['unknown', 'web']);
  assert.equal(bench.map.get('web'), undefined);
  await bench.settle();
  assert.deepEqual(bench.confirmed, ['first', 'second']);
});

test('an update of members alone keeps the cluster, its hosts and their connections', async () => {
  const bench = new Bench();
  const snapshot = bench.workers.cluster(2, {});
  bench.update('first', [snapshot]);
  const { cluster } = bench;
  const [first, second] = cluster.hosts;
  const socket = bench.idle();
  const renamed = { ...snapshot.hosts[0]!, hostname: 'one.example', canary: true };
  bench.update('second', [{ ...structuredClone(snapshot), hosts: [renamed] }]);
  assert.equal(bench.cluster, cluster);
  assert.deepEqual(cluster.hosts, [first]);
  assert.deepEqual([first!.hostname, first!.canary], ['one.example', true]);
  assert.ok(socket.isLive);
  await bench.settle();
  bench.update('third', [snapshot]);
  assert.equal(cluster.hosts[0], first);
  assert.notEqual(cluster.hosts[1], second);
  await bench.settle();
  assert.ok(socket.isLive);
  assert.deepEqual(bench.confirmed, ['first', 'second', 'third']);
});

for (const isOpened of [true, false]) {
  test(`another share to be dropped reaches a cluster that ${isOpened ? 'serves' : 'nobody has asked for'}`, async () => {
    const bench = new Bench();
    bench.update('all', [bench.workers.cluster(1, {})]);
    if (isOpened) assert.equal(bench.cluster.shedding.reason(), null);
    const cluster = isOpened ? bench.cluster : undefined;
    const update = { cluster: 'web', hostLists: 0, order: null, hosts: [], health: [], amendment: null };
    bench.map.updateHosts({ ...update, dropShare: { numerator: 100, denominator: 100 } }, () => {});
    bench.map.updateHosts(update, () => {});
    assert.equal(bench.cluster.shedding.reason(), 'drop-overload');
    assert.deepEqual(bench.cluster.settings.dropShare, { numerator: 100, denominator: 100 });
    if (cluster !== undefined) assert.equal(bench.cluster, cluster);
  });

  test(`what has changed about members reaches a cluster that ${isOpened ? 'serves' : 'nobody has asked for'}`, async () => {
    const bench = new Bench();
    const snapshot = bench.workers.cluster(3, {});
    const [first, second, third] = snapshot.hosts.map(({ recordAddress }) => recordAddress);
    bench.update('all', [snapshot]);
    if (isOpened) assert.equal(bench.cluster.hosts.length, 3);
    const change = (name: string, update: Omit<HostsUpdate, 'cluster' | 'hostLists' | 'amendment'>): void =>
      bench.map.updateHosts({ cluster: 'web', hostLists: 0, amendment: null, ...update }, () =>
        bench.confirmed.push(name),
      );
    const renamed = { ...snapshot.hosts[1]!, hostname: 'two.example' };
    change('renamed', { order: null, hosts: [renamed], health: [] });
    change('fewer', { order: [third!, second!], hosts: [], health: [] });
    change('again', { order: [second!, third!], hosts: [{ ...renamed, canary: true }], health: [third!] });
    await bench.settle();
    assert.deepEqual(bench.confirmed.toSorted(), ['again', 'all', 'fewer', 'renamed']);
    const { hosts } = bench.cluster;
    assert.deepEqual(
      hosts.map(({ record, hostname, canary }) => [record, hostname, canary]),
      [
        [second, 'two.example', true],
        [third, '', false],
      ],
    );
    assert.ok(!hosts.some(({ record }) => record === first));
    bench.map.updateHosts({ cluster: 'gone', hostLists: 0, order: [], hosts: [], health: [], amendment: null }, () => {
      bench.confirmed.push('gone');
    });
    assert.equal(bench.confirmed.at(-1), 'gone');
  });
}

test('a host that has left and come again is another one, also when one update does both', async () => {
  const bench = new Bench();
  const snapshot = bench.workers.cluster(1, {});
  bench.update('first', [snapshot]);
  const [before] = bench.cluster.hosts;
  const socket = bench.idle();
  const { recordAddress, statBlock } = bench.workers.cluster(1, {}).hosts[0]!;
  bench.update('second', [{ ...snapshot, hosts: [{ ...snapshot.hosts[0]!, recordAddress, statBlock }] }]);
  assert.notEqual(bench.cluster.hosts[0], before);
  assert.equal(bench.cluster.hosts[0]!.record, recordAddress);
  assert.ok(!socket.isLive);
  await bench.settle();
  assert.deepEqual(bench.confirmed, ['first', 'second']);
});

for (const [change, update] of Object.entries({
  'has other settings': (bench: Bench, snapshot: ClusterSnapshot) =>
    bench.update('change', [{ ...snapshot, settings: { ...snapshot.settings, connectTimeoutMs: 1 } }]),
  'is removed': (bench: Bench) => bench.update('change', [], ['web']),
})) {
  test(`a cluster that ${change} ends idle connections at once, busy ones after their request, and confirms then`, async () => {
    const bench = new Bench();
    const snapshot = bench.workers.cluster(1, {});
    bench.update('first', [snapshot]);
    const busy = bench.request();
    const idle = bench.idle();
    const before = bench.cluster;
    update(bench, snapshot);
    assert.notEqual(bench.map.get('web'), before);
    assert.ok(!idle.isLive);
    assert.ok(busy.socket.isOpen);
    await bench.settle();
    assert.deepEqual(bench.confirmed, ['first']);
    busy.socket.send(ANSWER);
    assert.equal(busy.request.outcome, 'answered');
    assert.ok(!busy.socket.isLive);
    await bench.settle();
    assert.deepEqual(bench.confirmed, ['first', 'change']);
  });
}

test('an update of several clusters is confirmed once, when the last of what they left is unused', async () => {
  const bench = new Bench();
  const snapshot = bench.workers.cluster(3, {});
  bench.update('first', [snapshot]);
  const requests = [0, 1].map((host) => {
    const request = new UpstreamRequest();
    bench.cluster.hosts[host]!.pools.default.newStream(request);
    bench.sockets.at(-1)!.accept();
    return request;
  });
  const other = bench.workers.cluster(1, { name: 'other' });
  bench.update('second', [{ ...snapshot, hosts: [] }, other]);
  for (const socket of bench.sockets) {
    await bench.settle();
    assert.deepEqual(bench.confirmed, ['first']);
    socket.send(ANSWER);
  }
  await bench.settle();
  assert.deepEqual(bench.confirmed, ['first', 'second']);
  assert.ok(requests.every(({ outcome }) => outcome === 'answered'));
});

test('what a cluster has named at run time goes with it, and not with a predecessor', async () => {
  const bench = new Bench();
  const { stats } = bench.workers.contexts[0]!;
  const counter = (): object => stats.dynamicCounter('cluster.web.', 'upstream_rq_200');
  const snapshot = bench.workers.cluster(1, {});
  bench.update('first', [snapshot]);
  bench.cluster.responseCodes.all.count(200);
  const first = counter();
  bench.update('replaced', [{ ...snapshot, settings: { ...snapshot.settings, connectTimeoutMs: 1 } }]);
  await bench.settle();
  assert.equal(counter(), first);
  bench.update('removed', [], ['web']);
  await bench.settle();
  assert.deepEqual(bench.confirmed, ['first', 'replaced', 'removed']);
  assert.notEqual(counter(), first);
});

test('all connections of all clusters end with the worker', () => {
  const bench = new Bench();
  bench.update('both', [bench.workers.cluster(1, { name: 'other' }), bench.workers.cluster(2, {})]);
  const sockets = [bench.idle(), bench.request().socket];
  const other = new UpstreamRequest();
  bench.map.get('other')!.hosts[0]!.pools.default.newStream(other);
  sockets.push(bench.sockets.at(-1)!);
  bench.map.close();
  assert.ok(sockets.every(({ isLive }) => !isLive));
  assert.equal(other.outcome, 'connection termination');
});

for (const [size, hostCount, isReadAtOnce] of [
  ['of few hosts is read when it is asked for', 64, false],
  ['of many hosts is read with its update, so that no request waits for it', 65, true],
] as const) {
  test(`a cluster ${size}`, () => {
    const bench = new Bench();
    const [packed] = packClusters([bench.workers.cluster(hostCount, {})]);
    bench.map.update([packed!], [], () => {});
    Buffer.from(packed!.bytes).fill(0);
    if (isReadAtOnce) assert.equal(bench.cluster.hosts.length, hostCount);
    else assert.throws(() => bench.cluster, SyntaxError);
  });
}

test('a cluster that was replaced before anybody has asked for it is the new one', () => {
  const bench = new Bench();
  bench.update('first', [bench.workers.cluster(1, {})]);
  bench.update('second', [bench.workers.cluster(2, {})]);
  assert.equal(bench.cluster.hosts.length, 2);
  assert.deepEqual(bench.confirmed, ['first', 'second']);
});

for (const isOpened of [true, false]) {
  test(`hosts on demand that come and go reach a cluster that ${isOpened ? 'serves' : 'nobody has asked for'}`, async () => {
    const bench = new Bench();
    const whole = bench.workers.cluster(4, { originalDst: { header: null, port: 0 } });
    const [first, second, third, fourth] = whole.hosts;
    bench.update('all', [{ ...whole, hosts: [first!, second!] }]);
    if (isOpened) assert.equal(bench.cluster.hosts.length, 2);
    const amend = (name: string, joined: readonly HostSnapshot[], gone: readonly number[]): void => {
      const update = { cluster: 'web', hostLists: 0, order: null, hosts: [], health: [], amendment: { joined, gone } };
      bench.map.updateHosts(update, () => bench.confirmed.push(name));
    };
    amend('third', [third!], []);
    amend('first', [], [first!.recordAddress]);
    // It may have begun with what it is told.
    amend('known', [second!, fourth!], [first!.recordAddress]);
    await bench.settle();
    assert.deepEqual(bench.confirmed.toSorted(), ['all', 'first', 'known', 'third']);
    assert.deepEqual(
      bench.cluster.hosts.map(({ record }) => record),
      [second, third, fourth].map((host) => host!.recordAddress),
    );
    const context = bench.cluster.destinations!.contextOf(null, {
      originalDestination: { ip: '127.0.0.1', port: 3 },
      requestedServerName: '',
    });
    const { promise, resolve } = Promise.withResolvers<string>();
    const user = { onHost: ({ label }: { readonly label: string }) => resolve(label), onNoHost: resolve };
    bench.cluster.destinations!.choose(context, bench.cluster.breaker, user);
    assert.equal(await promise, '127.0.0.1:3');
  });
}

/** With its server name alone to tell it from others. */
function secured(serverName: string): UpstreamTlsSettings {
  return upstreamTls({ sni: serverName });
}

test('a cluster is secured by what came last, whether it is in use by then or not', () => {
  const bench = new Bench();
  const plain = bench.workers.cluster(1, {});
  const matches = [
    { name: 'plain', criteria: [] },
    { name: 'tls', criteria: [], tls: secured('a.match') },
  ];
  const settings = { ...plain.settings, tls: secured('a.example'), transportSocketMatches: matches };
  const snapshot = { ...plain, tlsBlock: 0, tlsFactoryBlock: 0, settings };
  const names = (): unknown[] => {
    const { tls, transportSocketMatches } = bench.cluster.settings;
    return [tls?.serverName, ...transportSocketMatches!.map((match) => match.tls?.serverName)];
  };
  const secure = (place: number, serverName: string): void =>
    bench.map.secure('web', [{ index: place, tls: packTls(secured(serverName)) }]);
  bench.update('first', [snapshot]);
  secure(0, 'b.example');
  secure(2, 'b.match');
  assert.deepEqual(names(), ['b.example', undefined, 'b.match']);
  const { cluster } = bench;
  assert.equal(cluster.tlsOf(undefined), null);
  secure(0, 'c.example');
  secure(2, 'c.match');
  assert.deepEqual(names(), ['c.example', undefined, 'c.match']);
  // Main knows of it, too: what it says of members later is no reason for another cluster.
  const known = { ...settings, tls: secured('c.example') };
  bench.update('second', [
    {
      ...snapshot,
      settings: { ...known, transportSocketMatches: [matches[0]!, { ...matches[1]!, tls: secured('c.match') }] },
    },
  ]);
  assert.equal(bench.cluster, cluster);
  bench.map.secure('gone', []);
});
