// One cluster with all who keep it up to date: what waits for what, what the workers are told when, what ends with it.

import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { WeirError } from '../../../../src/base/errors.ts';
import { SystemCalls } from '../../../../src/base/system-calls.ts';
import { HealthFlag } from '../../../../src/wasm/shared-memory.ts';
import { clusterSettings, type JsonObject } from '../../../support/bootstrap.ts';
import { DnsServer } from '../../../support/dns-server.ts';
import { eventually } from '../../../support/eventually.ts';
import { answer, HealthServer } from '../../../support/health-server.ts';
import {
  CHECK,
  clusterAt,
  dnsCluster,
  inZone,
  ManagedClusters,
  WATCHED,
  zoned,
} from '../../../support/managed-clusters.ts';
import { isOpenFile } from '../../../support/open-files.ts';

const WINDOW_MS = 1000;
const isInPanic = (fixture: ManagedClusters): boolean => {
  const source = fixture.lists();
  return source.kind === 'shares' && source.shares.some(({ isPanic }) => isPanic);
};

const ON_DEMAND: JsonObject = {
  name: 'web',
  type: 'ORIGINAL_DST',
  lb_policy: 'CLUSTER_PROVIDED',
  cleanup_interval: '5s',
};

const TWO_ZONES = [inZone('a', 1, 2, 3), inZone('b', 4, 5, 6)];

