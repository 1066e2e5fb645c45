import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ClusterSettings } from '../../../../../src/snapshot/index.ts';
import { type JsonObject, member } from '../../../../support/bootstrap.ts';
import { settle } from '../../../../support/dns-discovery.ts';
import { EndpointFeed, edsCluster } from '../../../../support/endpoint-feed.ts';
import { NO_FAULTS } from '../../../../support/faults.ts';
import { CHECK, ManagedClusters } from '../../../../support/managed-clusters.ts';

function assignment(ports: readonly number[], fields: JsonObject = {}, name = 'web'): JsonObject {
  return { cluster_name: name, endpoints: [{ lb_endpoints: ports.map((port) => member(port)) }], ...fields };
}

interface Opened extends Disposable {
  readonly feed: EndpointFeed;
  readonly clusters: ManagedClusters;
  isLive(): Promise<boolean>;
  value(name: string): number;
}

/** Started, with clusters that ask for endpoints. */
function open(...settings: readonly ClusterSettings[]): Opened {
  const feed = new EndpointFeed();
  const clusters = new ManagedClusters(settings, '', NO_FAULTS, feed.discovery);
  let isLive = false;
  void clusters.manager.start().then(() => {
    isLive = true;
  });
  return {
    feed,
    clusters,
    isLive: async () => {
      await settle();
      return isLive;
    },
    value: (name) => clusters.value(`cluster.web.${name}`),
    [Symbol.dispose]: () => {
      clusters[Symbol.dispose]();
      feed[Symbol.dispose]();
    },
  };
}

function put({ clusters }: Opened, settings: ClusterSettings): void {
  assert.ok(clusters.manager.put(settings, '1'));
}

const publishedShare = ({ clusters }: Opened): unknown => clusters.published.at(-1)?.update?.dropShare;

