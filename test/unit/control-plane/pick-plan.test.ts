import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { buildPickPlan } from '../../../src/control-plane/cluster-manager/pick-plan.ts';
import { LoadBalancer } from '../../../src/data-plane/upstream/load-balancer/load-balancer.ts';
import { RoundRobin } from '../../../src/data-plane/upstream/load-balancer/round-robin.ts';
import type { LoadBalancingPolicy } from '../../../src/snapshot/index.ts';
import { openPicker } from '../../../src/wasm/lb.ts';
import { HealthFlag } from '../../../src/wasm/shared-memory.ts';
import { openLb } from '../../support/lb.ts';

const lb = openLb();

function hostsOf(weights: readonly number[]): { readonly recordAddress: number; readonly weight: number }[] {
  return weights.map((weight) => ({ recordAddress: lb.owner.recordAllocator.allocateHost(weight), weight }));
}

function planKind(lbPolicy: LoadBalancingPolicy, weights: readonly number[], bias?: number): string | undefined {
  const settings = { lbPolicy, leastRequest: { choiceCount: 2, activeRequestBias: bias } };
  return buildPickPlan(lb.tables, settings, hostsOf(weights))?.kind;
}

describe('the balancer of a cluster in shared memory', () => {
  it('is there for policies that look at counts of all workers or at unequal weights', () => {
    assert.equal(planKind('LEAST_REQUEST', [1, 1, 1]), 'least-request');
    assert.equal(planKind('LEAST_REQUEST', [1, 2]), 'schedule');
    assert.equal(planKind('LEAST_REQUEST', [1, 1], -3), 'schedule');
    assert.equal(planKind('ROUND_ROBIN', [1, 5]), 'schedule');
    assert.equal(planKind('ROUND_ROBIN', [2, 2]), undefined);
    assert.equal(planKind('RANDOM', [1, 5]), undefined);
    assert.equal(planKind('LEAST_REQUEST', [1]), undefined);
  });

  it('sends requests to the host that is less busy over all workers', () => {
    const hosts = hostsOf([1, 1]);
    const settings = {
      lbPolicy: 'LEAST_REQUEST',
      leastRequest: { choiceCount: 16, activeRequestBias: undefined },
    } as const;
    const picker = openPicker(lb.kernel, buildPickPlan(lb.tables, settings, hosts)!, 7);
    lb.owner.shared.records.addActiveRequests(hosts[0]!.recordAddress, 5);
    for (let pick = 0; pick < 100; pick += 1) assert.equal(picker.pick(), 1);
  });

  it('picks only while every host is eligible', () => {
    let shared = 0;
    const openShared = () => ({ pick: () => shared++ % 2 });
    const balancer = new LoadBalancer<{ weight: number; priority: number; healthFlags: number }>({
      healthyPanicThreshold: 50,
      overprovisioningFactor: 140,
      weightedPriorityHealth: false,
      random: { u32: () => 0 },
      createPicker: () => new RoundRobin(0),
      onPanic: () => {},
    });
    const healthy = { weight: 1, priority: 0, healthFlags: 0 };
    const failed = { ...healthy, healthFlags: HealthFlag.failedActiveHealthCheck };
    const next = (...hosts: (typeof healthy)[]): number => {
      shared = 0;
      balancer.setHosts(hosts, openShared);
      balancer.next();
      return shared;
    };
    assert.equal(next({ ...healthy }, { ...healthy }), 1);
    assert.equal(next({ ...healthy }, { ...healthy }, failed), 0);
    assert.equal(next({ ...healthy }, { ...healthy, priority: 1 }), 0);
    assert.equal(next(failed, failed), 0);
  });
});
