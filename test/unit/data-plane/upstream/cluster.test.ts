// One cluster in a worker: which host a request gets, when connections are renewed, and under which names it counts.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RandomSequence } from '../../../../src/base/random.ts';
import type { RouteRequest } from '../../../../src/data-plane/route/route-request.ts';
import { Cluster } from '../../../../src/data-plane/upstream/cluster.ts';
import { contextFor, RequestHash } from '../../../../src/data-plane/upstream/load-balancer/pick-context.ts';
import { RetiredHosts } from '../../../../src/data-plane/upstream/retired-hosts.ts';
import type { LoadBalancingPolicy } from '../../../../src/snapshot/index.ts';
import { HTTP1_STATS } from '../../../../src/stats/index.ts';
import { ClusterCount, ClusterPriority } from '../../../../src/wasm/shared-memory.ts';
import { type ClusterOverrides, DataPlaneFixture, loopback } from '../../../support/data-plane.ts';
import { DEFAULT_HASHING } from '../../../support/lb.ts';
import { retrySettings } from '../../../support/routes.ts';
import { ANSWER, UpstreamRequest } from '../../../support/upstream-request.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../support/upstream-workers.ts';

const HASHED: readonly LoadBalancingPolicy[] = ['RING_HASH', 'MAGLEV'];
const OTHERS: readonly LoadBalancingPolicy[] = ['ROUND_ROBIN', 'RANDOM', 'LEAST_REQUEST'];
const HOSTS = 8;

/** A cluster with lists of its hosts, as main makes them. */
function balanced(hostCount: number, overrides: ClusterOverrides): Cluster {
  const addresses = Array.from({ length: hostCount }, (_, index) => loopback(index + 1));
  const proxy = new DataPlaneFixture({ random: new RandomSequence(1) });
  const snapshot = proxy.cluster('web', addresses, overrides);
  const cluster = new Cluster(proxy.context, snapshot);
  cluster.updateHosts(snapshot, new RetiredHosts(() => {}));
  return cluster;
}

function chosen(cluster: Cluster, hash: RequestHash | null): number {
  const hosts = new Set(Array.from({ length: 10 * HOSTS }, () => cluster.chooseHost(hash)));
  assert.ok([...hosts].every((host) => host !== null && cluster.hosts.includes(host)));
  return hosts.size;
}

describe('requests of one hash', () => {
  const hash = new RequestHash(null);
  hash.add(0x12345678, 0x0abcdef0);

  for (const lbPolicy of [...HASHED, ...OTHERS]) {
    const isHashed = HASHED.includes(lbPolicy);
    test(`go to ${isHashed ? 'one host, others to any' : 'any host, and need none'} with ${lbPolicy}`, () => {
      const cluster = balanced(HOSTS, { lbPolicy });
      assert.equal(cluster.isHashed, isHashed);
      assert.equal(chosen(cluster, hash) === 1, isHashed);
      assert.ok(chosen(cluster, null) > 1);
    });
  }
});

test('requests of one hash go elsewhere when their host has more than its share of all that run', () => {
  const workers = new UpstreamWorkers(1, () => {});
  const hashing = { ...DEFAULT_HASHING, balancePercent: 100 };
  const snapshot = workers.balanced(workers.cluster(2, { lbPolicy: 'RING_HASH', hashing }));
  const cluster = workers.open(0, snapshot);
  const hash = new RequestHash(null);
  hash.add(0x12345678, 0x0abcdef0);
  const preferred = cluster.chooseHost(hash)!;
  const { records } = workers;
  const add = (priority: ClusterPriority, n: number): void =>
    void records.addClusterCount(snapshot.recordAddress, priority, ClusterCount.requests, n);
  records.addActiveRequests(preferred.record, 2);
  for (const priority of [ClusterPriority.default, ClusterPriority.high]) {
    add(ClusterPriority.default, 1);
    // One request runs, of which a host of two may have one.
    assert.notEqual(cluster.chooseHost(hash), preferred);
    add(priority, 1);
    assert.equal(cluster.chooseHost(hash), preferred);
    add(priority, -1);
    add(ClusterPriority.default, -1);
  }
});

