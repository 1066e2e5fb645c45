// The balancer of a cluster in a worker: when it reads the lists that main has published, what it keeps from one to the
// next, and requests that bring no hash. What the lists hold: test/unit/control-plane/cluster-manager/host-lists/.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  Criteria,
  contextAsking,
  contextOf,
  contextWith,
  RequestHash,
} from '../../../../../src/data-plane/upstream/load-balancer/pick-context.ts';
import type { SubsetSettings } from '../../../../../src/snapshot/index.ts';
import { BalancedCluster, host, type NamedHost } from '../../../../support/host-lists.ts';

const BY_STAGE: SubsetSettings = {
  selectors: [{ keys: ['stage'], fallback: 'cluster', fallbackKeys: [], isSingleHost: false }],
  fallback: 'any-host',
  defaultSubset: [],
  weighsLocalities: false,
  scalesLocalityWeights: false,
  panicModeAny: false,
  listAsAny: false,
  takesAlternatives: false,
  allowsRedundantKeys: false,
};

const named = (...names: readonly string[]): NamedHost[] => names.map((name) => host(name));

function staged(stage: string, ...names: readonly string[]): NamedHost[] {
  const subsetValues = [{ key: 'stage', value: JSON.stringify(stage), elements: null }];
  return names.map((name) => host(name, { subsetValues }));
}

const asking = (stage: string) => contextOf(new Criteria([['stage', JSON.stringify(stage)]]));

/** Begins each list with its first host, and counts how often a list was begun. */
function countedSeeds() {
  const seeds = { drawn: 0, u32: () => seeds.drawn++ * 0 };
  return seeds;
}

test('lists are read with the first pick, those that follow as soon as they are there', () => {
  const seeds = countedSeeds();
  const cluster = new BalancedCluster({ lbPolicy: 'RANDOM' }, 1, seeds);
  cluster.setHosts(...named('a', 'b'));
  assert.equal(seeds.drawn, 0);
  cluster.pick();
  assert.equal(seeds.drawn, 1);
  cluster.setHosts(...named('a', 'b', 'c'));
  assert.equal(seeds.drawn, 2);
  cluster.pick();
  assert.equal(seeds.drawn, 2);
});

describe('the turns of a subset', () => {
  const prod = staged('prod', 'a', 'b', 'c');
  const dev = staged('dev', 'd');

  test('go on when lists change', () => {
    const cluster = new BalancedCluster({ subsets: BY_STAGE }, 1, countedSeeds());
    const picked = [1, 2, 3].map(() => cluster.setHosts(...prod, ...dev).pick(asking('prod')));
    assert.deepEqual(picked.toSorted(), ['a', 'b', 'c']);
    const others = [1, 2, 3, 4].map(() => cluster.setHosts(...prod, ...dev).pick());
    assert.deepEqual(others.toSorted(), ['a', 'b', 'c', 'd']);
  });

  test('begin anew when it had no hosts meanwhile', () => {
    const cluster = new BalancedCluster({ subsets: BY_STAGE }, 1, countedSeeds());
    const [first, second] = [1, 2].map(() => cluster.setHosts(...prod, ...dev).pick(asking('prod')));
    assert.notEqual(first, second);
    cluster.setHosts(...dev);
    assert.equal(cluster.setHosts(...prod, ...dev).pick(asking('prod')), first);
  });
});

describe('requests without a hash, where hosts are chosen by hashes,', () => {
  for (const lbPolicy of ['RING_HASH', 'MAGLEV'] as const) {
    test(`go to all hosts: ${lbPolicy}`, () => {
      const cluster = new BalancedCluster({ lbPolicy }).setHosts(...named('a', 'b', 'c'));
      for (const request of [null, contextOf(null), new RequestHash(null)]) {
        const picked = new Set(Array.from({ length: 100 }, () => cluster.pick(request)));
        assert.equal(picked.size, 3);
      }
    });

    test(`go to all hosts of the subset that they ask for: ${lbPolicy}`, () => {
      const cluster = new BalancedCluster({ lbPolicy, subsets: BY_STAGE });
      cluster.setHosts(...staged('prod', 'a', 'b'), ...staged('dev', 'c', 'd'));
      const picked = new Set(Array.from({ length: 100 }, () => cluster.pick(asking('prod'))));
      assert.deepEqual([...picked].toSorted(), ['a', 'b']);
    });
  }
});

describe('what filters say of hosts', () => {
  const route = contextAsking([
    ['stage', '"prod"'],
    ['version', '"1"'],
  ]);

  test('is nothing in other namespaces, and where there is none', () => {
    assert.equal(contextWith(route, [null, undefined, { other: { stage: 'dev' } }, { 'envoy.lb': {} }]), route);
    assert.equal(contextWith(null, [undefined]), null);
  });

  test('goes before what the route asks, and that of the request before that of its connection', () => {
    const said = [
      { 'envoy.lb': { stage: 'dev', zone: 'a' } },
      { 'proxy.lb': { zone: ['b'] }, 'envoy.lb': { zone: 'c' } },
    ];
    const expected = new Criteria([
      ['stage', '"dev"'],
      ['version', '"1"'],
      ['zone', '["b"]'],
    ]);
    assert.equal(contextWith(route, said)!.criteria!.name, expected.name);
    assert.equal(contextWith(null, [{ 'envoy.lb': { stage: 'prod' } }])!.criteria!.name, asking('prod').criteria!.name);
  });
});

test('what a route asks of hosts is known of its requests, and of others nothing', () => {
  assert.equal(contextAsking(null), null);
  const { criteria } = contextAsking([['stage', '"prod"']])!;
  assert.equal(criteria!.name, new Criteria([['stage', '"prod"']]).name);
});
