// The overload manager of a server, where its bootstrap has one. Main thread.

import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { collectGarbage } from '../../base/garbage.ts';
import type { BootstrapConfig } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { StatsStore } from '../../stats/index.ts';
import { OverloadManager, type OverloadPublisher } from './overload-manager.ts';

/** What of the server it looks at. */
export interface OverloadedServer {
  readonly bootstrap: Pick<BootstrapConfig, 'overload'>;
  readonly stats: StatsStore;
  readonly workers: OverloadPublisher;
  readonly listenerManager: { activeConnections(): number };
  memoryReport(): Promise<{ readonly allocated: number }>;
}

export function makeOverloadManager(
  server: OverloadedServer,
  { clock, faults, log }: { readonly clock: Clock; readonly faults: FaultBoundary; readonly log: Logger },
): OverloadManager | undefined {
  const { bootstrap, stats, workers } = server;
  if (bootstrap.overload === undefined) return undefined;
  const resources = {
    heapBytes: async () => (await server.memoryReport()).allocated,
    connections: () => server.listenerManager.activeConnections(),
  };
  return new OverloadManager({
    settings: bootstrap.overload,
    stats,
    clock,
    faults,
    log,
    workers,
    resources,
    shrinkHeap: collectGarbage,
  });
}

/** Most connections from clients, where a monitor says so. */
export function connectionLimitOf({ overload }: Pick<BootstrapConfig, 'overload'>): number | undefined {
  const limits = (overload?.monitors ?? []).flatMap(({ resource }) =>
    resource.kind === 'connections' ? [resource.max] : [],
  );
  return limits.length === 0 ? undefined : Math.min(...limits);
}