describe('a cluster whose endpoints come by discovery', () => {
  it('asks for its service, or for its name, and is waited for until they come', async () => {
    using opened = open(edsCluster({}, { service_name: 'shop' }));
    const { feed, clusters } = opened;
    assert.deepEqual(feed.asked, ['shop']);
    assert.equal(await opened.isLive(), false);
    assert.deepEqual(
      [...clusters.manager.warming()].map(({ waitsFor }) => waitsFor),
      [['EDS shop']],
    );
    assert.deepEqual(feed.respond('shop', '7', [assignment([1, 2], {}, 'shop')]), []);
    assert.equal(await opened.isLive(), true);
    assert.deepEqual(clusters.ports(), [1, 2]);
    assert.equal(clusters.manager.cluster('web')!.edsServiceName, 'shop');
    assert.deepEqual(
      ['update_attempt', 'update_success', 'update_rejected', 'update_empty', 'version', 'membership_total'].map(
        (name) => opened.value(name),
      ),
      [1, 1, 0, 0, 1, 2],
    );
    const texts = clusters.stats.store.textReadouts().map(({ name, value }) => [name, value]);
    assert.deepEqual(texts, [['cluster.web.version_text', '7']]);
    assert.equal(opened.value('update_time'), clusters.clock.wallMs());
  });

  it('serves without any when it takes too long, when they cannot be had, and when there are none', async () => {
    for (const end of ['late', 'failed', 'none', 'refused'] as const) {
      using opened = open(edsCluster());
      const { feed, clusters } = opened;
      if (end === 'late') clusters.clock.turn(15_000);
      else if (end === 'failed') feed.fail('web');
      else feed.respond('web', '1', end === 'none' ? [] : [assignment([1], { endpoints: [{ priority: 1 }] })]);
      assert.equal(await opened.isLive(), true, end);
      assert.deepEqual(clusters.ports(), [], end);
      const counts = ['init_fetch_timeout', 'update_empty', 'update_rejected'].map((name) => opened.value(name));
      assert.deepEqual(counts, [Number(end === 'late'), Number(end === 'none'), Number(end === 'refused')], end);
    }
  });

  it('keeps its hosts where they stay, and their places', async () => {
    using opened = open(edsCluster());
    const { feed, clusters } = opened;
    feed.respond('web', '1', [assignment([1, 2, 3])]);
    const before = new Map(clusters.hosts().map((host) => [host.recordAddress, host]));
    const weighed = { endpoints: [{ lb_endpoints: [member(2, { load_balancing_weight: 5 }), member(3), member(4)] }] };
    feed.respond('web', '2', [assignment([], weighed)]);
    const after = clusters.hosts();
    assert.deepEqual(clusters.ports(), [2, 3, 4]);
    assert.deepEqual(
      after.map((host) => before.get(host.recordAddress) === host),
      [true, true, false],
    );
    assert.equal(after[0]!.weight, 5);
    assert.equal(opened.value('update_no_rebuild'), 0);
    feed.respond('web', '3', [assignment([], weighed)]);
    assert.equal(opened.value('update_no_rebuild'), 1);
    assert.equal(opened.value('membership_change'), 2);
  });

  it('takes what has come again for known where it would read it alike, and has it in force', () => {
    using opened = open(edsCluster());
    const { feed, clusters } = opened;
    const [managed] = clusters.manager.managed();
    assert.equal(feed.repeat('web', '0'), false, 'nothing is known');
    feed.respond('web', '1', [assignment([1, 2])]);
    const { message } = managed!.assignment!.known!;
    clusters.clock.turn(1000);
    assert.equal(feed.repeat('web', '2'), true);
    const { status, known } = managed!.assignment!;
    const updatedMs = clusters.clock.wallMs();
    assert.deepEqual([status, known!.version, known!.message, known!.updatedMs], ['accepted', '2', message, updatedMs]);
    assert.equal(opened.value('update_no_rebuild'), 1);
    feed.renew();
    assert.equal(feed.repeat('web', '3'), false, 'it is read otherwise');
    feed.respond('web', '3', [assignment([1, 2])]);
    assert.equal(feed.repeat('web', '4'), true);
    feed.respond('web', '5', [assignment([3], { endpoints: [{ priority: 2 }] })]);
    assert.equal(feed.repeat('web', '5'), false, 'it may not be');
    clusters.manager.stop();
    assert.equal(feed.repeat('web', '6'), true, 'nobody is there');
  });

  it('has nothing known any more when its time is over', () => {
    using opened = open(edsCluster());
    const { feed, clusters } = opened;
    feed.respond('web', '1', [assignment([1], { policy: { endpoint_stale_after: '5s' } })]);
    clusters.clock.turn(4000);
    assert.equal(feed.repeat('web', '2'), true);
    clusters.clock.turn(4000);
    assert.deepEqual(clusters.ports(), [1]);
    clusters.clock.turn(1000);
    assert.deepEqual(clusters.ports(), []);
    assert.equal(feed.repeat('web', '3'), false);
  });

  it('keeps them where an assignment may not be, is another’s, or is not there', async () => {
    using opened = open(edsCluster());
    const { feed, clusters } = opened;
    feed.respond('web', '1', [assignment([1, 2])]);
    const refusals = feed.respond('web', '2', [assignment([3], { endpoints: [{ priority: 2 }] })]);
    assert.equal(refusals.length, 1);
    assert.match(refusals[0]!, /^endpoints of cluster web: .*resources\[0\]\.endpoints: priorities must be contiguous/);
    const [managed] = clusters.manager.managed();
    const { status, known, refused } = managed!.assignment!;
    assert.deepEqual([status, known!.version, refused!.version], ['refused', '1', '2']);
    assert.match(refused!.error, /priorities must be contiguous/);
    feed.respond('web', '3', [assignment([3], {}, 'other')]);
    assert.equal(managed!.assignment!.status, 'absent');
    assert.match(clusters.messages.at(-1)!, /cluster web keeps its members: .* cluster_name web/);
    feed.respond('web', '4', [], { extent: 'changes', removed: ['web'] });
    assert.equal(opened.value('update_empty'), 2);
    feed.respond('web', '5', [], { extent: 'changes' });
    assert.equal(opened.value('update_empty'), 2);
    assert.deepEqual(clusters.ports(), [1, 2]);
    assert.equal(opened.value('update_rejected'), 1);
  });

  it('has none any more when their time is over, unless others come', async () => {
    using opened = open(edsCluster());
    const { feed, clusters } = opened;
    const policy = { endpoint_stale_after: '5s', overprovisioning_factor: 100 };
    feed.respond('web', '1', [assignment([1], { policy })]);
    clusters.clock.turn(4000);
    feed.respond('web', '2', [assignment([1], { policy })]);
    clusters.clock.turn(4000);
    assert.deepEqual(clusters.ports(), [1]);
    assert.equal(clusters.manager.cluster('web')!.settings.overprovisioningFactor, 100);
    clusters.clock.turn(1000);
    assert.deepEqual(clusters.ports(), []);
    assert.equal(clusters.manager.cluster('web')!.settings.overprovisioningFactor, 140);
    assert.deepEqual([opened.value('assignment_timeout_received'), opened.value('assignment_stale')], [2, 1]);
    const [managed] = clusters.manager.managed();
    assert.equal(managed!.assignment!.known, undefined);
    feed.respond('web', '3', [assignment([1], { policy })]);
    feed.respond('web', '4', [assignment([1])]);
    clusters.clock.turn(10_000);
    assert.deepEqual(clusters.ports(), [1]);
  });

  it('reads none again that comes as it was, unless it was refused or is over meanwhile', () => {
    using opened = open(edsCluster());
    const { feed, clusters } = opened;
    const [managed] = clusters.manager.managed();
    const lasting = assignment([1], { policy: { endpoint_stale_after: '5s' } });
    feed.respond('web', '1', [lasting]);
    clusters.clock.turn(3000);
    feed.respond('web', '2', [lasting]);
    assert.equal(feed.reads, 1);
    const { status, known } = managed!.assignment!;
    assert.deepEqual([status, known!.version, known!.updatedMs], ['accepted', '2', clusters.clock.wallMs()]);
    const counted = ['update_success', 'update_no_rebuild', 'assignment_timeout_received'];
    assert.deepEqual(counted.map(opened.value), [2, 1, 2]);
    clusters.clock.turn(3000);
    assert.deepEqual(clusters.ports(), [1]);
    clusters.clock.turn(2000);
    assert.deepEqual(clusters.ports(), []);
    feed.respond('web', '3', [lasting]);
    assert.deepEqual([feed.reads, clusters.ports()], [2, [1]]);
    const bad = assignment([2], { endpoints: [{ priority: 2 }] });
    for (const version of ['4', '5']) assert.equal(feed.respond('web', version, [bad]).length, 1);
    assert.equal(feed.reads, 4);
    feed.respond('web', '6', [lasting]);
    feed.respond('web', '7', [lasting]);
    assert.equal(feed.reads, 5);
    assert.deepEqual([managed!.assignment!.status, managed!.assignment!.refused], ['accepted', undefined]);
    feed.respond('web', '8', [assignment([2])]);
    assert.deepEqual([feed.reads, clusters.ports()], [6, [2]]);
  });

  it('tells workers of the share that is dropped, once', () => {
    using opened = open(edsCluster());
    const { feed, clusters } = opened;
    const dropping = { policy: { drop_overloads: [{ category: 'x', drop_percentage: { numerator: 30 } }] } };
    feed.respond('web', '1', [assignment([1], dropping)]);
    assert.deepEqual(publishedShare(opened), { numerator: 30, denominator: 100 });
    assert.deepEqual(clusters.manager.snapshots()[0]!.settings.dropShare, { numerator: 30, denominator: 100 });
    feed.respond('web', '2', [assignment([1, 2], dropping)]);
    assert.equal(publishedShare(opened), undefined);
    feed.respond('web', '3', [assignment([1, 2])]);
    assert.equal(publishedShare(opened), null);
    const { order, hosts } = clusters.published.at(-1)!.update!;
    assert.deepEqual([order, hosts], [null, []]);
  });

  it('begins with hosts that are to be checked, and keeps those that pass', async () => {
    using opened = open(edsCluster({ health_checks: [CHECK] }));
    const { feed, clusters } = opened;
    feed.respond('web', '1', [assignment([1, 2])]);
    const [first, second] = clusters.hosts();
    first!.setHealthFlags(first!.healthFlags, false);
    assert.equal(second!.isRemovable, true);
    feed.respond('web', '2', [assignment([3])]);
    assert.deepEqual(clusters.ports(), [3, 1]);
  });
});

