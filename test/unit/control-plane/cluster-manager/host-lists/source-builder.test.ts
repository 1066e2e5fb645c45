// What main writes for the hosts of a cluster, whole: which lists there are, whose turn goes on in which of them (its
// slot), and what chooses among them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  type BalancingSettings,
  HostLists,
  type ListSituation,
} from '../../../../../src/control-plane/cluster-manager/host-lists/host-lists.ts';
import { type HostSource, readHostLists } from '../../../../../src/wasm/lb.ts';
import { HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import { BALANCING } from '../../../../support/clusters.ts';
import { host, lb, type NamedHost } from '../../../../support/host-lists.ts';
import { DEFAULT_HASHING } from '../../../../support/lb.ts';

const ILL = HealthFlag.failedActiveHealthCheck;
const DEGRADED = HealthFlag.degradedEdsHealth;
const MAGLEV = { lbPolicy: 'MAGLEV', hashing: { ...DEFAULT_HASHING, maglevTableSize: 31 } } as const;

/** A list is `slot: hosts`, with its balancer where hosts do not simply take turns. */
function shapeOf(source: HostSource): unknown {
  switch (source.kind) {
    case 'none':
      return 'none';
    case 'list': {
      const { slot, hosts, plan } = source;
      return `${slot}: ${Array.from(hosts).join(' ')}${plan.kind === 'cycle' ? '' : ` ${plan.kind}`}`;
    }
    case 'bounded':
      return { bounded: shapeOf(source.table), percent: source.percent, shares: [...source.shares] };
    case 'shares':
      return source.shares.map(({ source: each, ...fields }) => ({ ...fields, source: shapeOf(each) }));
    case 'turns':
      return { turns: source.sources.map(shapeOf) };
    case 'zones': {
      const { kind: _, any, zones, ...fields } = source;
      return { ...fields, any: shapeOf(any), zones: zones.map(({ upTo, source: each }) => [upTo, shapeOf(each)]) };
    }
    case 'subsets':
      return {
        any: shapeOf(source.any),
        defaultSubset: shapeOf(source.defaultSubset),
        subsets: source.names.map((name, at) => [name, shapeOf(source.sourceOf(at))]),
      };
  }
}

function shape(
  settings: Partial<BalancingSettings>,
  hosts: readonly NamedHost[],
  situation: ListSituation = {},
): unknown {
  const lists = new HostLists(lb.tables, { ...BALANCING, ...settings }, hosts, situation);
  try {
    return shapeOf(readHostLists(lb.owner.shared, lists.address));
  } finally {
    lb.owner.reclaimer.collect(() => lists.retire())();
  }
}

const at = (priority: number, healthFlags = 0, fields: Partial<NamedHost> = {}): NamedHost =>
  host('', { priority, healthFlags, ...fields });
const inZone = (zone: string, localityWeight: number, fields: Partial<NamedHost> = {}): NamedHost =>
  host('', { locality: { region: '', zone, subZone: '' }, localityWeight, ...fields });

describe('the lists of a cluster', () => {
  test('are one of the healthy hosts where these take all requests', () => {
    assert.equal(shape({}, [at(0), at(0, ILL), at(0), at(0)]), '1: 0 2 3');
    // What the degraded one could take as well is not asked of it.
    assert.equal(shape({}, [at(0), at(0, DEGRADED), at(0), at(0)]), '1: 0 2 3');
    const panic = [{ upTo: 100, source: 'none', isPanic: true, priority: 0, availability: 0 }];
    assert.deepEqual(shape({}, []), panic);
  });

  test('are one for each priority and health, each with a slot of its own', () => {
    const hosts = [at(0), at(0, DEGRADED), at(0, ILL), at(1), at(1, DEGRADED), at(2, ILL | DEGRADED)];
    assert.deepEqual(shape({}, hosts), [
      { upTo: 46, source: '1: 0', isPanic: false, priority: 0, availability: 46 },
      { upTo: 100, source: '4: 3', isPanic: false, priority: 1, availability: 70 },
      { upTo: 100, source: '2: 1', isPanic: false, priority: 0, availability: 46 },
      { upTo: 100, source: '5: 4', isPanic: false, priority: 1, availability: 70 },
    ]);
  });

  test('are those of all hosts in panic, or none where requests are to fail then', () => {
    const hosts = [at(0), at(0, ILL), at(0, ILL), at(1, ILL), at(1, ILL)];
    const inPanic = (first: string, second: string): object[] => [
      { upTo: 60, source: first, isPanic: true, priority: 0, availability: 46 },
      { upTo: 100, source: second, isPanic: true, priority: 1, availability: 0 },
    ];
    assert.deepEqual(shape({}, hosts), inPanic('0: 0 1 2', '3: 3 4'));
    assert.deepEqual(shape({ failsTrafficOnPanic: true }, hosts), inPanic('none', 'none'));
    // A hash has its host whatever happens.
    const hashed = inPanic('0: 0 1 2 maglev', '3: 3 4 maglev');
    assert.deepEqual(shape({ ...MAGLEV, failsTrafficOnPanic: true }, hosts), hashed);
  });

  test('are the same table for the healthy and the degraded share of a priority', () => {
    const hosts = [at(0), at(0, DEGRADED), at(0, ILL)];
    const shares = [
      { upTo: 50, source: '1: 0 maglev', isPanic: false, priority: 0, availability: 46 },
      { upTo: 100, source: '1: 0 maglev', isPanic: false, priority: 0, availability: 46 },
    ];
    assert.deepEqual(shape(MAGLEV, hosts), shares);
    const lists = new HostLists(lb.tables, { ...BALANCING, ...MAGLEV }, hosts);
    const source = readHostLists(lb.owner.shared, lists.address);
    assert.ok(source.kind === 'shares');
    const [first, second] = source.shares.map((share) => share.source);
    assert.ok(first!.kind === 'list' && second!.kind === 'list');
    assert.deepEqual(first!.plan, second!.plan);
    lb.owner.reclaimer.collect(() => lists.retire())();
  });

  test('of weighed localities take turns, each in a slot of its own, without those that have no weight or no host', () => {
    const weighing = { weighsLocalities: true };
    const hosts = [
      inZone('a', 1),
      inZone('b', 0),
      inZone('c', 2),
      inZone('c', 2),
      inZone('d', 1, { healthFlags: ILL }),
    ];
    assert.deepEqual(shape(weighing, hosts), { turns: ['1025: 0', '3073: 2 3'] });
    assert.deepEqual(shape(weighing, [inZone('a', 0), inZone('b', 0)]), '1: 0 1');
    const next = [
      inZone('a', 1, { healthFlags: ILL }),
      inZone('a', 1, { priority: 1 }),
      inZone('b', 1, { priority: 1 }),
    ];
    assert.deepEqual(shape(weighing, next), { turns: ['1028: 1', '2052: 2'] });
    assert.deepEqual(
      shape(weighing, [inZone('a', 1), inZone('b', 1, { healthFlags: ILL }), inZone('b', 1, { healthFlags: ILL })]),
      [{ upTo: 100, source: '0: 0 1 2', isPanic: true, priority: 0, availability: 46 }],
    );
  });

  test('of tables share localities out by their weights, and bound hosts by the same', () => {
    const hashing = { ...MAGLEV.hashing, balancePercent: 150 };
    const hosts = [inZone('a', 1, { weight: 3 }), inZone('a', 1), inZone('b', 3), inZone('c', 0)];
    const bounded = { bounded: '1: 0 1 2 maglev', percent: 150, shares: [3 / 16, 1 / 16, 3 / 4] };
    assert.deepEqual(shape({ ...MAGLEV, hashing, weighsLocalities: true }, hosts), bounded);
    assert.deepEqual(shape({ ...MAGLEV, hashing }, hosts.slice(0, 3)), {
      bounded: '1: 0 1 2 maglev',
      percent: 150,
      shares: [3 / 5, 1 / 5, 1 / 5],
    });
    assert.equal(shape({ ...MAGLEV, weighsLocalities: true }, [inZone('a', 0)]), 'none');
  });

  test('of zones are one for each, beside the one of all, and only in the first priority', () => {
    const zoneRouting = { enabledPercent: 100, minClusterSize: 2, forcedFrom: null, goesByWeight: false };
    const locality = { region: '', zone: 'b', subZone: '' };
    const localZones = { locality, hosts: [inZone('a', 0), inZone('b', 0)], isPanic: false };
    const hosts = [inZone('a', 0), inZone('b', 0), inZone('b', 0, { healthFlags: DEGRADED }), inZone('a', 0)];
    const zones = (any: string, own: string, other: string, fields: object = {}): object => ({
      isDirect: false,
      isPanic: false,
      failsInPanic: false,
      localShare: 6666,
      any,
      zones: [
        [0, own],
        [1666, other],
      ],
      ...fields,
    });
    const healthy = zones('1: 0 1 3', '1025: 1', '2049: 0 3');
    assert.deepEqual(
      shape({ zoneRouting }, hosts.toSpliced(2, 1), { localZones }),
      zones('1: 0 1 2', '1025: 1', '2049: 0 2'),
    );
    assert.deepEqual(shape({ zoneRouting, overprovisioningFactor: 100 }, hosts, { localZones }), [
      { upTo: 75, source: healthy, isPanic: false, priority: 0, availability: 75 },
      { upTo: 100, source: zones('2: 2', '1026: 2', 'none'), isPanic: false, priority: 0, availability: 25 },
    ]);
    const failing = { zoneRouting, failsTrafficOnPanic: true };
    const panicking = { localZones: { ...localZones, isPanic: true } };
    const all = shape(failing, hosts.toSpliced(2, 1), panicking);
    assert.deepEqual(all, zones('1: 0 1 2', '1025: 1', '2049: 0 2', { isPanic: true, failsInPanic: true }));
    // Neither in panic of the cluster nor in further priorities.
    const ill = inZone('a', 0, { healthFlags: ILL });
    assert.deepEqual(shape({ zoneRouting }, [...hosts.toSpliced(2, 2), ill, ill, ill], { localZones }), [
      { upTo: 100, source: '0: 0 1 2 3 4', isPanic: true, priority: 0, availability: 56 },
    ]);
    const second = [...hosts.toSpliced(2, 1), inZone('a', 0, { priority: 1 }), inZone('b', 0, { priority: 1 })];
    assert.deepEqual(shape({ zoneRouting }, second, { localZones }), [
      { upTo: 100, source: zones('1: 0 1 2', '1025: 1', '2049: 0 2'), isPanic: false, priority: 0, availability: 100 },
      { upTo: 100, source: '4: 3 4', isPanic: false, priority: 1, availability: 100 },
    ]);
    for (const settings of [{ zoneRouting: null }, { zoneRouting, weighsLocalities: true }]) {
      assert.equal(shape(settings, hosts.toSpliced(2, 1), { localZones }), '1: 0 1 2');
    }
    assert.equal(shape({ zoneRouting }, hosts.toSpliced(2, 1)), '1: 0 1 2');
    assert.equal(shape({ ...MAGLEV, zoneRouting }, hosts.toSpliced(2, 1), { localZones }), '1: 0 1 2 maglev');
  });

  test('have weights of their own where hosts start and there is a choice', () => {
    const shareOf = (index: number): number => (index === 1 ? 0.5 : 1);
    assert.equal(shape({}, [at(0), at(0), at(0)], { shareOf }), '1: 0 1 2 schedule');
    assert.equal(shape({}, [at(0, ILL), at(0)], { shareOf: () => 0.5 }), '1: 1');
    assert.equal(shape({}, [at(0), at(0)], { shareOf: () => 1 }), '1: 0 1');
  });

  test('of subsets are built alike for each of them, and for what requests may fall back to', () => {
    const subsetValues = (value: string) => [{ key: 'v', value, elements: null }];
    const hosts = [at(0, 0, { subsetValues: subsetValues('1') }), at(0, 0, { subsetValues: subsetValues('2') }), at(0)];
    const selector = { keys: ['v'], fallback: 'cluster', fallbackKeys: [], isSingleHost: false } as const;
    const subsets = {
      selectors: [selector],
      fallback: 'none',
      defaultSubset: [['v', '2']],
      weighsLocalities: false,
      scalesLocalityWeights: false,
      panicModeAny: false,
      listAsAny: false,
      takesAlternatives: false,
      allowsRedundantKeys: false,
    } as const;
    const each = [
      ['"v":1', '1: 0'],
      ['"v":2', '1: 1'],
    ];
    const shapes: [object, object][] = [
      [{}, { any: 'none', defaultSubset: 'none' }],
      [{ fallback: 'any-host' }, { any: '1: 0 1 2', defaultSubset: 'none' }],
      [{ fallback: 'default-subset' }, { any: 'none', defaultSubset: '1: 1' }],
      [{ panicModeAny: true }, { any: '1: 0 1 2', defaultSubset: 'none' }],
      [{ selectors: [{ ...selector, fallback: 'any-host' }] }, { any: '1: 0 1 2', defaultSubset: 'none' }],
      [{ selectors: [{ ...selector, fallback: 'default-subset' }] }, { any: 'none', defaultSubset: '1: 1' }],
    ];
    for (const [fields, expected] of shapes) {
      assert.deepEqual(shape({ subsets: { ...subsets, ...fields } }, hosts), { ...expected, subsets: each });
    }
  });
});

describe('the slots of a cluster', () => {
  test('name one list each, whatever its hosts are', () => {
    const fields = fc.record({
      zone: fc.constantFrom('a', 'b', 'c'),
      healthFlags: fc.constantFrom(0, 0, ILL, DEGRADED, ILL | DEGRADED),
      localityWeight: fc.nat(2),
      priority: fc.nat(3),
    });
    fc.assert(
      fc.property(fc.array(fields, { maxLength: 12 }), fc.boolean(), (all, weighsLocalities) => {
        const hosts = all.map(({ zone, ...rest }) => inZone(zone, 0, rest));
        const text = JSON.stringify(shape({ weighsLocalities }, hosts));
        // In panic the healthy share of a priority and the degraded one are the same list.
        const lists = new Set([...text.matchAll(/"\d+: [^"]*"/g)].map(([list]) => list));
        const slots = new Set([...lists].map((list) => list.split(':')[0]));
        assert.equal(lists.size, slots.size, text);
      }),
    );
  });
});
