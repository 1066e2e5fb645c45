// The hosts of clusters in turn, for what main itself sends to them: those that are in service first. Main thread.

import type { Socket } from 'node:net';
import type { Address } from '../../base/address.ts';
import { HealthMask } from '../../wasm/shared-memory.ts';
import type { ActiveCluster } from '../cluster-manager/active-cluster.ts';
import type { ActiveHost } from '../cluster-manager/active-host.ts';
import { connectTo } from '../cluster-manager/health-check/probe.ts';

/** A host that was chosen, with the cluster that counts what is sent to it. */
export interface ClusterHost {
  readonly cluster: ActiveCluster;
  readonly address: Address;
  /** From the source address of the cluster. */
  connect(): Socket;
}

export class HostRotation {
  #turn = 0;

  /** @returns undefined for none. */
  next(cluster: ActiveCluster | undefined): ClusterHost | undefined {
    const host = cluster && this.nextHost(cluster);
    if (cluster === undefined || host === undefined) return undefined;
    const { address } = host;
    const { sourceAddress } = cluster.settings;
    return { cluster, address, connect: () => connectTo(address, { sourceAddress, systemCalls: undefined }) };
  }

  /** @returns undefined for none. */
  nextHost(cluster: ActiveCluster): ActiveHost | undefined {
    const members = cluster.members();
    const healthy = members.filter(({ healthFlags }) => (healthFlags & HealthMask.unhealthy) === 0);
    // With none in service all are as good, as for traffic in panic.
    const candidates = ofFirstPriority(healthy.length > 0 ? healthy : members);
    if (candidates.length === 0) {
      cluster.stats.add('upstream_cx_none_healthy');
      return undefined;
    }
    this.#turn = (this.#turn + 1) % candidates.length;
    return candidates[this.#turn]!;
  }
}

function ofFirstPriority(hosts: readonly ActiveHost[]): readonly ActiveHost[] {
  const first = Math.min(...hosts.map(({ priority }) => priority));
  return hosts.filter(({ priority }) => priority === first);
}