describe('a cluster that takes the place of another', () => {
  const successor = (fields: JsonObject = {}): ClusterSettings => edsCluster({ connect_timeout: '9s', ...fields });

  it('waits for an assignment of its own', async () => {
    using opened = open();
    put(opened, edsCluster());
    opened.feed.respond('web', '1', [assignment([1])]);
    await settle();
    put(opened, successor());
    await settle();
    assert.equal(opened.clusters.manager.cluster('web')!.settings.connectTimeoutMs, 5000);
    opened.feed.respond('web', '2', [assignment([2])]);
    await settle();
    assert.equal(opened.clusters.manager.cluster('web')!.settings.connectTimeoutMs, 9000);
    assert.deepEqual(opened.clusters.ports(), [2]);
    assert.equal(opened.value('assignment_use_cached'), 0);
  });

  it('has that of its predecessor where none of its own comes, as it reads it itself', async () => {
    for (const end of ['late', 'failed', 'none'] as const) {
      using opened = open();
      put(opened, edsCluster());
      const metadata = { filter_metadata: { 'envoy.lb': { stage: 'dev' } } };
      opened.feed.respond('web', '1', [assignment([], { endpoints: [{ lb_endpoints: [member(1, { metadata })] }] })]);
      await settle();
      put(opened, successor({ lb_subset_config: { subset_selectors: [{ keys: ['stage'] }] } }));
      if (end === 'late') opened.clusters.clock.turn(15_000);
      else if (end === 'failed') opened.feed.fail('web');
      else opened.feed.respond('web', '2', []);
      await settle();
      const { clusters } = opened;
      assert.equal(clusters.manager.cluster('web')!.settings.connectTimeoutMs, 9000, end);
      assert.deepEqual(clusters.ports(), [1], end);
      assert.deepEqual(
        clusters.hosts()[0]!.subsetValues.map(({ key }) => key),
        ['stage'],
      );
      const [managed] = clusters.manager.managed();
      assert.equal(managed!.assignment!.known!.version, '1');
      assert.equal(opened.value('assignment_use_cached'), 1);
    }
  });

  it('has none of a predecessor that asks somebody else, or for another', async () => {
    const elsewhere = { eds_config: { path: '/elsewhere/endpoints.json' } };
    for (const config of [elsewhere, { service_name: 'shop' }]) {
      using opened = open();
      put(opened, edsCluster());
      opened.feed.respond('web', '1', [assignment([1])]);
      await settle();
      put(opened, edsCluster({}, config));
      opened.clusters.clock.turn(15_000);
      await settle();
      assert.deepEqual(opened.clusters.ports(), []);
    }
  });
});

