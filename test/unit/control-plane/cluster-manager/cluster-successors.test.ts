// Clusters that come, wait for others and go again through their manager: what is told, counted and given back meanwhile.

import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { ManagedCluster } from '../../../../src/control-plane/cluster-manager/managed-cluster.ts';
import type { ChangedContexts } from '../../../../src/control-plane/tls/changed-contexts.ts';
import type { ClusterSettings, UpstreamTlsSettings } from '../../../../src/snapshot/index.ts';
import type { JsonObject } from '../../../support/bootstrap.ts';
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

const ADDRESS = { kind: 'ip', ip: '127.0.0.1', port: 1 } as const;

const statesOf = ({ manager }: ManagedClusters): string[] => manager.dump().map(({ state }) => state);

describe('clusters of one manager', () => {
  it('start when the last of them is warm, however early others are', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['127.0.0.1']);
    const early = { ...clusterAt([1]), name: 'early', statName: 'early' };
    using fixture = new ManagedClusters([early, dnsCluster(server, 80)]);
    assert.deepEqual(statesOf(fixture), ['active', 'warming']);
    assert.deepEqual(
      ['cluster_added', 'active_clusters', 'warming_clusters'].map((name) => fixture.value(`cluster_manager.${name}`)),
      [2, 2, 0],
    );
    let isStarted = false;
    const started = fixture.manager.start().then(() => {
      isStarted = true;
    });
    await Promise.resolve();
    assert.deepEqual([isStarted, fixture.value('cluster_manager.warming_clusters')], [false, 1]);
    await started;
    assert.deepEqual([fixture.ports(), fixture.value('cluster_manager.warming_clusters')], [[80], 0]);
  });

  it('are found by their names', () => {
    using fixture = new ManagedClusters([clusterAt([1])]);
    assert.equal(fixture.manager.cluster('web')?.name, 'web');
    assert.equal(fixture.manager.cluster('gone'), undefined);
  });

  it('hear nothing of hosts whose cluster has gone', () => {
    using fixture = new ManagedClusters();
    fixture.manager.hostFailed('gone', 8);
    fixture.manager.hostFailedInRow('gone', 8, 'consecutive-5xx');
    assert.equal(fixture.manager.hostWanted('gone', ADDRESS), 'overflow');
  });

  it('may have sockets that begin with options', () => {
    using fixture = new ManagedClusters();
    const socket_options = [{ level: 0, name: 2, int_value: 7, state: 'STATE_PREBIND' }];
    const source_address = { address: '127.0.0.1', port_value: 0 };
    assert.ok(fixture.manager.put(clusterAt([1], { upstream_bind_config: { source_address, socket_options } }), ''));
  });

  it('go on in new files when the old ones were moved, and leave no lookup under way and no file open at the end', async (t) => {
    const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-clusters-')));
    t.after(() => rmSync(folder, { recursive: true }));
    const [checks, ejections] = ['checks', 'ejections'].map((name) => path.join(folder, name));
    await using dns = await DnsServer.start();
    await using server = await HealthServer.start(answer(200));
    using fixture = new ManagedClusters([], ejections);
    const { manager, published, clock } = fixture;
    void manager.start();
    manager.put(clusterAt([server.port], { ...WATCHED, health_checks: [{ ...CHECK, event_log_path: checks! }] }), '');
    await eventually(() => published.length === 1, 'a warm cluster');
    fixture.eject(0);
    assert.deepEqual([isOpenFile(checks!), isOpenFile(ejections!)], [true, true]);
    for (const file of [checks!, ejections!]) renameSync(file, `${file}.1`);
    manager.reopenEventLogs();
    assert.deepEqual([isOpenFile(checks!), isOpenFile(ejections!)], [true, true]);
    manager.put({ ...dnsCluster(dns, 80), name: 'late', statName: 'late' }, '');
    manager.stop();
    await eventually(() => !isOpenFile(checks!) && !isOpenFile(ejections!), 'the end of both files');
    assert.equal(clock.timerCount, 0);
  });
});

