// The listeners that are open in the workers: who opens which, on which ports, and again after a crash. Main thread.
//
//   open ──► the first worker binds, and has the system choose ports ──► the others follow ──► ports in use
//                                     └──────── one cannot ──► the caller hears why, and stops the listener

import { closeSync } from 'node:fs';
import { WeirError } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { removeStaleSocket } from '../../base/stale-socket.ts';
import type { Logger } from '../../log/index.ts';
import type { InheritedSockets, ListenerSnapshot, MainToWorker } from '../../snapshot/index.ts';
import type { WorkerThread } from './worker-thread.ts';

export interface OpenListenersDependencies {
  /** By index; undefined for one that is being restarted. */
  readonly workers: readonly (WorkerThread | undefined)[];
  readonly tell: (worker: WorkerThread, message: MainToWorker) => void;
  /** Workers have been given their work, and are not all ready yet. */
  readonly areStarting: () => boolean;
  readonly faults: FaultBoundary;
  readonly log: Logger;
}

interface OpenListener {
  listener: ListenerSnapshot;
  /** The ports in use, by address; 0 until the first worker has bound it, and for ever for a pipe. */
  ports: readonly number[];
}

interface PendingListen {
  readonly resolve: (ports: readonly number[]) => void;
  readonly reject: (error: WeirError) => void;
}

export class OpenListeners {
  readonly #deps: OpenListenersDependencies;
  readonly #listeners = new Map<number, OpenListener>();
  readonly #pending = new Map<string, PendingListen>();

  constructor(deps: OpenListenersDependencies) {
    this.#deps = deps;
  }

  /** As WorkerPool.openListener. */
  async open(
    listener: ListenerSnapshot,
    predecessor: number | null,
    inherited: InheritedSockets | null,
  ): Promise<readonly number[]> {
    const ports = listener.settings.addresses.map((address) => (address.kind === 'ip' ? address.port : 0));
    const open: OpenListener = { listener, ports };
    this.#listeners.set(listener.id, open);
    const { workers } = this.#deps;
    const workerCount = isShared(listener) ? workers.length : 1;
    const part = (index: number): InheritedSockets | null => sharedOut(inherited, index, workerCount);
    const first = this.#listen(0, open, predecessor, part(0));
    if (!isShared(listener)) open.ports = await first;
    else {
      // Of a socket that another process had alone the first worker makes one that others may have beside it.
      if (ports.includes(0) || inherited !== null) open.ports = await first;
      const others = workers.slice(1).map((_, at) => this.#listen(at + 1, open, predecessor, part(at + 1)));
      // All of them, so that none opens it after it has been stopped for the failure of another.
      const results = await Promise.allSettled([first, ...others]);
      const failed = results.find((result) => result.status === 'rejected');
      if (failed) throw failed.reason;
    }
    return open.ports;
  }

  /** As it is now, for workers that start later. */
  changed(listener: ListenerSnapshot): void {
    const open = this.#listeners.get(listener.id);
    if (open !== undefined) open.listener = listener;
  }

  /** Workers that start later do not open it. */
  forget(listenerId: number): void {
    this.#listeners.delete(listenerId);
  }

  /** A worker has opened one. */
  opened(worker: WorkerThread, listenerId: number, ports: readonly number[]): void {
    this.#settle(listenerId, worker.index)?.resolve(ports);
  }

  /** A worker cannot open one. */
  failed(worker: WorkerThread, listenerId: number, reason: string): void {
    const pending = this.#settle(listenerId, worker.index);
    if (pending) pending.reject(new WeirError('WEIR_LISTEN_FAILED', reason));
    else this.#deps.log.error(`worker ${worker.index} cannot open listener ${listenerId} again: ${reason}`);
  }

  /** A worker is gone, with all that it was about to open. */
  lost(index: number): void {
    for (const listenerId of this.#listeners.keys()) {
      const failure = new WeirError('WEIR_LISTEN_FAILED', `worker ${index} ended while it opened the listener`);
      this.#settle(listenerId, index)?.reject(failure);
    }
  }

  /** A worker that has taken the place of a lost one opens them all. */
  openAgain(worker: WorkerThread): void {
    for (const open of this.#listeners.values()) {
      if (worker.index !== 0 && !isShared(open.listener)) continue;
      this.#deps.faults.run(`opening listener ${open.listener.id} again`, () => this.#listenAgain(worker, open));
    }
  }

  async #listenAgain(worker: WorkerThread, open: OpenListener): Promise<void> {
    // The lost worker may have left the path of a pipe behind.
    for (const address of open.listener.settings.addresses) {
      if (address.kind === 'pipe') await removeStaleSocket(address.path);
    }
    // As it is now: what has changed meanwhile the worker has been told of too early.
    const { listener, ports } = open;
    this.#deps.tell(worker, { type: 'listen', listener, ports, predecessor: null, inherited: null });
  }

  #listen(
    index: number,
    open: OpenListener,
    predecessor: number | null,
    inherited: InheritedSockets | null,
  ): Promise<readonly number[]> {
    const { workers, areStarting, tell } = this.#deps;
    return new Promise((resolve, reject) => {
      const worker = workers[index];
      // A worker that is being restarted opens all listeners by itself once it is ready. At the start they have their work already.
      if (!worker || !(worker.isRunning || areStarting())) {
        // Clients would wait at a socket that nobody accepts on.
        for (const descriptor of inherited?.flat() ?? []) closeSync(descriptor);
        resolve(open.ports);
        return;
      }
      this.#pending.set(pendingKey(open.listener.id, index), { resolve, reject });
      tell(worker, { type: 'listen', listener: open.listener, ports: open.ports, predecessor, inherited });
    });
  }

  #settle(listenerId: number, index: number): PendingListen | undefined {
    const key = pendingKey(listenerId, index);
    const pending = this.#pending.get(key);
    this.#pending.delete(key);
    return pending;
  }
}

/** A worker takes several sockets where another process had more of them, and none where it had fewer. */
function sharedOut(inherited: InheritedSockets | null, index: number, workerCount: number): InheritedSockets | null {
  return inherited?.map((descriptors) => descriptors.filter((_, at) => at % workerCount === index)) ?? null;
}

/** A pipe can only be bound once. */
function isShared({ settings }: ListenerSnapshot): boolean {
  return !settings.bindsToPort || (settings.reusePort && settings.addresses.every(({ kind }) => kind === 'ip'));
}

function pendingKey(listenerId: number, workerIndex: number): string {
  return `${listenerId}/${workerIndex}`;
}
