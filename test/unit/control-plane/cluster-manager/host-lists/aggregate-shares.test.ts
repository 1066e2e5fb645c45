// How requests of an aggregate cluster are shared out: as those of one cluster whose priorities are all of them, one behind the
// other.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type AggregateMember,
  aggregateShares,
} from '../../../../../src/control-plane/cluster-manager/host-lists/aggregate-shares.ts';
import { shareOut } from '../../../../../src/control-plane/cluster-manager/host-lists/host-shares.ts';
import { hostsByPriority } from '../../../../../src/control-plane/cluster-manager/host-lists/priority-members.ts';
import { HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import { host } from '../../../../support/host-lists.ts';

const ILL = HealthFlag.failedActiveHealthCheck;
const DEGRADED = HealthFlag.degradedActiveHealthCheck;
const RULES = { overprovisioningFactor: 140, weightedPriorityHealth: false };
const PANIC_THRESHOLD = 50;

function member(
  name: string,
  priorities: readonly (readonly number[])[],
  settings: Partial<AggregateMember['settings']> = {},
): AggregateMember {
  const hosts = priorities.flatMap((flags, priority) =>
    flags.map((healthFlags, at) => host(`${name}/${priority}/${at}`, { priority, healthFlags, weight: 1 + at })),
  );
  return { name, settings: { ...RULES, ...settings }, hosts };
}

/** `cluster own priority, kind: up to which of 100 requests`. */
function shares(...members: readonly AggregateMember[]): string[] {
  return aggregateShares(members, PANIC_THRESHOLD).shares.map(
    ({ cluster, ownPriority, isDegraded, upTo }) =>
      `${cluster} ${ownPriority}${isDegraded ? ' degraded' : ''}: ${upTo}`,
  );
}

describe('requests of an aggregate cluster are shared out', () => {
  it('to the first cluster as long as it can take them', () => {
    assert.deepEqual(shares(member('a', [[0, 0]]), member('b', [[0]])), ['a 0: 100', 'b 0: 100']);
  });

  it('to the next one as far as the first is ill, by the rules of each', () => {
    const half = member('a', [[0, ILL]]);
    assert.deepEqual(shares(half, member('b', [[0]])), ['a 0: 70', 'b 0: 100']);
    const lavish = member('a', [[0, ILL]], { overprovisioningFactor: 200 });
    assert.deepEqual(shares(lavish, member('b', [[0]])), ['a 0: 100', 'b 0: 100']);
    const weighed = member('a', [[0, ILL]], { weightedPriorityHealth: true });
    assert.deepEqual(shares(weighed, member('b', [[0]])), ['a 0: 46', 'b 0: 100']);
  });

  it('over all priorities of a cluster before the next cluster', () => {
    const b = member('b', [[0]]);
    assert.deepEqual(shares(member('a', [[ILL], [0]]), b), ['a 1: 100', 'b 0: 100']);
    assert.deepEqual(shares(member('a', [[ILL], [ILL]]), b), ['b 0: 100']);
  });

  it('to healthy hosts of any cluster before degraded ones', () => {
    assert.deepEqual(shares(member('a', [[DEGRADED]]), member('b', [[0]])), ['b 0: 100', 'a 0 degraded: 100']);
    assert.deepEqual(shares(member('a', [[DEGRADED]]), member('b', [[ILL]])), ['a 0 degraded: 100']);
  });

  it('to nobody where there is no host, and past clusters that have none', () => {
    assert.deepEqual(shares(), []);
    assert.deepEqual(shares(member('a', []), member('b', [])), []);
    const { shares: found, priorities } = aggregateShares([member('a', [[], [0]]), member('b', [[0]])], 50);
    assert.deepEqual(
      found.map(({ priority }) => priority),
      [0, 1],
    );
    assert.deepEqual(priorities, [
      { cluster: 'a', ownPriority: 1 },
      { cluster: 'b', ownPriority: 0 },
    ]);
  });

  it('by their numbers of hosts where all are in panic', () => {
    assert.deepEqual(shares(member('a', [[ILL, ILL, ILL]]), member('b', [[ILL]])), ['a 0: 75', 'b 0: 100']);
  });

  it('as those of one cluster with the same priorities', () => {
    const flags = fc.array(fc.constantFrom(0, ILL, DEGRADED, ILL | HealthFlag.excludedViaImmediateHealthCheckFail), {
      minLength: 1,
      maxLength: 6,
    });
    const clusters = fc.array(fc.array(flags, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(clusters, fc.integer({ min: 0, max: 100 }), fc.boolean(), (all, threshold, isWeighted) => {
        const rules = { ...RULES, weightedPriorityHealth: isWeighted };
        const members = all.map((priorities, at) => member(`c${at}`, priorities, rules));
        const found = aggregateShares(members, threshold);
        const hosts = members.flatMap(({ name, hosts: own }) =>
          own.map((each) => ({
            ...each,
            priority: found.priorities.findIndex((p) => p.cluster === name && p.ownPriority === each.priority),
          })),
        );
        const expected = shareOut(hosts, hostsByPriority(hosts, hosts.keys()), {
          ...rules,
          healthyPanicThreshold: threshold,
        });
        let upTo = 0;
        const wanted = expected.map(({ load, priority, availability }) => {
          upTo += load;
          return { upTo, priority, availability };
        });
        const single = found.priorities.length === 1;
        const got = found.shares
          .map(({ upTo: end, priority, availability }) => ({ upTo: end, priority, availability }))
          // One priority alone has no share that nobody uses.
          .filter((share, at, list) => !single || share.upTo > (list[at - 1]?.upTo ?? 0));
        assert.deepEqual(got, wanted);
        assert.equal(found.shares.at(-1)?.upTo, 100);
      }),
    );
  });
});
