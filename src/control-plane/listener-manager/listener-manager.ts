// The set of listeners: makes their stats, has the workers open them, and knows the addresses in use.
// Main thread. Static listeners only, so nothing ever leaves the set.

import { type Address, formatAddress } from '../../base/address.ts';
import { WeirError } from '../../base/errors.ts';
import { GLOBAL_CONNECTION_LIMIT } from '../../base/runtime-values.ts';
import { removeStaleSocket } from '../../base/stale-socket.ts';
import type { Logger, Loggers } from '../../log/index.ts';
import type { ListenerSettings } from '../../snapshot/index.ts';
import { LISTENER_MANAGER_STATS, LISTENER_STATS } from '../../stats/index.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import { type ListenerSnapshotDependencies, makeListenerSnapshot } from './listener-snapshot.ts';

export interface ListenerManagerDependencies extends Omit<ListenerSnapshotDependencies, 'globalRecord'> {
  readonly workers: WorkerPool;
  readonly loggers: Loggers;
}

interface ActiveListener {
  readonly name: string;
  /** With the port in use where the configuration said 0. */
  readonly addresses: readonly Address[];
}

export class ListenerManager {
  readonly #deps: ListenerManagerDependencies & ListenerSnapshotDependencies;
  readonly #log: Logger;
  readonly #stats;
  readonly #listeners: ActiveListener[] = [];
  /** Cells of downstream_cx_active; several listeners may share one. */
  readonly #connectionCells = new Set<number>();
  #nextId = 1;

  constructor(deps: ListenerManagerDependencies) {
    const hasGlobalLimit = deps.runtime.integer(GLOBAL_CONNECTION_LIMIT) !== undefined;
    this.#deps = { ...deps, globalRecord: hasGlobalLimit ? deps.memory.recordAllocator.allocateCount() : null };
    this.#log = deps.loggers.get('config');
    this.#stats = deps.stats.scope('listener_manager.').allocate(LISTENER_MANAGER_STATS);
  }

  /**
   * Opens a listener of the bootstrap in every worker.
   * @throws WeirError WEIR_LISTEN_FAILED naming the listener and the address.
   */
  async addStatic(settings: ListenerSettings): Promise<void> {
    const snapshot = makeListenerSnapshot(this.#nextId++, settings, this.#deps);
    this.#connectionCells.add(snapshot.statBlock + LISTENER_STATS.index.downstream_cx_active);
    const { addresses } = settings;
    this.#stats.add('listener_added');
    try {
      for (const address of addresses) if (address.kind === 'pipe') await removeStaleSocket(address.path);
      const ports = await this.#deps.workers.openListener(snapshot);
      const bound = addresses.map((address, index) => withPort(address, ports[index]!));
      this.#listeners.push({ name: settings.name, addresses: bound });
      this.#stats.add('listener_create_success', this.#deps.concurrency);
      this.#stats.set('total_listeners_active', this.#listeners.length);
      this.#log.info(`listener ${settings.name} accepts on ${bound.map(formatAddress).join(', ')}`);
    } catch (error) {
      this.#stats.add('listener_create_failure');
      const reason = error instanceof Error ? error.message : String(error);
      const text = `error adding listener '${formatAddress(addresses[0])}' (${settings.name}): ${reason}`;
      throw new WeirError('WEIR_LISTEN_FAILED', text, { source: 'config', cause: error });
    }
  }

  /** All static listeners are open in all workers. */
  markWorkersStarted(): void {
    this.#stats.set('workers_started', 1);
  }

  listeners(): Iterable<ActiveListener> {
    return this.#listeners;
  }

  /** Open downstream connections over all listeners and workers. */
  activeConnections(): number {
    let total = 0;
    for (const cell of this.#connectionCells) total += this.#deps.stats.cells.total(cell);
    return total;
  }
}

function withPort(address: Address, port: number): Address {
  return address.kind === 'ip' ? { ...address, port } : address;
}
