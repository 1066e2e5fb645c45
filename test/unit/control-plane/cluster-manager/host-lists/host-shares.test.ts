// Which lists requests go to: those that get some, and those that could take some when others are used up.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { shareOut } from '../../../../../src/control-plane/cluster-manager/host-lists/host-shares.ts';
import { hostsByPriority } from '../../../../../src/control-plane/cluster-manager/host-lists/priority-members.ts';
import { HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import { host } from '../../../../support/host-lists.ts';

const LIMITS = { overprovisioningFactor: 200, healthyPanicThreshold: 30, weightedPriorityHealth: false };
const ILL = HealthFlag.failedActiveHealthCheck;
const DEGRADED = HealthFlag.degradedActiveHealthCheck;

/** `list of priority: load of what could be taken`, for hosts of these flags by priority. */
function shares(...priorities: readonly (readonly number[])[]): string[] {
  const hosts = priorities.flatMap((flags, priority) =>
    flags.map((healthFlags, at) => host(`${priority}/${at}`, { priority, healthFlags })),
  );
  return shareOut(hosts, hostsByPriority(hosts, hosts.keys()), LIMITS).map(
    ({ load, priority, hosts: list, availability }) => `${list} ${priority}: ${load} of ${availability}`,
  );
}

describe('requests are shared out among', () => {
  it('the healthy hosts of one priority, and nobody else', () => {
    assert.deepEqual(shares([0, 0]), ['healthy 0: 100 of 100']);
    // What the degraded one could take does not matter where there is no other priority.
    assert.deepEqual(shares([0, DEGRADED]), ['healthy 0: 100 of 100']);
  });

  it('all hosts of a priority in panic', () => {
    assert.deepEqual(shares([0, ILL, ILL, ILL]), ['all 0: 100 of 50']);
  });

  it('those who could take requests when others are used up, though they get none now', () => {
    assert.deepEqual(shares([0], [0]), ['healthy 0: 100 of 100', 'healthy 1: 0 of 100']);
    assert.deepEqual(shares([0], [DEGRADED]), ['healthy 0: 100 of 100', 'degraded 1: 0 of 100']);
  });

  it('nobody of a priority that can take nothing', () => {
    assert.deepEqual(shares([ILL], [0]), ['healthy 1: 100 of 100']);
    assert.deepEqual(shares([0], [ILL]), ['healthy 0: 100 of 100']);
  });
});