test('a cluster hashes by what it says, or leaves that to routes', () => {
  const workers = new UpstreamWorkers(1, () => {});
  const hasher = (policies: typeof DEFAULT_HASHING.policies) =>
    workers.open(0, workers.cluster(1, { hashing: { ...DEFAULT_HASHING, policies } })).hasher;
  assert.equal(hasher([]), null);
  assert.ok(hasher([{ kind: 'source-ip', isTerminal: false }]) !== null);
});

test('a cluster retries and mirrors by what it says, or leaves that to routes', () => {
  const workers = new UpstreamWorkers(1, () => {});
  const plain = workers.open(0, workers.cluster(1, {}));
  assert.deepEqual([plain.retry, plain.mirrors], [null, null]);
  const mirror = {
    cluster: 'copies',
    clusterHeader: '',
    fraction: { key: '', default: { numerator: 100, denominator: 100 } },
    hostRewrite: '',
    appendsHostSuffix: false,
    headEdits: [],
  };
  const { retry, mirrors } = workers.open(0, workers.cluster(1, { retry: retrySettings(), mirrors: [mirror] }));
  assert.ok(retry !== null);
  assert.deepEqual(
    mirrors!.map((each) => each.clusterFor({ random: 0 } as RouteRequest)),
    ['copies'],
  );
});

test('requests are written and bounded in time as the cluster says, or leave that to others', () => {
  const workers = new UpstreamWorkers(1, () => {});
  const plain = workers.open(0, workers.cluster(1, {}));
  assert.deepEqual([plain.requestForm, plain.maxStreamDurationMs], [null, 0]);
  const requestForm = { hasFullUrl: true, hasProperCase: false };
  const special = workers.open(0, workers.cluster(1, { requestForm, maxStreamDurationMs: 1500 }));
  assert.ok(special.requestForm !== null);
  assert.equal(special.maxStreamDurationMs, 1500);
});

test('requests of each priority have limits of their own', () => {
  const workers = new UpstreamWorkers(1, () => {});
  const cluster = workers.open(0, workers.cluster(1, {}));
  assert.equal(cluster.breakerFor(ClusterPriority.default), cluster.breaker);
  assert.equal(cluster.breakerFor(ClusterPriority.high), cluster.highBreaker);
});

test('zones are minded for the share of requests that the cluster says, unless the runtime says otherwise', (t) => {
  const workers = new UpstreamWorkers(1, () => {});
  const share = t.mock.method(workers.contexts[0]!.runtime, 'share');
  const zoneRouting = { enabledPercent: 40, minClusterSize: 6, forcedFrom: null, goesByWeight: false };
  for (const each of [zoneRouting, null]) workers.open(0, workers.cluster(1, { zoneRouting: each }));
  const asked = share.mock.calls.map(({ arguments: [setting] }) => setting);
  assert.deepEqual(
    asked.filter(({ key }) => key === 'upstream.zone_routing.enabled').map((setting) => setting.default),
    [
      { numerator: 40, denominator: 100 },
      { numerator: 0, denominator: 100 },
    ],
  );
});