describe('a cluster that is kept up to date', () => {
  it('makes members on demand, once each, and takes those back that nobody uses', async () => {
    const settings = clusterSettings(ON_DEMAND);
    using fixture = new ManagedClusters([settings]);
    const { manager, clock, published } = fixture;
    const want = (port: number): boolean =>
      manager.hostWanted('web', { kind: 'ip', ip: '127.0.0.1', port }) === undefined;
    await manager.start();
    fixture.set({ 'upstream.original_dst.max_hosts': '2' });
    const untilPublished = (count: number): Promise<void> =>
      eventually(() => published.length === count, `${count} publications`);
    assert.deepEqual([want(1), want(1)], [true, true]);
    await untilPublished(1);
    assert.deepEqual([want(2), want(3)], [true, false]);
    await untilPublished(2);
    assert.deepEqual(fixture.ports(), [1, 2]);
    assert.equal(fixture.messages.filter((message) => message.includes('makes no more on demand')).length, 1);
    // Nobody could use the second one: not all workers know it.
    published[0]!.applied();
    for (let cleanups = 0; cleanups < 2; cleanups++) clock.turn(5000);
    assert.deepEqual([fixture.ports(), published.length], [[2], 3]);
    assert.ok(manager.put(settings, '') === false);
    assert.deepEqual(fixture.ports(), [2]);
    published[1]!.applied();
    for (let cleanups = 0; cleanups < 2; cleanups++) clock.turn(5000);
    assert.deepEqual([fixture.ports(), published.length], [[], 4]);
    assert.equal(fixture.value('cluster_manager.cluster_updated'), 4);
    assert.deepEqual(
      fixture.messages.filter((message) => message.includes('less')),
      ['1 hosts: 1 more, 0 less', '2 hosts: 1 more, 0 less', '1 hosts: 0 more, 1 less', '0 hosts: 0 more, 1 less'].map(
        (change) => `cluster web has ${change}`,
      ),
    );
    manager.stop();
    assert.deepEqual([want(3), clock.timerCount], [false, 0]);
  });

  it('checks members on demand while it has them', async () => {
    await using server = await HealthServer.start(answer(200));
    using fixture = new ManagedClusters([clusterSettings({ ...ON_DEMAND, health_checks: [CHECK] })]);
    const { manager, clock, published } = fixture;
    await manager.start();
    const idle = clock.timerCount;
    manager.hostWanted('web', { kind: 'ip', ip: '127.0.0.1', port: server.port });
    await eventually(() => published.length > 0, 'a member');
    await eventually(() => fixture.hosts()[0]!.lastCheck?.hasPassed === true, 'a check');
    assert.equal(clock.timerCount, idle + 1);
    published[0]!.applied();
    for (let cleanups = 0; cleanups < 2; cleanups++) clock.turn(5000);
    assert.deepEqual([fixture.ports(), clock.timerCount], [[], idle]);
  });

  it('tells others of each member on demand where it is the local one', async () => {
    using fixture = new ManagedClusters([zoned('web', TWO_ZONES), clusterSettings({ ...ON_DEMAND, name: 'proxies' })]);
    const { manager, published } = fixture;
    await manager.start();
    fixture.clock.turn(2 * WINDOW_MS);
    manager.hostWanted('proxies', { kind: 'ip', ip: '127.0.0.1', port: 1 });
    await eventually(() => published.length > 1, 'both publications');
    assert.deepEqual(
      published.map(({ snapshot }) => snapshot.settings.name),
      ['proxies', 'web'],
    );
  });

  it('makes none on demand where they are configured, and hears of no failures that nobody looks for', () => {
    using fixture = new ManagedClusters([clusterAt([1])]);
    const { manager } = fixture;
    assert.equal(manager.hostWanted('web', { kind: 'ip', ip: '127.0.0.1', port: 2 }), 'overflow');
    manager.hostFailed('web', fixture.hosts()[0]!.recordAddress);
    fixture.eject(0);
    assert.equal(fixture.hosts()[0]!.healthFlags, 0);
  });

  it('looks for its members from its start to its end', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['127.0.0.1']);
    const settings = dnsCluster(server, 80);
    using fixture = new ManagedClusters();
    const { manager } = fixture;
    void manager.start();
    using waiting = new ManagedClusters([settings]);
    assert.equal(waiting.value('cluster.web.update_attempt'), 0);
    manager.put(settings, 'one');
    await eventually(() => fixture.published.length === 1, 'its members');
    // The same once more changes none of what has been found.
    assert.ok(manager.put(settings, 'two'));
    assert.deepEqual([fixture.ports(), manager.dump()[0]!.version], [[80], 'two']);
    manager.remove('web');
    assert.equal(fixture.clock.timerCount, 0);
  });

  it('has the lists that the runtime asks for when it starts, and publishes nothing before', async () => {
    using fixture = new ManagedClusters([clusterAt([1, 2, 3], {}, { health_status: 'UNHEALTHY' })]);
    assert.ok(isInPanic(fixture));
    fixture.set({ 'upstream.healthy_panic_threshold': '0' });
    assert.ok(!isInPanic(fixture));
    assert.equal(fixture.published.length, 0);
    await fixture.manager.start();
    assert.equal(fixture.published.length, 0);
  });

  it('keeps what changes while it warms to itself until it is warm', async () => {
    await using server = await HealthServer.start(() => {});
    using fixture = new ManagedClusters([clusterAt([server.port], { health_checks: [CHECK] })]);
    const { manager, published, clock } = fixture;
    const isWarm = manager.start();
    await eventually(() => server.received.length === 1, 'a check');
    fixture.set({ 'upstream.healthy_panic_threshold': '0' });
    assert.equal(published.length, 0);
    const updates = fixture.value('cluster_manager.cluster_updated');
    // The check fails as it began: nothing is news but the runtime.
    clock.turn(WINDOW_MS);
    await isWarm;
    assert.equal(published.length, 1);
    assert.ok(!isInPanic(fixture));
    assert.equal(fixture.value('cluster_manager.cluster_updated'), updates + 1);
  });

  it('keeps what it hears of zones while it warms until it is warm', async () => {
    await using server = await HealthServer.start(() => {});
    const endpoints = [inZone('a', server.port), inZone('b', server.port + 1)];
    const checked = zoned('web', endpoints, { health_checks: [{ ...CHECK, no_traffic_interval: '600s' }] });
    using fixture = new ManagedClusters([checked]);
    const { manager, published, clock } = fixture;
    const isWarm = manager.start();
    await eventually(() => server.received.length === 1, 'a check');
    manager.put(zoned('proxies', [inZone('a', 1), inZone('b', 2)]), '');
    const names = (): string[] => published.map(({ snapshot }) => snapshot.settings.name);
    assert.deepEqual(names(), ['proxies', 'proxies']);
    clock.turn(WINDOW_MS);
    await isWarm;
    assert.deepEqual(names(), ['proxies', 'proxies', 'web']);
  });

  it('has the first change wait for nothing that its start has begun, checks or members', async () => {
    await using server = await HealthServer.start(answer(200));
    using fixture = new ManagedClusters([clusterAt([server.port, server.port + 1], { health_checks: [CHECK] })]);
    const { manager, published, clock } = fixture;
    await manager.start();
    assert.equal(published.length, 1);
    manager.hostFailed('web', fixture.hosts()[0]!.recordAddress);
    assert.equal(published.length, 2);
    manager.hostFailed('web', fixture.hosts()[1]!.recordAddress);
    assert.equal(published.length, 2);
    clock.turn(WINDOW_MS);
    assert.equal(published.length, 3);

    await using names = await DnsServer.start();
    names.set('web.test', ['127.0.0.1']);
    using found = new ManagedClusters();
    void found.manager.start();
    found.manager.put(dnsCluster(names, 80, WATCHED), 'one');
    await eventually(() => found.published.length === 1, 'its members');
    found.eject(0);
    assert.equal(found.published.length, 2);
  });

  it('takes along what waits when its members change, and lets go of it at its end', async () => {
    using fixture = new ManagedClusters();
    const { manager, published, clock } = fixture;
    void manager.start();
    manager.put(clusterAt([1, 2, 3], WATCHED), 'one');
    const idle = clock.timerCount;
    fixture.eject(0);
    fixture.eject(1);
    assert.deepEqual([published.length, clock.timerCount], [2, idle + 1]);
    manager.put(clusterAt([1, 2, 3, 4], WATCHED), 'two');
    assert.deepEqual([published.length, clock.timerCount], [3, idle]);
    assert.equal(fixture.value('cluster_manager.update_merge_cancelled'), 1);
    fixture.eject(2);
    assert.equal(clock.timerCount, idle + 1);
    manager.stop();
    assert.equal(clock.timerCount, 0);
  });

  it('lets the weights of hosts grow that come later, or pass their checks again', async () => {
    const slow = { round_robin_lb_config: { slow_start_config: { slow_start_window: '5s' } } };
    using fixture = new ManagedClusters();
    const { manager, clock } = fixture;
    void manager.start();
    manager.put(clusterAt([1, 2], { ...slow, ...WATCHED }), 'one');
    clock.turn(6000);
    const idle = clock.timerCount;
    manager.put(clusterAt([1, 2, 3], { ...slow, ...WATCHED }), 'two');
    assert.equal(clock.timerCount, idle + 1);
    clock.turn(6000);
    assert.equal(clock.timerCount, idle);
    const [host] = fixture.hosts();
    for (const isSet of [true, false]) host!.setHealthFlags(HealthFlag.failedActiveHealthCheck, isSet);
    fixture.eject(1);
    assert.equal(clock.timerCount, idle + 1);
  });

  it('follows the members of the local cluster and their health, where it goes by zone', async () => {
    const weighed = { common_lb_config: { locality_weighted_lb_config: {} } };
    const proxies = zoned('proxies', [inZone('a', 1), inZone('b', 2)], WATCHED);
    using fixture = new ManagedClusters([zoned('web', TWO_ZONES), zoned('weighed', TWO_ZONES, weighed), proxies]);
    await fixture.manager.start();
    const zones = () => {
      const lists = fixture.lists();
      return lists.kind === 'zones' ? lists.isPanic : lists.kind;
    };
    assert.equal(zones(), false);
    for (const index of [0, 1]) fixture.eject(index, 'proxies');
    // A window of theirs, and one of those who follow them.
    for (let windows = 0; windows < 2; windows++) fixture.clock.turn(WINDOW_MS);
    assert.equal(zones(), true);
    const names = new Set(fixture.published.map(({ snapshot }) => snapshot.settings.name));
    assert.deepEqual([...names].toSorted(), ['proxies', 'web']);
  });

  it('says of each change of health why, and how many members there are', async () => {
    await using server = await HealthServer.start(answer(200));
    const { port } = server;
    using fixture = new ManagedClusters();
    const { manager, messages, clock } = fixture;
    void manager.start();
    const told = (): string[] => messages.splice(0).filter((message) => message.includes('health flags'));
    manager.put(clusterAt([port], { health_checks: [CHECK] }), 'one');
    await eventually(() => fixture.published.length === 1, 'a warm cluster');
    assert.deepEqual(told(), [`cluster web: host 127.0.0.1:${port} has health flags 0x0: passed by http, HTTP 200`]);
    server.behaviour = answer(503);
    clock.turn(60_000);
    await eventually(() => fixture.hosts()[0]!.healthFlags !== 0, 'a failure');
    assert.deepEqual(told(), [`cluster web: host 127.0.0.1:${port} has health flags 0x1: failed by http, HTTP 503`]);
    manager.put(clusterAt([1, 2], WATCHED), 'two');
    manager.put(clusterAt([1, 2, 3], WATCHED), 'three');
    assert.ok(messages.includes('cluster web has 3 hosts, before 2'));
    fixture.eject(0);
    assert.match(told().join(), /^cluster web: host 127.0.0.1:1 has health flags 0x[0-9a-f]+: not checked$/);
  });

  it('goes on as it is where there is no memory for what has changed', async () => {
    using fixture = new ManagedClusters();
    const { manager, messages, published } = fixture;
    void manager.start();
    manager.put(clusterAt([1, 2, 3], WATCHED), 'one');
    const before = fixture.lists();
    const { heap } = fixture.stats.owner;
    assert.throws(() => {
      for (;;) heap.allocate(128);
    });
    fixture.eject(0);
    assert.deepEqual([fixture.lists(), published.length], [before, 1]);
    assert.match(messages.at(-1)!, /^cluster web is picked from as before: .*shared memory is full/);
  });

  it('keeps its members where there is no memory for those that are found', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['127.0.0.1']);
    using fixture = new ManagedClusters([dnsCluster(server, 80)]);
    const { manager, messages, clock } = fixture;
    await manager.start();
    server.set('web.test', ['127.0.0.2']);
    fixture.stats.owner.recordAllocator.allocateHost = () => {
      throw new WeirError('WEIR_SHARED_MEMORY_FULL', 'nothing left');
    };
    clock.turn(5000);
    await eventually(() => messages.includes('cluster web keeps its 1 hosts: nothing left'), 'a line');
    assert.deepEqual(fixture.ports(), [80]);
  });

  it('is not had at all where there is no memory for its members', () => {
    using fixture = new ManagedClusters();
    fixture.stats.owner.recordAllocator.allocateHost = () => {
      throw new WeirError('WEIR_SHARED_MEMORY_FULL', 'nothing left');
    };
    assert.throws(() => fixture.manager.addStatic(clusterAt([1])), { code: 'WEIR_SHARED_MEMORY_FULL' });
  });

  it('checks nobody any more whom it has dropped for a failure', async () => {
    await using leaving = await HealthServer.start(answer(200));
    await using staying = await HealthServer.start(answer(200));
    using fixture = new ManagedClusters();
    const { manager, published, clock } = fixture;
    const at = (...servers: HealthServer[]) =>
      clusterAt(
        servers.map(({ port }) => port),
        { health_checks: [CHECK] },
      );
    void manager.start();
    manager.put(at(leaving, staying), 'one');
    await eventually(() => published.length === 1, 'a warm cluster');
    manager.put(at(staying), 'two');
    assert.deepEqual(fixture.ports().length, 2);
    leaving.behaviour = answer(503);
    clock.turn(60_000);
    await eventually(() => fixture.ports().length === 1, 'the end of one');
    assert.equal(clock.timerCount, 1);
  });

  it('records no more than the time that its changes take', async () => {
    using fixture = new ManagedClusters([clusterSettings({ ...ON_DEMAND, name: 'demand' })]);
    const { manager, published } = fixture;
    await manager.start();
    manager.put(clusterAt([1]), 'one');
    manager.put(clusterAt([1, 2]), 'two');
    manager.hostWanted('demand', { kind: 'ip', ip: '127.0.0.1', port: 1 });
    await eventually(() => published.length === 3, 'all publications');
    const { store } = fixture.stats;
    await store.mergeHistograms();
    const longest: (number | undefined)[] = [];
    for await (const batch of store.histograms()) {
      const found = batch.filter(({ name }) => name.endsWith('update_duration'));
      longest.push(...found.map((histogram) => histogram.quantiles('cumulative', [1])[0]));
    }
    // The clock stands still.
    assert.deepEqual(longest, [0, 0]);
  });

  it('asks for system calls where its sockets begin with options, and does not begin without them', (t) => {
    using fixture = new ManagedClusters();
    const open = t.mock.method(SystemCalls, 'open', () => undefined);
    const { manager } = fixture;
    const source_address = { address: '127.0.0.9', port_value: 0 };
    const from = (fields: JsonObject = {}) =>
      clusterAt([1], { health_checks: [CHECK], upstream_bind_config: { source_address, ...fields } });
    assert.ok(manager.put(from(), 'one'));
    assert.equal(open.mock.callCount(), 0);
    const socket_options = [{ level: 0, name: 2, int_value: 7, state: 'STATE_PREBIND' }];
    assert.throws(() => manager.put(from({ socket_options }), 'two'), {
      code: 'WEIR_SOCKET_OPTIONS',
      message: /^cluster web/,
    });
  });

  for (const [name, fields] of Object.entries({
    'an address': {},
    'an address, with options': { socket_options: [{ level: 0, name: 2, int_value: 7, state: 'STATE_PREBIND' }] },
  })) {
    it(`checks its members from ${name}`, async () => {
      await using server = await HealthServer.start(answer(200));
      using fixture = new ManagedClusters();
      void fixture.manager.start();
      const upstream_bind_config = { source_address: { address: '127.0.0.9', port_value: 0 }, ...fields };
      fixture.manager.put(clusterAt([server.port], { health_checks: [CHECK], upstream_bind_config }), 'one');
      await eventually(() => fixture.published.length === 1, 'a warm cluster');
      assert.deepEqual(server.clients, ['127.0.0.9']);
    });
  }

  it('closes its file of events when no worker uses it any more', async (t) => {
    const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-managed-')));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'events');
    await using server = await HealthServer.start(answer(200));
    using fixture = new ManagedClusters();
    const { manager, published, removed } = fixture;
    void manager.start();
    manager.put(clusterAt([server.port], { health_checks: [{ ...CHECK, event_log_path: file }] }), 'one');
    await eventually(() => published.length === 1, 'a warm cluster');
    assert.ok(isOpenFile(file));
    manager.remove('web');
    assert.ok(isOpenFile(file));
    removed[0]!();
    await eventually(() => !isOpenFile(file), 'the end of the file');
  });
});
