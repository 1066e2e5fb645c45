// server.*: gauges of the process as a whole, brought up to date at each flush and before a listing.

import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { ProcessMemory } from '../../base/process-memory.ts';
import { SERVER_STATS, SERVER_VERSION_TEXT, type StatsStore } from '../../stats/index.ts';
import type { CertificateInventory } from '../tls/certificate-inventory.ts';
import type { MemoryReport } from './memory-report.ts';
import type { RestartFacts } from './restart-facts.ts';
import { SERVER_STATES, type ServerState } from './server-state.ts';

export interface ServerGaugesDependencies {
  readonly stats: StatsStore;
  readonly clock: Clock;
  readonly concurrency: number;
  /** Of the main thread; workers count theirs themselves. */
  readonly faults: Pick<FaultBoundary, 'count' | 'run'>;
  /** First digits of the source revision as a number; 0 when unknown. */
  readonly revisionNumber: number;
  /** As --version has it. */
  readonly versionText: string;
  readonly state: () => ServerState;
  /** Of all threads together. */
  readonly memory: () => Promise<Pick<MemoryReport, 'allocated' | 'heap'>>;
  /** Open downstream connections over all listeners. */
  readonly connections: () => number;
  readonly certificates: Pick<CertificateInventory, 'daysUntilFirstExpires' | 'secondsUntilFirstStapleExpires'>;
  /** Log lines lost since the start of the process. */
  readonly droppedLogLines: () => number;
  readonly restart: RestartFacts;
}

/** What a gauge shows when no certificate is loaded: nothing expires. */
const NO_EXPIRY = 2 ** 31 - 1;

export class ServerGauges {
  readonly #deps: ServerGaugesDependencies;
  readonly #block;
  readonly #startedMs: number;
  #droppedLogLines = 0;
  readonly #memory = new ProcessMemory();
  /** As it was known last; undefined before the workers have been asked. */
  #allThreads: Pick<MemoryReport, 'allocated' | 'heap'> | undefined;
  #isAsking = false;
  #countedFaults = 0;

  constructor(deps: ServerGaugesDependencies) {
    this.#deps = deps;
    const scope = deps.stats.scope('server.');
    this.#block = scope.allocate(SERVER_STATS);
    this.#startedMs = deps.clock.monotonicMs();
    this.#block.set('concurrency', deps.concurrency);
    this.#block.set('version', deps.revisionNumber);
    scope.textReadout(SERVER_VERSION_TEXT).set(deps.versionText);
    this.#block.set('hot_restart_epoch', deps.restart.epoch);
    this.#block.set('hot_restart_generation', deps.restart.generation);
    this.#showExpiry();
  }

  /** Of this process. */
  get uptimeSeconds(): number {
    return Math.floor((this.#deps.clock.monotonicMs() - this.#startedMs) / 1_000);
  }

  /** Of all processes that have followed one another by hot restarts. */
  get uptimeAllEpochsSeconds(): number {
    return Math.floor((this.#deps.clock.monotonicMs() - this.#startedMs + this.#deps.restart.earlierMs) / 1_000);
  }

  /** The server is live from now on. */
  recordInitialization(): void {
    this.#block.record('initialization_time_ms', this.#deps.clock.monotonicMs() - this.#startedMs);
  }

  countWorkerRestart(): void {
    this.#block.add('worker_restarts');
  }

  countStaticUnknownFields(count: number): void {
    this.#count('static_unknown_fields', count);
  }

  countDynamicUnknownField(): void {
    this.#block.add('dynamic_unknown_fields');
  }

  countDroppedFlush(): void {
    this.#block.add('dropped_stat_flushes');
  }

  update(): void {
    const { count: faults } = this.#deps.faults;
    const state = this.#deps.state();
    const parent = this.#deps.restart.parentLoad();
    this.#showMemory();
    // Not before: the start has no time for it, and the workers have nothing.
    if (state === 'LIVE' || state === 'DRAINING') this.#askMemory();
    this.#block.set('uptime', this.uptimeAllEpochsSeconds);
    this.#block.set('state', SERVER_STATES[state]);
    this.#block.set('live', state === 'LIVE' ? 1 : 0);
    this.#block.set('stats_recent_lookups', this.#deps.stats.lookups.total);
    this.#block.set('parent_connections', parent.connections);
    this.#block.set('total_connections', this.#deps.connections() + parent.connections);
    this.#showExpiry();
    const droppedLogLines = this.#deps.droppedLogLines();
    this.#count('dropped_log_lines', droppedLogLines - this.#droppedLogLines);
    this.#droppedLogLines = droppedLogLines;
    this.#count('contained_faults', faults - this.#countedFaults);
    this.#countedFaults = faults;
  }

  /** A counter that has nothing to count is not written, and so stays out of listings of what is used. */
  #count(name: 'static_unknown_fields' | 'dropped_log_lines' | 'contained_faults', amount: number): void {
    if (amount > 0) this.#block.add(name, amount);
  }

  #showExpiry(): void {
    const { certificates, clock } = this.#deps;
    const nowMs = clock.wallMs();
    this.#block.set('days_until_first_cert_expiring', certificates.daysUntilFirstExpires(nowMs) ?? NO_EXPIRY);
    const seconds = certificates.secondsUntilFirstStapleExpires(nowMs);
    if (seconds !== undefined) this.#block.set('seconds_until_first_ocsp_response_expiring', seconds);
  }

  /** The heap of this thread alone, as long as nothing is known of the others. */
  #showMemory(): void {
    const own = this.#memory.read();
    const { allocated, heap } = this.#allThreads ?? { allocated: own.allocatedBytes, heap: own.heapBytes };
    this.#block.set('memory_allocated', allocated + this.#deps.restart.parentLoad().memoryBytes);
    this.#block.set('memory_heap_size', heap);
    this.#block.set('memory_physical_size', own.residentBytes);
  }

  /** A worker that is stuck answers late: nobody waits for it. */
  #askMemory(): void {
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#deps.faults.run('a report of memory', async () => {
      const report = await this.#deps.memory().catch(() => undefined);
      this.#isAsking = false;
      // Not known, it stays as it was.
      if (report === undefined) return;
      this.#allThreads = report;
      this.#showMemory();
    });
  }
}