describe('a cluster whose requests name their hosts', () => {
  function bench() {
    const workers = new UpstreamWorkers(1, () => {});
    const snapshot = workers.cluster(2, { originalDst: { header: null, port: 0 }, connectTimeoutMs: 3000 });
    const cluster = workers.open(0, { ...snapshot, hosts: snapshot.hosts.slice(0, 1) });
    const told: unknown[] = [];
    const choose = (port: number): void =>
      cluster.destinations!.choose(contextFor({ kind: 'ip', ip: '127.0.0.1', port }), cluster.breaker, {
        onHost: (host) => void told.push(host),
        onNoHost: (reason) => void told.push(reason),
      });
    return { workers, snapshot, cluster, told, choose };
  }

  test('gives them by their addresses, also to those who wait when a host comes', () => {
    const { snapshot, cluster, told, choose } = bench();
    for (const port of [1, 2]) choose(port);
    assert.deepEqual(told, [cluster.hosts[0]]);
    cluster.updateHosts(snapshot, new RetiredHosts(() => {}));
    assert.deepEqual(told, [...cluster.hosts]);
    cluster.updateHosts({ ...snapshot, hosts: [] }, new RetiredHosts(() => {}));
    choose(1);
    assert.equal(told.length, 2);
  });

  test('takes over who comes and who goes, and lets go of those that have gone', async () => {
    const { snapshot, cluster, told, choose } = bench();
    const [first, second] = snapshot.hosts;
    const { hostLists } = snapshot;
    const update = { hostLists, order: null, hosts: [], health: [] };
    let unused = 0;
    const retired = new RetiredHosts(() => void unused++);
    cluster.applyUpdate({ ...update, amendment: { joined: [second!], gone: [] } }, retired);
    assert.deepEqual(
      cluster.hosts.map(({ record }) => record),
      [first!.recordAddress, second!.recordAddress],
    );
    choose(1);
    const [gone] = told;
    cluster.applyUpdate({ ...update, amendment: { joined: [], gone: [first!.recordAddress] } }, retired);
    assert.deepEqual(
      cluster.hosts.map(({ record }) => record),
      [second!.recordAddress],
    );
    for (let turn = 0; turn < 5; turn++) await null;
    assert.equal(unused, 1);
    choose(1);
    assert.deepEqual(told, [gone]);
  });

  test('lets nobody wait for longer than a connection may take', () => {
    const { workers, told, choose } = bench();
    choose(2);
    workers.clock.turn(2900);
    assert.deepEqual(told, []);
    workers.clock.turn(200);
    assert.deepEqual(told, ['none']);
  });

  for (const end of ['retire', 'close'] as const) {
    test(`lets nobody wait behind its end: ${end}`, () => {
      const { cluster, told, choose } = bench();
      choose(2);
      cluster[end](() => {});
      assert.deepEqual(told, ['none']);
    });
  }

  test('is one that was configured so', () => {
    const workers = new UpstreamWorkers(1, () => {});
    assert.equal(workers.open(0, workers.cluster(1, {})).destinations, null);
  });
});

test('hosts stand in the order of the last update', () => {
  const workers = new UpstreamWorkers(1, () => {});
  const snapshot = workers.cluster(3, {});
  const cluster = workers.open(0, snapshot);
  const [first, second, third] = cluster.hosts;
  cluster.updateHosts({ ...snapshot, hosts: snapshot.hosts.toReversed() }, new RetiredHosts(() => {}));
  assert.deepEqual(
    cluster.hosts.map(({ record }) => record),
    [third, second, first].map((host) => host!.record),
  );
});

test('a host that has left is none that comes back, be it in the same place', () => {
  const workers = new UpstreamWorkers(1, () => {});
  const snapshot = workers.cluster(2, {});
  const cluster = workers.open(0, snapshot);
  const [first, second] = cluster.hosts;
  cluster.updateHosts({ ...snapshot, hosts: snapshot.hosts.slice(0, 1) }, new RetiredHosts(() => {}));
  cluster.updateHosts(snapshot, new RetiredHosts(() => {}));
  assert.equal(cluster.hosts[0], first);
  assert.equal(cluster.hosts[1]!.record, second!.record);
  assert.notEqual(cluster.hosts[1], second);
});

test('a request gets no host where the cluster has none', () => {
  assert.equal(balanced(0, {}).chooseHost(null), null);
});

