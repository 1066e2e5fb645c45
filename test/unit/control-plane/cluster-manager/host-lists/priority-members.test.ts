// The members of a priority, counted and weighed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  classify,
  priorityState,
} from '../../../../../src/control-plane/cluster-manager/host-lists/priority-members.ts';
import { HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import { host } from '../../../../support/host-lists.ts';

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