describe('any responses', () => {
  const port = fc.integer({ min: 1, max: 6 });
  const host = fc.record({
    port,
    weight: fc.integer({ min: 1, max: 3 }),
    zone: fc.constantFrom('a', 'b'),
    priority: fc.constantFrom(0, 1),
  });
  type Host = { readonly port: number; readonly weight: number; readonly zone: string; readonly priority: number };
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('assignment' as const), hosts: fc.array(host) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('none' as const, 'bad' as const, 'gone' as const) }) },
  );

  /** Each in a locality of its own; priority 0 is there in any case. */
  const messageOf = (hosts: readonly Host[]): JsonObject => ({
    cluster_name: 'web',
    endpoints: [
      {},
      ...hosts.map(({ port: at, weight, zone, priority }) => ({
        priority,
        locality: { zone },
        lb_endpoints: [member(at, { load_balancing_weight: weight })],
      })),
    ],
  });

  it('leave the hosts that the last good one has named, and those that stayed are the same', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        using opened = open(edsCluster());
        const { feed, clusters } = opened;
        let model: readonly Host[] = [];
        for (const [at, each] of steps.entries()) {
          const version = String(at);
          const before = new Map(clusters.hosts().map((one) => [`${addressed(one)} ${one.locality.zone}`, one]));
          if (each.kind === 'assignment') {
            feed.respond('web', version, [messageOf(each.hosts)]);
            const first = new Map<number, Host>();
            for (const one of each.hosts) if (!first.has(one.port)) first.set(one.port, one);
            model = [...first.values()];
          } else if (each.kind === 'gone') feed.respond('web', version, [], { extent: 'changes', removed: ['web'] });
          else
            feed.respond(
              'web',
              version,
              each.kind === 'none' ? [] : [{ cluster_name: 'web', endpoints: [{ priority: 9 }] }],
            );
          const shown = clusters.hosts().map((one) => [addressed(one), one.weight, one.locality.zone, one.priority]);
          const expected = model.map((one) => [one.port, one.weight, one.zone, one.priority]);
          assert.deepEqual(shown.toSorted(), expected.toSorted());
          for (const one of clusters.hosts()) {
            const known = before.get(`${addressed(one)} ${one.locality.zone}`);
            assert.ok(known === undefined || known === one);
          }
          assert.equal(opened.value('membership_total'), model.length);
        }
      }),
      { numRuns: 60 },
    );
  });
});

function addressed({ address }: { readonly address: { readonly kind: string; readonly port?: number } }): number {
  return address.port ?? 0;
}
