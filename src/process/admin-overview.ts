// What only the home page of the admin interface reads: the last minutes of traffic, kept from the start of the interface on, and
// the process as the system sees it.

import { readdirSync } from 'node:fs';
import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import type { OverviewView, ProcessView, RecentTimesView } from '../admin/index.ts';
import type { Clock } from '../base/clock.ts';
import { ProcessMemory } from '../base/process-memory.ts';
import type { SystemCalls } from '../base/system-calls.ts';
import { type ActiveHost, History, HostTimes, type Server, type WorkerPool } from '../control-plane/index.ts';
import type { Loggers } from '../log/index.ts';
import { troublesOf } from './admin-troubles.ts';
import { certificateTroubles } from './certificate-troubles.ts';
import { sourceTroubles } from './source-troubles.ts';

export interface AdminOverviewParts {
  readonly server: Server;
  readonly workers: WorkerPool;
  readonly clock: Clock;
  readonly loggers: Pick<Loggers, 'dropped'>;
  readonly systemCalls: SystemCalls | undefined;
  readonly epoch: number;
  readonly warnings: readonly string[];
}

export class AdminOverview implements OverviewView {
  readonly history: History;
  readonly process: ProcessView;
  readonly clusters: OverviewView['clusters'];
  readonly sources: OverviewView['sources'];
  readonly hostTimes: OverviewView['hostTimes'];
  readonly #times: HostTimes;

  constructor({ server, workers, clock, loggers, systemCalls, epoch, warnings }: AdminOverviewParts) {
    const memory = new ProcessMemory();
    const main = mainThreadUse();
    this.history = new History({
      clock,
      stats: server.stats,
      listeners: () => server.listenerManager.listeners(),
      clusters: () => server.clusterManager.clusters(),
      takeThreadUses: () => [main(), ...workers.takeEventLoopUses()],
    });
    this.process = {
      epoch,
      memory: {
        residentBytes: () => memory.read().residentBytes,
        heapBytes: () => memory.read().heapBytes,
      },
      descriptors: () => openDescriptors(systemCalls),
      eventLoopUses: () =>
        this.history.threadUses.map((use, at) => ({ name: at === 0 ? 'main' : `worker ${at - 1}`, use })),
      troubles: () => [
        ...troublesOf(server, loggers),
        ...sourceTroubles(server.sources()),
        ...certificateTroubles(server.certificates.list(), clock.wallMs()),
      ],
      warnings,
    };
    this.#times = new HostTimes({ clock, stats: server.stats });
    this.hostTimes = (cluster, wanted) => {
      const hosts = server.clusterManager.cluster(cluster)?.members() ?? [];
      const known = hosts.filter((host) => wanted.has(host)).map((host) => [host, this.#times.look(host)] as const);
      return new Map(known.filter((entry): entry is [ActiveHost, RecentTimesView] => entry[1] !== undefined));
    };
    this.clusters = () => server.clusterManager.clusters();
    this.sources = () => server.sources();
  }

  close(): void {
    this.history.stop();
    this.#times.close();
  }
}

/** Asked again and again: the share of its time that this thread has been at work since the last time. */
function mainThreadUse(): () => number {
  let before: EventLoopUtilization | undefined;
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return Math.max(0, utilization);
  };
}

function openDescriptors(systemCalls: SystemCalls | undefined): ReturnType<ProcessView['descriptors']> {
  try {
    // One of them is that of the folder itself.
    return { open: readdirSync('/proc/self/fd').length - 1, limit: systemCalls?.descriptorLimit() };
  } catch {
    return undefined;
  }
}
