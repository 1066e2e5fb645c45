import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import type { ActiveCluster } from '../../../../src/control-plane/cluster-manager/active-cluster.ts';
import { HostRotation } from '../../../../src/control-plane/stat-sinks/host-rotation.ts';
import { CLUSTER_STATS } from '../../../../src/stats/index.ts';
import { HealthFlag } from '../../../../src/wasm/shared-memory.ts';
import { TcpReceiver } from '../../../support/metric-receivers.ts';
import { statsFixture } from '../../../support/stats.ts';

interface Member {
  readonly port: number;
  readonly healthFlags?: number;
  readonly priority?: number;
}

function clusterOf(...members: readonly Member[]): ActiveCluster {
  const hosts = members.map(({ port, healthFlags = 0, priority = 0 }) => ({
    address: { kind: 'ip', ip: '127.0.0.1', port },
    healthFlags,
    priority,
  }));
  const stats = statsFixture().store.scope('cluster.metrics.').allocate(CLUSTER_STATS);
  return { stats, settings: { sourceAddress: undefined }, members: () => hosts } as unknown as ActiveCluster;
}

/** Ports of so many choices. */
function choices(cluster: ActiveCluster, count: number): number[] {
  const rotation = new HostRotation();
  return Array.from({ length: count }, () => {
    const address = rotation.next(cluster)!.address;
    return address.kind === 'ip' ? address.port : 0;
  });
}

const SICK = HealthFlag.failedActiveHealthCheck;

describe('the hosts that main sends to', () => {
  it('take turns', () => {
    const ports = choices(clusterOf({ port: 1 }, { port: 2 }, { port: 3 }), 6);
    assert.deepEqual(ports.slice(0, 3), ports.slice(3));
    assert.deepEqual(ports.slice(0, 3).sort(), [1, 2, 3]);
  });

  it('are those in service, of the first priority that has some', () => {
    const members = [
      { port: 1, healthFlags: SICK },
      { port: 2, priority: 1 },
      { port: 3, priority: 1 },
      { port: 4, priority: 2 },
    ];
    assert.deepEqual(choices(clusterOf(...members), 2).sort(), [2, 3]);
  });

  it('are all of the first priority when none is in service', () => {
    const members = [
      { port: 1, healthFlags: SICK },
      { port: 2, healthFlags: SICK },
      { port: 3, healthFlags: SICK, priority: 1 },
    ];
    assert.deepEqual(choices(clusterOf(...members), 2).sort(), [1, 2]);
  });

  it('are none of a cluster without hosts, which counts that, or of no cluster', () => {
    const rotation = new HostRotation();
    const cluster = clusterOf();
    assert.equal(rotation.next(cluster), undefined);
    assert.equal(cluster.stats.value('upstream_cx_none_healthy'), 1);
    assert.equal(rotation.next(undefined), undefined);
  });

  it('are connected to', async () => {
    await using receiver = await TcpReceiver.open();
    const socket = new HostRotation().next(clusterOf({ port: receiver.port }))!.connect();
    await once(socket, 'connect');
    assert.equal(socket.remotePort, receiver.port);
    socket.destroy();
  });
});