describe('connections of a cluster', () => {
  function bench(closeConnectionsOnHostSetChange: boolean) {
    const sockets: FakeUpstreamSocket[] = [];
    const workers = new UpstreamWorkers(1, (socket) => void sockets.push(socket));
    const snapshot = workers.cluster(3, { closeConnectionsOnHostSetChange });
    const cluster = workers.open(0, { ...snapshot, hosts: snapshot.hosts.slice(0, 2) });
    const [first] = cluster.hosts;
    const request = new UpstreamRequest();
    first!.pools.default.newStream(request);
    sockets[0]!.accept();
    sockets[0]!.send(ANSWER);
    return {
      idle: sockets[0]!,
      setHosts: (...indexes: readonly number[]) => {
        const hosts = indexes.map((index) => snapshot.hosts[index]!);
        cluster.updateHosts({ ...snapshot, hosts }, new RetiredHosts(() => {}));
        assert.equal(cluster.hosts[0], first);
      },
    };
  }

  for (const [change, members] of Object.entries({
    comes: [0, 1, 2],
    leaves: [0],
    'takes the place of another': [0, 2],
  })) {
    test(`are renewed when a host ${change}, where every change of hosts is to do so`, () => {
      for (const isWanted of [true, false]) {
        const { idle, setHosts } = bench(isWanted);
        setHosts(...members);
        assert.equal(idle.isLive, !isWanted);
      }
    });
  }

  test('stay when an update changes no host', () => {
    const { idle, setHosts } = bench(true);
    setHosts(0, 1);
    assert.ok(idle.isLive);
  });
});

test('responses are counted by the name for stats, by origin, class and code', () => {
  const workers = new UpstreamWorkers(1, () => {});
  const { responseCodes } = workers.open(0, workers.cluster(1, { statName: 'shown' }));
  responseCodes.all.count(200);
  for (const codes of [responseCodes.internal, responseCodes.external, responseCodes.canary]) codes.count(503);
  const prefixed = ['internal', 'external', 'canary'].flatMap((origin) =>
    ['completed', '5xx', '503'].map((what) => `cluster.shown.${origin}.upstream_rq_${what}`),
  );
  assert.deepEqual(workers.dynamicStats(), [
    'cluster.shown.upstream_rq_2xx',
    'cluster.shown.upstream_rq_200',
    ...prefixed,
  ]);
});

test('responses are counted by zone where both zones are known, under names that fit into a stat', () => {
  const workers = new UpstreamWorkers(1, () => {});
  const [context] = workers.contexts;
  const cluster = workers.open(0, workers.cluster(1, { statName: 'shown' }));
  assert.equal(cluster.codesOfZone('far'), null);
  Object.assign(context!, { localZone: 'zone:here' });
  assert.equal(cluster.codesOfZone(''), null);
  const codes = cluster.codesOfZone('zone:far');
  assert.equal(cluster.codesOfZone('zone:far'), codes);
  assert.notEqual(cluster.codesOfZone('other'), codes);
  codes!.count(200);
  assert.deepEqual(
    workers.dynamicStats(),
    ['completed', '2xx', '200'].map((what) => `cluster.shown.zone.zone_here.zone_far.upstream_rq_${what}`),
  );
});

test('tries that were followed by a retry have names of their own', () => {
  const workers = new UpstreamWorkers(1, () => {});
  workers.open(0, workers.cluster(1, { statName: 'shown' })).responseCodes.retry.count(503);
  assert.ok(workers.dynamicStats().includes('cluster.shown.retry.upstream_rq_503'));
});

test('the stats of HTTP/1 are there once it is spoken', () => {
  const workers = new UpstreamWorkers(1, () => {});
  const cluster = workers.open(0, workers.cluster(1, { statName: 'shown' }));
  assert.deepEqual(workers.dynamicStats(), []);
  const names = Object.keys(HTTP1_STATS.index).map((name) => `cluster.shown.http1.${name}`);
  for (let times = 0; times < 2; times++) {
    cluster.showHttp1Stats();
    assert.deepEqual(workers.dynamicStats(), names);
  }
});