describe('a cluster that is to follow another', () => {
  it('tells the workers nothing of its members while it warms, and keeps none that have gone', async () => {
    await using dns = await DnsServer.start();
    await using silent = await HealthServer.start(() => {});
    dns.set('web.test', ['127.0.0.1', '127.0.0.9']);
    using fixture = new ManagedClusters();
    const { manager, published, clock } = fixture;
    const { recordAllocator } = fixture.stats.owner;
    void manager.start();
    manager.put(clusterAt([1]), 'one');
    const successor = dnsCluster(dns, silent.port, { health_checks: [{ ...CHECK, timeout: '100s' }] });
    const before = recordAllocator.usedRecords;
    manager.put(successor, 'two');
    assert.equal(fixture.value('cluster_manager.warming_clusters'), 1);
    await eventually(() => recordAllocator.usedRecords === before + 3, 'its record and those of its hosts');
    dns.set('web.test', ['127.0.0.1']);
    await eventually(() => silent.received.length === 1, 'a check');
    clock.turn(5000);
    await eventually(() => recordAllocator.usedRecords === before + 2, 'the end of a host');
    assert.deepEqual([published.length, fixture.ports(), statesOf(fixture)], [1, [1], ['active', 'warming']]);
    assert.ok(manager.remove('web'));
    assert.equal(recordAllocator.usedRecords, before);
    assert.deepEqual([fixture.value('cluster_manager.active_clusters'), statesOf(fixture)], [0, ['draining']]);
    fixture.removed[0]!();
    assert.equal(recordAllocator.usedRecords, 0);
  });

  it('gives way to a later one, and to its removal, with all that it had', async () => {
    await using silent = await HealthServer.start(() => {});
    using fixture = new ManagedClusters();
    const { manager, clock, messages } = fixture;
    const { cells, recordAllocator } = fixture.stats.owner;
    void manager.start();
    const held = (): number[] => [cells.usedCells, recordAllocator.usedRecords, clock.timerCount];
    const before = held();
    const warming = (weight: number) =>
      clusterAt([silent.port], { health_checks: [CHECK] }, { load_balancing_weight: weight });
    assert.ok(manager.put(warming(1), 'one'));
    const one = held();
    assert.ok(manager.put({ ...warming(1), connectTimeoutMs: 7 }, 'two'));
    assert.deepEqual([statesOf(fixture), held()], [['warming'], one]);
    assert.equal(manager.remove('web'), true);
    assert.equal(manager.remove('web'), false);
    assert.deepEqual([statesOf(fixture), fixture.removed, held()], [[], [], before]);
    assert.equal(fixture.value('cluster_manager.warming_clusters'), 0);
    assert.deepEqual(
      messages.filter((message) => /is removed/.test(message)),
      [],
    );
  });

  it('is forgotten with its fault when it is removed', () => {
    using fixture = new ManagedClusters();
    const { manager } = fixture;
    void manager.start();
    fixture.stats.owner.recordAllocator.allocateCluster = () => {
      throw new Error('nothing left');
    };
    assert.throws(() => manager.put(clusterAt([1]), 'one'), /nothing left/);
    assert.deepEqual(statesOf(fixture), ['failed']);
    assert.equal(manager.remove('web'), false);
    assert.deepEqual(statesOf(fixture), []);
  });

  it('is told whole once, then by its changes, and each step has its line', () => {
    using fixture = new ManagedClusters();
    const { manager, published, messages, clock } = fixture;
    void manager.start();
    manager.put(clusterAt([1, 2], WATCHED), 'one');
    fixture.eject(0);
    assert.deepEqual(
      published.map(({ update }) => update && [update.order, update.hosts.length, update.health.length]),
      [undefined, [null, 0, 1]],
    );
    manager.put(clusterAt([1, 2], { ...WATCHED, connect_timeout: '7s' }), 'two');
    manager.remove('web');
    assert.equal(clock.timerCount, 0);
    assert.deepEqual(
      messages.filter((message) => /is new|takes the place|is removed/.test(message)),
      ['cluster web is new', 'cluster web takes the place of its predecessor', 'cluster web is removed'],
    );
  });

  it('no longer says how proxies lie in zones when it was that of the proxies', async () => {
    using fixture = new ManagedClusters([zoned('web', [inZone('a', 1, 2, 3), inZone('b', 4, 5, 6)])]);
    await fixture.manager.start();
    fixture.manager.put(zoned('proxies', [inZone('a', 1), inZone('b', 2)]), 'one');
    for (let windows = 0; windows < 2; windows++) fixture.clock.turn(1000);
    assert.equal(fixture.lists().kind, 'zones');
    fixture.manager.remove('proxies');
    for (let windows = 0; windows < 2; windows++) fixture.clock.turn(1000);
    assert.equal(fixture.lists().kind, 'list');
  });

  it('says how proxies lie in zones from the moment that it serves, and not before', async () => {
    await using dns = await DnsServer.start();
    dns.set('web.test', ['127.0.0.1']);
    using fixture = new ManagedClusters([zoned('web', [inZone('a', 1, 2, 3), inZone('b', 4, 5, 6)])]);
    const { manager } = fixture;
    await manager.start();
    manager.put(zoned('proxies', [inZone('a', 1), inZone('b', 2)]), 'one');
    for (let windows = 0; windows < 3; windows++) fixture.clock.turn(1000);
    assert.equal(fixture.lists().kind, 'zones');
    manager.put({ ...dnsCluster(dns, 80), name: 'proxies', statName: 'proxies' }, 'two');
    assert.equal(fixture.value('cluster_manager.warming_clusters'), 1);
    await eventually(() => !statesOf(fixture).includes('warming'), 'the other cluster of the proxies');
    // What others were told before would keep them from hearing this now.
    assert.deepEqual([fixture.lists().kind, fixture.value('cluster_manager.warming_clusters')], ['list', 0]);
  });
});

