// Takes over what the process before this one counts, for as long as that one is there: counters go on from its counts, gauges
// show what both hold. Main thread.

import type { Scope } from '../scope.ts';
import type { StatsStore } from '../store.ts';
import type { StatBatch } from './stat-batch.ts';

/** Gauges of one process: a sum of them over two would be wrong, or they are worked out from both elsewhere. */
const OWN_PREFIXES = ['server.', 'runtime.', 'listener_manager.', 'cluster_manager.', 'overload.'];
const OWN_NAMES = new Set([
  'membership_total',
  'membership_healthy',
  'membership_degraded',
  'membership_excluded',
  'membership_change',
  'max_host_weight',
  'warming_state',
  'version',
  'connected_state',
]);

export class StatImport {
  readonly #stats: StatsStore;
  /** Of owners that this process has not. */
  readonly #scopes = new Map<string, Scope>();
  /** Names of those with a part of the other process. */
  #gauges: ReadonlySet<string> = new Set();
  #coming = new Set<string>();

  constructor(stats: StatsStore) {
    this.#stats = stats;
  }

  /** Takes a batch in; `end` follows the last one. */
  take({ counters, increments, flushed, gauges, values }: StatBatch): void {
    for (const [at, name] of counters.entries()) {
      const cell = this.#cell('counter', name);
      if (cell !== undefined) this.#stats.importCounter(cell, increments[at]!, flushed[at]!);
    }
    for (const [at, name] of gauges.entries()) {
      if (isOfOneProcess(name)) continue;
      const cell = this.#cell('gauge', name);
      if (cell === undefined) continue;
      this.#stats.importGauge(cell, values[at]!);
      this.#coming.add(name);
    }
  }

  /** All batches of one telling have come: gauges that were not among them are no more. */
  end(): void {
    for (const name of this.#gauges) if (!this.#coming.has(name)) this.#clear(name);
    this.#gauges = this.#coming;
    this.#coming = new Set();
  }

  /** The other process has left, and with it what it held. */
  close(): void {
    this.end();
    this.end();
    for (const scope of this.#scopes.values()) scope.close();
    this.#scopes.clear();
  }

  #clear(name: string): void {
    const cell = this.#stats.cellForImport('gauge', name);
    if (cell !== undefined) this.#stats.importGauge(cell, 0);
  }

  #cell(kind: 'counter' | 'gauge', name: string): number | undefined {
    const cell = this.#stats.cellForImport(kind, name);
    if (cell !== undefined) return cell;
    const prefix = name.slice(0, name.lastIndexOf('.') + 1);
    if (prefix === '' || this.#scopes.has(prefix) || this.#stats.accepts?.(name) === false) return undefined;
    this.#scopes.set(prefix, this.#stats.scope(prefix));
    return this.#stats.cellForImport(kind, name);
  }
}

function isOfOneProcess(name: string): boolean {
  return OWN_PREFIXES.some((prefix) => name.startsWith(prefix)) || OWN_NAMES.has(name.slice(name.lastIndexOf('.') + 1));
}
