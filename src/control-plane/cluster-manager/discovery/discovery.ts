// Finds the members of one cluster, and tells of each change. Main thread.

import type { Clock } from '../../../base/clock.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import type { Random } from '../../../base/random.ts';
import type { Logger } from '../../../log/index.ts';
import type { HostSettings } from '../../../snapshot/index.ts';
import type { DnsResolvers } from '../../dns/resolvers.ts';

export interface Discovery {
  start(): void;
  /** Nothing is told any more. Idempotent. */
  stop(): void;
}

/** Whom a discovery tells. */
export interface DiscoveryListener {
  /** All members as they are from now on, each address once. */
  onHosts(hosts: readonly HostSettings[]): void;
  /** The first answer has come, or failed: nobody needs to wait any longer. Once. */
  onReady(): void;
}

/** The counters of a cluster that discovery writes. */
export interface DiscoveryStats {
  add(name: 'update_attempt' | 'update_success' | 'update_failure' | 'update_empty' | 'update_no_rebuild'): void;
}

/** What discovery works with; the same for all clusters. */
export interface DiscoveryTools {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly random: Random;
  readonly resolvers: Pick<DnsResolvers, 'hold'>;
  readonly log: Logger;
}