describe('a cluster in use', () => {
  function bench(hosts = 2) {
    const workers = new UpstreamWorkers(1, () => {});
    const snapshot = workers.cluster(hosts, {});
    const cluster = workers.open(0, snapshot);
    let told = 0;
    return { cluster, retire: () => cluster.retire(() => void told++), told: () => told };
  }

  async function turns(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await null;
  }

  test('is unused when it was retired and every use has ended, in whatever order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 12 }), fc.nat(12), async (steps, retireAt) => {
        const { cluster, retire, told } = bench();
        let uses = 0;
        let wasUnused = false;
        for (let step = 0; step <= Math.max(steps.length, retireAt); step++) {
          if (step === retireAt) retire();
          // Nobody begins to use what is unused.
          if (steps[step] === true && !wasUnused) {
            cluster.acquire();
            uses += 1;
          } else if (uses > 0) {
            cluster.release();
            uses -= 1;
          }
          await turns();
          wasUnused ||= step >= retireAt && uses === 0;
          assert.equal(told(), wasUnused ? 1 : 0);
        }
      }),
      { numRuns: 50 },
    );
  });

  for (const hosts of [0, 2]) {
    test(`is not unused when it is used again in the same turn: ${hosts} hosts`, async () => {
      const { cluster, retire, told } = bench(hosts);
      cluster.acquire();
      retire();
      cluster.release();
      cluster.acquire();
      await turns();
      assert.equal(told(), 0);
      cluster.release();
      await turns();
      assert.equal(told(), 1);
    });
  }

  test('is told of once when two uses have ended in the turn', async () => {
    const { cluster, retire, told } = bench(0);
    retire();
    for (let use = 0; use < 2; use++) {
      cluster.acquire();
      cluster.release();
    }
    await turns();
    assert.equal(told(), 1);
  });
});

test('a snapshot has the same settings when members alone differ', () => {
  const workers = new UpstreamWorkers(1, () => {});
  const snapshot = workers.cluster(2, {});
  const cluster = workers.open(0, snapshot);
  assert.ok(cluster.hasSameSettings({ ...snapshot, hosts: [], hostLists: 8 }));
  assert.ok(!cluster.hasSameSettings({ ...snapshot, settings: { ...snapshot.settings, connectTimeoutMs: 1 } }));
});

test('a choice among subsets is counted', () => {
  const subsets = {
    selectors: [],
    fallback: 'any-host',
    defaultSubset: [],
    weighsLocalities: false,
    scalesLocalityWeights: false,
    panicModeAny: false,
    listAsAny: false,
    takesAlternatives: false,
    allowsRedundantKeys: false,
  } as const;
  const proxy = new DataPlaneFixture();
  const snapshot = proxy.cluster('web', [loopback(1)], { subsets });
  const cluster = new Cluster(proxy.context, snapshot);
  cluster.updateHosts(snapshot, new RetiredHosts(() => {}));
  for (let request = 0; request < 3; request++) assert.ok(cluster.chooseHost(null) !== null);
  assert.equal(proxy.clusterStat('web', 'lb_subsets_fallback'), 3);
});

test('a host that a filter names is one of those that are there', () => {
  const proxy = new DataPlaneFixture();
  const cluster = new Cluster(proxy.context, proxy.cluster('web', [loopback(1)]));
  const asked = { address: '127.0.0.1:2', isStrict: true };
  assert.equal(cluster.overriddenHost(null), undefined);
  for (const ports of [[1], [1, 2], [1]]) {
    const snapshot = proxy.cluster('web', ports.map(loopback));
    cluster.updateHosts(snapshot, new RetiredHosts(() => {}));
    assert.equal(cluster.overriddenHost(asked)?.label, ports.includes(2) ? asked.address : undefined);
  }
});