describe('a cluster whose TLS comes anew', () => {
  const TLS = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';
  const secured = (sni: string, fields: JsonObject = {}): ClusterSettings =>
    clusterAt([1], { transport_socket: { name: 'tls', typed_config: { '@type': TLS, sni } }, ...fields });
  const change = (sni: string): ChangedContexts<UpstreamTlsSettings> => {
    const { tls } = secured(sni);
    return new Map([[0, { settings: tls!, configured: tls! }]]);
  };
  const servedName = ({ manager }: ManagedClusters): string | undefined =>
    manager.snapshots()[0]?.settings.tls?.serverName;

  it('is one for workers that start later, and the same one when it is put as it is then', () => {
    using fixture = new ManagedClusters([secured('a.example')]);
    const [cluster] = fixture.manager.managed();
    let applied = 0;
    cluster!.secure(change('b.example'), () => (applied += 1));
    assert.equal(servedName(fixture), 'b.example');
    assert.deepEqual(
      [...fixture.manager.tlsContexts()].map((tls) => (tls as UpstreamTlsSettings).serverName),
      ['b.example'],
    );
    assert.deepEqual([fixture.published.length, applied], [1, 0]);
    fixture.published[0]!.applied();
    assert.equal(applied, 1);
    fixture.manager.put(secured('b.example'), '', undefined, false);
    assert.equal([...fixture.manager.managed()][0], cluster);
  });

  it('tells no worker before it serves, which begins with it, and is observed from its beginning to its end', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['127.0.0.1']);
    using fixture = new ManagedClusters();
    const { manager, published } = fixture;
    const observed: string[] = [];
    const seen: ManagedCluster[] = [];
    manager.observer = {
      complete: () => observed.push('completed'),
      add: (cluster) => {
        seen.push(cluster);
        observed.push(`+${cluster.settings.tls?.serverName}`);
      },
      remove: ({ settings }) => observed.push(`-${settings.tls?.serverName}`),
    };
    await manager.start();
    const socket = { name: 'tls', typed_config: { '@type': TLS, sni: 'a.example' } };
    manager.put(dnsCluster(server, 80, { transport_socket: socket }), 'one');
    let applied = 0;
    seen[0]!.secure(change('b.example'), () => (applied += 1));
    assert.deepEqual([published.length, applied], [0, 1]);
    await eventually(() => published.length === 1, 'a warm cluster');
    assert.equal(published[0]!.snapshot.settings.tls?.serverName, 'b.example');
    manager.put(secured('c.example'), 'two');
    manager.remove('web');
    assert.deepEqual(observed, ['+a.example', '+c.example', '-b.example', '-c.example']);
    manager.put(dnsCluster(server, 80, { transport_socket: socket }), 'three');
    manager.remove('web');
    assert.deepEqual(observed.slice(4), ['+a.example', '-a.example']);
  });
});
