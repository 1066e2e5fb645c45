// Subsets of a cluster's hosts, by what their metadata says, picked from as a worker does.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { subsetsOf } from '../../../../../src/control-plane/cluster-manager/host-lists/subsets.ts';
import { Criteria, contextOf } from '../../../../../src/data-plane/upstream/load-balancer/pick-context.ts';
import type { SubsetSelector, SubsetSettings, SubsetValue } from '../../../../../src/snapshot/index.ts';
import { HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import { BalancedCluster, host, lb, type NamedHost, requestHash } from '../../../../support/host-lists.ts';

const ILL = HealthFlag.failedActiveHealthCheck;

type Says = Readonly<Record<string, string | readonly string[]>>;

function valuesOf(says: Says): SubsetValue[] {
  return Object.entries(says).map(([key, value]) => ({
    key,
    value: JSON.stringify(value),
    elements: typeof value === 'string' ? null : value.map((each) => JSON.stringify(each)),
  }));
}

function saying(name: string, says: Says, fields: Partial<NamedHost> = {}): NamedHost {
  return host(name, { subsetValues: valuesOf(says), ...fields });
}

function selector(keys: readonly string[], fields: Partial<SubsetSelector> = {}): SubsetSelector {
  return { keys, fallback: 'cluster', fallbackKeys: [], isSingleHost: false, ...fields };
}

function subsetting(selectors: readonly SubsetSelector[], fields: Partial<SubsetSettings> = {}): SubsetSettings {
  const localities = { weighsLocalities: false, scalesLocalityWeights: false };
  const flags = { panicModeAny: false, listAsAny: false, takesAlternatives: false, allowsRedundantKeys: false };
  return { selectors, fallback: 'none', defaultSubset: [], ...localities, ...flags, ...fields };
}

function criteria(asks: Readonly<Record<string, string>>): Criteria {
  return new Criteria(Object.entries(asks).map(([key, value]) => [key, JSON.stringify(value)]));
}

/** The hosts that requests go to, in ascending order; of which there are few. */
function chosen(cluster: BalancedCluster, asks: Readonly<Record<string, string>> | null): string {
  const request = asks === null ? null : contextOf(criteria(asks));
  return [...new Set(Array.from({ length: 40 }, () => cluster.pick(request)))].sort().join();
}

const FLEET = [
  saying('a', { stage: 'prod', version: '1' }),
  saying('b', { stage: 'prod', version: '2' }),
  saying('c', { stage: 'dev', version: '2' }),
  saying('d', { version: '3' }),
];

describe('a subset', () => {
  const selectors = [selector(['stage']), selector(['stage', 'version'])];

  test('holds the hosts that say what the request asks, under exactly the keys of a selector', () => {
    const cluster = new BalancedCluster({ subsets: subsetting(selectors) }).setHosts(...FLEET);
    assert.equal(chosen(cluster, { stage: 'prod' }), 'a,b');
    assert.equal(chosen(cluster, { stage: 'dev' }), 'c');
    assert.equal(chosen(cluster, { stage: 'prod', version: '2' }), 'b');
    for (const asks of [{ stage: 'test' }, { version: '2' }, { stage: 'dev', version: '1' }, {}, null]) {
      assert.equal(chosen(cluster, asks === null || Object.keys(asks).length === 0 ? null : asks), 'none');
    }
    assert.equal(cluster.counts.lb_subsets_selected, 120);
    assert.equal(cluster.counts.lb_subsets_fallback, undefined);
  });

  test('tells values of different kinds apart', () => {
    const number = { ...saying('n', {}), subsetValues: [{ key: 'stage', value: '1', elements: null }] };
    const cluster = new BalancedCluster({ subsets: subsetting(selectors) }).setHosts(number);
    assert.equal(chosen(cluster, { stage: '1' }), 'none');
    assert.equal(cluster.pick(contextOf(new Criteria([['stage', '1']]))), 'n');
  });

  test('has its own health, priorities and panic', () => {
    const cluster = new BalancedCluster({ subsets: subsetting(selectors) });
    const prod = (name: string, fields = {}): NamedHost => saying(name, { stage: 'prod' }, fields);
    cluster.setHosts(prod('a', { healthFlags: ILL }), prod('next', { priority: 1 }), saying('c', { stage: 'dev' }));
    assert.equal(chosen(cluster, { stage: 'prod' }), 'next');
    assert.equal(cluster.panics, 0);
    cluster.setHosts(prod('a', { healthFlags: ILL }), prod('b', { healthFlags: ILL }), saying('c', { stage: 'dev' }));
    assert.equal(chosen(cluster, { stage: 'prod' }), 'a,b');
    assert.equal(cluster.panics, 40);
    assert.equal(chosen(cluster, { stage: 'dev' }), 'c');
    assert.equal(cluster.panics, 40);
  });

  test('without an available host does not fall back', () => {
    const subsets = subsetting(selectors, { fallback: 'any-host', panicModeAny: true });
    const cluster = new BalancedCluster({ subsets, healthyPanicThreshold: 0 });
    cluster.setHosts(saying('a', { stage: 'prod' }, { healthFlags: ILL }), saying('c', { stage: 'dev' }));
    assert.equal(chosen(cluster, { stage: 'prod' }), 'none');
    assert.equal(chosen(cluster, { stage: 'test' }), 'c');
  });

  test('is picked from by the policy of the cluster', () => {
    const weighted = new BalancedCluster({ subsets: subsetting(selectors) }).setHosts(
      saying('a', { stage: 'prod' }, { weight: 3 }),
      saying('b', { stage: 'prod' }),
      saying('c', { stage: 'dev' }),
    );
    const request = contextOf(criteria({ stage: 'prod' }));
    const picks = Array.from({ length: 400 }, () => weighted.pick(request));
    assert.equal(picks.filter((name) => name === 'a').length, 300);
    const hashed = new BalancedCluster({ subsets: subsetting(selectors), lbPolicy: 'RING_HASH' }).setHosts(...FLEET);
    for (let hash = 0n; hash < 20n; hash += 1n) {
      const names = Array.from({ length: 3 }, () =>
        hashed.pick(requestHash(hash * 2n ** 59n, criteria({ stage: 'prod' }))),
      );
      assert.equal(new Set(names).size, 1);
      assert.ok('ab'.includes(names[0]!));
    }
  });

  test('of round robin goes on where it stood when others change', () => {
    const cluster = new BalancedCluster({ subsets: subsetting(selectors) }).setHosts(...FLEET);
    const request = contextOf(criteria({ stage: 'prod' }));
    const before = [cluster.pick(request), cluster.pick(request), cluster.pick(request)].join('');
    cluster.setHosts(saying('new', { stage: 'dev' }), ...FLEET);
    assert.ok('ababab'.includes(before + cluster.pick(request)), before);
  });
});

test('the documented example: which hosts requests go to, by what they ask', () => {
  const subsets = subsetting([selector(['v', 'stage']), selector(['stage'], { fallback: 'none' })], {
    fallback: 'default-subset',
    defaultSubset: [['stage', '"prod"']],
  });
  const cluster = new BalancedCluster({ subsets, lbPolicy: 'LEAST_REQUEST' }).setHosts(
    ...[
      saying('1', { v: '1.0', stage: 'prod' }),
      saying('2', { v: '1.0', stage: 'prod' }),
      saying('3', { v: '1.1', stage: 'canary' }),
      saying('4', { v: '1.2-pre', stage: 'dev' }),
    ].map((each) => ({ ...each, recordAddress: lb.owner.recordAllocator.allocateHost(1) })),
  );
  const answers: readonly (readonly [Readonly<Record<string, string>> | null, string])[] = [
    [{ stage: 'canary' }, '3'],
    [{ v: '1.2-pre', stage: 'dev' }, '4'],
    [{ v: '1.0' }, '1,2'],
    [{ other: 'x' }, '1,2'],
    [null, '1,2'],
    [{ stage: 'test' }, 'none'],
  ];
  for (const [asks, hosts] of answers) assert.equal(chosen(cluster, asks), hosts, JSON.stringify(asks));
});

describe('a request whose subset does not exist', () => {
  const selectors = [selector(['stage'])];
  const cases: { name: string; fields: Partial<SubsetSettings>; hosts: string; counts: object }[] = [
    { name: 'has no host', fields: {}, hosts: 'none', counts: {} },
    {
      name: 'may have any host',
      fields: { fallback: 'any-host' },
      hosts: 'a,b,c,d',
      counts: { lb_subsets_fallback: 40 },
    },
    {
      name: 'may have one of the default subset',
      fields: { fallback: 'default-subset', defaultSubset: [['version', '"2"']] },
      hosts: 'b,c',
      counts: { lb_subsets_fallback: 40 },
    },
    {
      name: 'may have any host of a default subset that asks nothing',
      fields: { fallback: 'default-subset' },
      hosts: 'a,b,c,d',
      counts: { lb_subsets_fallback: 40 },
    },
    {
      name: 'has no host when the default subset is empty',
      fields: { fallback: 'default-subset', defaultSubset: [['version', '"9"']] },
      hosts: 'none',
      counts: { lb_healthy_panic: 40 },
    },
    {
      name: 'has any host then where that is asked for',
      fields: { fallback: 'default-subset', defaultSubset: [['version', '"9"']], panicModeAny: true },
      hosts: 'a,b,c,d',
      counts: { lb_healthy_panic: 40, lb_subsets_fallback_panic: 40 },
    },
    {
      name: 'has no host then, although selectors may lead to any host',
      fields: {
        selectors: [selector(['other'], { fallback: 'any-host' })],
        fallback: 'default-subset',
        defaultSubset: [['version', '"9"']],
      },
      hosts: 'none',
      counts: { lb_healthy_panic: 40 },
    },
    { name: 'has none without a fallback, whatever else', fields: { panicModeAny: true }, hosts: 'none', counts: {} },
  ];
  for (const { name, fields, hosts, counts } of cases) {
    test(name, () => {
      const cluster = new BalancedCluster({ subsets: subsetting(selectors, fields) }).setHosts(...FLEET);
      assert.equal(chosen(cluster, { stage: 'test' }), hosts);
      assert.deepEqual(cluster.counts, counts);
      assert.equal(chosen(cluster, null), hosts);
    });
  }

  test('counts as served by any host only where there is one', () => {
    const fields = { fallback: 'default-subset', defaultSubset: [['version', '"9"']], panicModeAny: true } as const;
    const subsets = subsetting(selectors, fields);
    const cluster = new BalancedCluster({ healthyPanicThreshold: 0, subsets });
    cluster.setHosts(saying('a', { stage: 'prod' }, { healthFlags: ILL }));
    assert.equal(chosen(cluster, { stage: 'test' }), 'none');
    assert.equal(cluster.counts.lb_subsets_fallback_panic, undefined);
  });

  test('goes by the selector of its keys before the cluster', () => {
    const fallbacks = { none: 'none', 'any-host': 'a,b,c,d', 'default-subset': 'd' } as const;
    for (const [fallback, hosts] of Object.entries(fallbacks)) {
      const subsets = subsetting([selector(['stage'], { fallback: fallback as keyof typeof fallbacks })], {
        fallback: 'default-subset',
        defaultSubset: [['version', '"3"']],
      });
      const cluster = new BalancedCluster({ subsets }).setHosts(...FLEET);
      assert.equal(chosen(cluster, { stage: 'test' }), hosts);
      assert.deepEqual(cluster.counts, {});
      assert.equal(chosen(cluster, { other: 'x' }), 'd');
    }
  });

  test('tries with fewer keys, over several steps, and then as the cluster has it', () => {
    const subsets = subsetting(
      [
        selector(['region', 'stage', 'version'], { fallback: 'fewer-keys', fallbackKeys: ['stage', 'version'] }),
        selector(['stage', 'version'], { fallback: 'fewer-keys', fallbackKeys: ['stage'] }),
        selector(['stage']),
        selector(['version', 'x'], { fallback: 'fewer-keys', fallbackKeys: ['x'] }),
      ],
      { fallback: 'default-subset', defaultSubset: [['version', '"3"']] },
    );
    const cluster = new BalancedCluster({ subsets }).setHosts(...FLEET);
    assert.equal(chosen(cluster, { region: 'eu', stage: 'prod', version: '2' }), 'b');
    assert.equal(chosen(cluster, { region: 'eu', stage: 'prod', version: '9' }), 'a,b');
    assert.equal(chosen(cluster, { region: 'eu', stage: 'test', version: '9' }), 'd');
    assert.equal(chosen(cluster, { version: '2', x: '1' }), 'd');
  });
});

describe('the hosts of a subset', () => {
  test('include those with a list that has the value, where lists stand for their elements', () => {
    const hosts = [saying('a', { v: ['1', '2', '2'], w: ['x', 'y'] }), saying('b', { v: '2', w: 'x' })];
    const selectors = [selector(['v']), selector(['v', 'w'])];
    const names = (listAsAny: boolean): Record<string, readonly number[]> =>
      Object.fromEntries(subsetsOf(hosts, subsetting(selectors, { listAsAny })).members);
    assert.deepEqual(names(true), {
      '"v":"1"': [0],
      '"v":"2"': [0, 1],
      '"v":"1","w":"x"': [0],
      '"v":"1","w":"y"': [0],
      '"v":"2","w":"x"': [0, 1],
      '"v":"2","w":"y"': [0],
    });
    assert.deepEqual(names(false), {
      '"v":["1","2","2"]': [0],
      '"v":"2"': [1],
      '"v":["1","2","2"],"w":["x","y"]': [0],
      '"v":"2","w":"x"': [1],
    });
    const subsets = subsetting([selector(['none'])], {
      fallback: 'default-subset',
      defaultSubset: [['v', '"1"']],
      listAsAny: true,
    });
    const silent = saying('c', { w: 'x' });
    assert.equal(chosen(new BalancedCluster({ subsets }).setHosts(...hosts, silent), null), 'a');
  });

  test('are one where the selector takes one, and the others are counted', () => {
    const hosts = [saying('a', { v: '1' }), saying('b', { v: '1' }), saying('c', { v: '2' }), saying('d', { v: '1' })];
    const { members, duplicates } = subsetsOf(hosts, subsetting([selector(['v'], { isSingleHost: true })]));
    assert.deepEqual(Object.fromEntries(members), { '"v":"1"': [0], '"v":"2"': [2] });
    assert.equal(duplicates, 2);
  });

  test('are told apart by the keys of selectors, of which the first one with the same keys counts', () => {
    const hosts = [saying('a', { v: '1', w: '2', vw: '3' }), saying('b', { v: '1', w: '2', vw: '3' })];
    const selectors = [selector(['v', 'w']), selector(['vw'], { isSingleHost: true }), selector(['v', 'w'])];
    const names = (...list: readonly SubsetSelector[]): Record<string, readonly number[]> =>
      Object.fromEntries(subsetsOf(hosts, subsetting(list)).members);
    assert.deepEqual(names(...selectors), { '"v":"1","w":"2"': [0, 1], '"vw":"3"': [0] });
    assert.deepEqual(names(selector(['vw'], { isSingleHost: true }), selector(['vw'])), { '"vw":"3"': [0] });
    assert.deepEqual(names(selector(['vw']), selector(['vw'], { isSingleHost: true })), { '"vw":"3"': [0, 1] });
  });

  test('are those that have all values, as a property over any hosts', () => {
    const value = fc.constantFrom('1', '2', '3');
    const says = fc.record({ a: value, b: value, c: value }, { requiredKeys: [] });
    const selectors = [selector(['a']), selector(['b', 'c']), selector(['a', 'b', 'c'])];
    const before = lb.owner.heap.usedBytes;
    fc.assert(
      fc.property(fc.array(says, { maxLength: 8 }), fc.record({ b: value, c: value }), (fleet, asks) => {
        const cluster = new BalancedCluster({ subsets: subsetting(selectors) });
        cluster.setHosts(...fleet.map((each, n) => saying(`${n}`, each)));
        const expected = fleet.flatMap(({ b, c }, n) => (b === asks.b && c === asks.c ? [`${n}`] : []));
        assert.equal(chosen(cluster, asks), expected.length === 0 ? 'none' : expected.join());
        cluster.close();
      }),
    );
    assert.equal(lb.owner.heap.usedBytes, before);
  });
});

describe('localities of a subset', () => {
  const inZone = (zone: string, localityWeight: number, stages: string): NamedHost[] =>
    [...stages].map((stage) =>
      saying(zone, { stage }, { locality: { region: '', zone, subZone: '' }, localityWeight }),
    );
  const shares = (fields: Partial<SubsetSettings>, weighsLocalities = true): { a: number; b: number } => {
    const cluster = new BalancedCluster({ weighsLocalities, subsets: subsetting([selector(['stage'])], fields) });
    // Of zone a, one host of four is of stage x; of zone b, three of three.
    cluster.setHosts(...inZone('a', 40, 'xyyy'), ...inZone('b', 10, 'xxx'));
    const request = contextOf(criteria({ stage: 'x' }));
    const picks = Array.from({ length: 2000 }, () => cluster.pick(request));
    return { a: picks.filter((name) => name === 'a').length, b: picks.filter((name) => name === 'b').length };
  };

  test('count for nothing unless that is asked for, then as configured, or scaled by what is in the subset', () => {
    assert.deepEqual(shares({}), { a: 500, b: 1500 });
    assert.deepEqual(shares({ weighsLocalities: true }, false), { a: 500, b: 1500 });
    assert.deepEqual(shares({ scalesLocalityWeights: true }), { a: 500, b: 1500 });
    assert.deepEqual(shares({ weighsLocalities: true }), { a: 1600, b: 400 });
    assert.deepEqual(shares({ weighsLocalities: true, scalesLocalityWeights: true }), { a: 1000, b: 1000 });
  });
});

/** Asks for JSON values instead of texts. */
function chosenFor(cluster: BalancedCluster, asks: Readonly<Record<string, unknown>>): string {
  const request = contextOf(new Criteria(Object.entries(asks).map(([key, value]) => [key, JSON.stringify(value)])));
  return [...new Set(Array.from({ length: 40 }, () => cluster.pick(request)))].sort().join();
}

describe('a list of what may be asked instead', () => {
  const selectors = [selector(['stage']), selector(['stage', 'version'])];
  const open = (fields: Partial<SubsetSettings> = {}): BalancedCluster =>
    new BalancedCluster({ subsets: subsetting(selectors, { takesAlternatives: true, ...fields }) }).setHosts(...FLEET);

  test('is gone through until a host is found, each of it over the rest of what is asked', () => {
    const cluster = open();
    const versions = (...list: readonly unknown[]): string =>
      chosenFor(cluster, { fallback_list: list.map((version) => ({ version })), stage: 'prod' });
    assert.equal(versions('2', '1'), 'b');
    assert.equal(versions('7', '1'), 'a');
    assert.equal(versions('7', '8'), 'none');
    const stages = { fallback_list: [{ stage: 'test' }, { stage: 'dev' }], stage: 'prod', version: '2' };
    assert.equal(chosenFor(cluster, stages), 'c');
  });

  test('ends in what is asked besides by what is no struct, or when it is empty', () => {
    const cluster = open();
    assert.equal(chosenFor(cluster, { fallback_list: [{ version: '7' }, 5], stage: 'prod' }), 'a,b');
    assert.equal(chosenFor(cluster, { fallback_list: [], stage: 'dev' }), 'c');
    assert.equal(chosenFor(cluster, { fallback_list: [] }), 'none');
    assert.equal(chosenFor(open({ fallback: 'any-host' }), { fallback_list: [{}] }), 'a,b,c,d');
  });

  test('asks nothing but the rest by what is no struct', () => {
    const cluster = open();
    for (const nothing of [null, 'text', true, ['list']]) {
      assert.equal(chosenFor(cluster, { fallback_list: [nothing], stage: 'prod' }), 'a,b', JSON.stringify(nothing));
    }
  });

  test('is found beside any other keys, and what it asks is put in order with them', () => {
    const hosts = ['x', 'y'].flatMap((app) =>
      ['dev', 'prod'].map((stage) => saying(`${app}-${stage}`, { app, stage })),
    );
    const subsets = subsetting([selector(['app', 'stage'])], { takesAlternatives: true });
    const cluster = new BalancedCluster({ subsets }).setHosts(...hosts);
    assert.equal(chosenFor(cluster, { app: 'x', fallback_list: [{ stage: 'test' }, { stage: 'dev' }] }), 'x-dev');
    assert.equal(chosenFor(cluster, { fallback_list: [{ app: 'z' }, { app: 'y' }], stage: 'dev' }), 'y-dev');
  });

  test('is missed by nobody who brings none', () => {
    assert.equal(chosen(open(), { stage: 'prod' }), 'a,b');
    assert.equal(chosen(open({ fallback: 'any-host' }), null), 'a,b,c,d');
  });

  test('goes past subsets whose hosts are all ill', () => {
    const cluster = open();
    const prod = saying('a', { stage: 'prod' }, { healthFlags: ILL });
    cluster.setHosts(prod, saying('c', { stage: 'dev' }));
    const asks = { fallback_list: [{ stage: 'prod' }, { stage: 'dev' }] };
    assert.equal(chosenFor(cluster, asks), 'a');
    const calm = new BalancedCluster({
      healthyPanicThreshold: 0,
      subsets: subsetting(selectors, { takesAlternatives: true }),
    });
    assert.equal(chosenFor(calm.setHosts(prod, saying('c', { stage: 'dev' })), asks), 'c');
  });

  test('is a key like others where it is no list, or the cluster does not take any', () => {
    assert.equal(chosenFor(open(), { fallback_list: 'x', stage: 'prod' }), 'none');
    assert.equal(chosenFor(open({ takesAlternatives: false }), { fallback_list: [{ stage: 'dev' }] }), 'none');
  });
});

describe('redundant keys', () => {
  const selectors = [selector(['stage']), selector(['version']), selector(['stage', 'version'])];
  const subsets = subsetting(selectors, { allowsRedundantKeys: true });

  test('do not count, and the largest selector does, of equals the first', () => {
    const cluster = new BalancedCluster({ subsets }).setHosts(...FLEET);
    assert.equal(chosen(cluster, { other: 'x', stage: 'prod' }), 'a,b');
    assert.equal(chosen(cluster, { other: 'x', stage: 'prod', version: '2' }), 'b');
    const two = [selector(['version']), selector(['stage'])];
    const first = new BalancedCluster({ subsets: subsetting(two, { allowsRedundantKeys: true }) }).setHosts(...FLEET);
    assert.equal(chosen(first, { stage: 'prod', version: '2' }), 'b,c');
  });

  test('count for a selector only when all of its keys are asked', () => {
    const pairs = [selector(['stage', 'version']), selector(['zone'])];
    const cluster = new BalancedCluster({ subsets: subsetting(pairs, { allowsRedundantKeys: true }) });
    cluster.setHosts(saying('a', { stage: 'prod', version: '1' }), saying('b', { zone: 'z' }));
    assert.equal(chosen(cluster, { stage: 'prod', zone: 'z' }), 'b');
  });

  test('count as they are where no selector has any of the others', () => {
    const cluster = new BalancedCluster({ subsets: { ...subsets, fallback: 'any-host' } }).setHosts(...FLEET);
    assert.equal(chosen(cluster, { other: 'x' }), 'a,b,c,d');
    assert.equal(cluster.counts.lb_subsets_fallback, 40);
  });

  test('count as they are where a selector has none', () => {
    const fields = { allowsRedundantKeys: true, takesAlternatives: true };
    const cluster = new BalancedCluster({ subsets: subsetting([selector([])], fields) }).setHosts(...FLEET);
    assert.equal(chosen(cluster, { stage: 'prod' }), 'none');
    assert.equal(chosenFor(cluster, { fallback_list: [{}] }), 'none');
  });

  test('lead to no subset unless they are let pass', () => {
    const strict = new BalancedCluster({ subsets: subsetting(selectors) }).setHosts(...FLEET);
    assert.equal(chosen(strict, { other: 'x', stage: 'prod' }), 'none');
  });
});
