// The members of a priority, counted and weighed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  classify,
  priorityState,
} from '../../../../../src/control-plane/cluster-manager/host-lists/priority-members.ts';
import { HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import { host } from '../../../../support/host-lists.ts';

describe('a host', () => {
  test('is healthy, degraded or neither by its flags, and left out of account by some of them', () => {
    const none = { healthy: false, degraded: false, excluded: false };
    const expected: Readonly<Record<keyof typeof HealthFlag, object>> = {
      failedActiveHealthCheck: none,
      failedOutlierCheck: none,
      failedEdsHealth: none,
      degradedActiveHealthCheck: { ...none, degraded: true },
      degradedEdsHealth: { ...none, degraded: true },
      pendingDynamicRemoval: { ...none, healthy: true },
      pendingActiveHealthCheck: { ...none, healthy: true, excluded: true },
      excludedViaImmediateHealthCheckFail: { ...none, healthy: true, excluded: true },
      activeHealthCheckTimeout: { ...none, healthy: true },
      edsStatusDraining: { ...none, excluded: true },
    };
    const classesOf = (healthFlags: number): object => {
      const { healthy, degraded, excluded } = classify([host('a', { healthFlags })], [0]);
      return { healthy: healthy.length === 1, degraded: degraded.length === 1, excluded: excluded.length === 1 };
    };
    for (const [bit, [name, classes]] of Object.entries(expected).entries()) {
      const flag = HealthFlag[name as keyof typeof HealthFlag];
      assert.equal(flag, 1 << bit, name);
      assert.deepEqual(classesOf(flag), classes, name);
    }
    assert.deepEqual(classesOf(0), { ...none, healthy: true });
    // What fails a host weighs more than what degrades it, and may leave it out of account besides.
    const all = HealthFlag.failedEdsHealth | HealthFlag.degradedEdsHealth | HealthFlag.pendingActiveHealthCheck;
    assert.deepEqual(classesOf(all), { ...none, excluded: true });
  });
});

describe('the state of a priority', () => {
  const hosts = [
    host('healthy', { weight: 2 }),
    host('healthy too', { weight: 5 }),
    host('slow', { weight: 11, healthFlags: HealthFlag.degradedEdsHealth }),
    host('ill', { weight: 23, healthFlags: HealthFlag.failedActiveHealthCheck }),
  ];
  const classes = classify(hosts, [...hosts.keys()]);
  const counts = { hosts: 4, healthy: 2, degraded: 1, excluded: 0 };

  test('is its hosts by number', () => {
    assert.deepEqual(priorityState(hosts, classes, false), { counts, capacity: counts });
  });

  test('is their weights beside that where health goes by weight', () => {
    const capacity = { hosts: 41, healthy: 7, degraded: 11, excluded: 0 };
    assert.deepEqual(priorityState(hosts, classes, true), { counts, capacity });
  });
});
