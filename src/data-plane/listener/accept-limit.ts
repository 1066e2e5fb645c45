// The bounds on accepted connections over all workers: that of all listeners, and that of one. A socket holds its places
// from the accept until it is closed, whatever becomes of it between. They are counted also while there is no limit: the runtime may
// set one at any time.

import type { Socket } from 'node:net';
import type { RuntimeDerived, RuntimeValues } from '../../base/runtime.ts';
import type { AcceptLimitSnapshot, ListenerSnapshot } from '../../snapshot/index.ts';
import type { SharedRecords } from '../../wasm/shared-records.ts';

interface LimitContext {
  readonly records: SharedRecords;
  readonly runtime: RuntimeValues;
}

export class AcceptLimits {
  readonly #global: AcceptLimit;
  readonly #own: AcceptLimit;
  /** Sockets that have places. */
  held = 0;
  readonly #release = (): void => {
    this.held -= 1;
    this.#global.release();
    this.#own.release();
  };

  constructor(context: LimitContext, { globalLimit, limit }: ListenerSnapshot) {
    this.#global = new AcceptLimit(context, globalLimit);
    this.#own = new AcceptLimit(context, limit);
  }

  /** @returns the limit that has no place left; then none has been taken. */
  admit(socket: Socket): 'global' | 'listener' | null {
    if (!this.#global.tryAcquire()) return 'global';
    if (!this.#own.tryAcquire()) {
      this.#global.release();
      return 'listener';
    }
    this.held += 1;
    socket.on('close', this.#release);
    return null;
  }

  /** The socket is another listener's from now on: it has its places there, also beyond a limit of that. */
  handOver(socket: Socket, other: AcceptLimits): void {
    socket.off('close', this.#release);
    this.#release();
    other.#take(socket);
  }

  #take(socket: Socket): void {
    this.#global.acquire();
    this.#own.acquire();
    this.held += 1;
    socket.on('close', this.#release);
  }
}

class AcceptLimit {
  readonly #records: SharedRecords;
  readonly #record: number;
  readonly #maxConnections: RuntimeDerived<number>;

  constructor({ records, runtime }: LimitContext, { recordAddress, maxConnections, runtimeKey }: AcceptLimitSnapshot) {
    this.#records = records;
    this.#record = recordAddress;
    this.#maxConnections = runtime.derived((values) => values.integer(runtimeKey) ?? maxConnections);
  }

  tryAcquire(): boolean {
    return this.#records.tryAcquireCount(this.#record, this.#maxConnections.value);
  }

  /** Whatever the limit is. */
  acquire(): void {
    this.#records.addCount(this.#record, 1);
  }

  release(): void {
    this.#records.addCount(this.#record, -1);
  }
}
