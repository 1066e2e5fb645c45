// The bounds on accepted connections over all workers: that of all listeners, and that of one. A socket holds its places
// from the accept until it is closed, whatever becomes of it between.

import type { Socket } from 'node:net';
import type { AcceptLimitSnapshot, ListenerSnapshot } from '../../snapshot/index.ts';
import type { SharedRecords } from '../../wasm/shared-records.ts';

export class AcceptLimits {
  readonly #global: AcceptLimit | null;
  readonly #own: AcceptLimit | null;
  /** Sockets that have places. */
  held = 0;
  readonly #release = (): void => {
    this.held -= 1;
    this.#global?.release();
    this.#own?.release();
  };

  constructor(records: SharedRecords, { globalLimit, limit }: ListenerSnapshot) {
    this.#global = globalLimit && new AcceptLimit(records, globalLimit);
    this.#own = limit && new AcceptLimit(records, limit);
  }

  /** @returns the limit that has no place left; then none has been taken. */
  admit(socket: Socket): 'global' | 'listener' | null {
    if (this.#global === null && this.#own === null) return null;
    if (this.#global !== null && !this.#global.tryAcquire()) return 'global';
    if (this.#own !== null && !this.#own.tryAcquire()) {
      this.#global?.release();
      return 'listener';
    }
    this.held += 1;
    socket.on('close', this.#release);
    return null;
  }

  /** The socket is another listener's from now on: it has its places there, also beyond a limit of that. */
  handOver(socket: Socket, other: AcceptLimits): void {
    if (this.#global === null && this.#own === null) {
      other.#take(socket);
      return;
    }
    socket.off('close', this.#release);
    this.#release();
    other.#take(socket);
  }

  #take(socket: Socket): void {
    if (this.#global === null && this.#own === null) return;
    this.#global?.acquire();
    this.#own?.acquire();
    this.held += 1;
    socket.on('close', this.#release);
  }
}

class AcceptLimit {
  readonly #records: SharedRecords;
  readonly #record: number;
  readonly #maxConnections: number;

  constructor(records: SharedRecords, { recordAddress, maxConnections }: AcceptLimitSnapshot) {
    this.#records = records;
    this.#record = recordAddress;
    this.#maxConnections = maxConnections;
  }

  tryAcquire(): boolean {
    return this.#records.tryAcquireCount(this.#record, this.#maxConnections);
  }

  /** Whatever the limit is. */
  acquire(): void {
    this.#records.addCount(this.#record, 1);
  }

  release(): void {
    this.#records.addCount(this.#record, -1);
  }
}
