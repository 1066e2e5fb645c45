// The connection limit filter: a bound on the connections of one filter chain over all workers. What is beyond it is
// closed, after a delay when one is set, which slows down clients that come back at once.

import type { Socket } from 'node:net';
import type { RuntimeDerived } from '../../base/runtime.ts';
import type { ConnectionLimitSnapshot } from '../../snapshot/index.ts';
import { CONNECTION_LIMIT_STATS } from '../../stats/index.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { attachAccepted, type SocketOwner } from '../network/socket-events.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import type { WorkerContext } from '../worker-context.ts';

const { active_connections, limited_connections } = CONNECTION_LIMIT_STATS.index;

const UNLIMITED = Number.POSITIVE_INFINITY;

export class ConnectionLimit {
  readonly delayMs: number;
  readonly #context: WorkerContext;
  readonly #record: number;
  readonly #maxConnections: RuntimeDerived<number>;
  readonly #statBase: number;

  constructor(context: WorkerContext, { settings, recordAddress, statBlock }: ConnectionLimitSnapshot) {
    this.#context = context;
    this.delayMs = settings.delayMs;
    const { maxConnections, enabled } = settings;
    this.#maxConnections = context.runtime.derived((values) =>
      (values.flag(enabled.key) ?? enabled.default) ? maxConnections : UNLIMITED,
    );
    this.#record = recordAddress;
    this.#statBase = context.stats.base(statBlock);
  }

  /** @returns false, and counts that, when there is no room; otherwise `release` gives the place back. */
  tryAcquire(): boolean {
    const { records, stats } = this.#context;
    if (records.tryAcquireCount(this.#record, this.#maxConnections.value)) {
      stats.values[this.#statBase + active_connections]! += 1;
      return true;
    }
    stats.values[this.#statBase + limited_connections]! += 1;
    return false;
  }

  release(): void {
    const { records, stats } = this.#context;
    records.addCount(this.#record, -1);
    stats.values[this.#statBase + active_connections]! -= 1;
  }
}

/** A connection beyond the limit, kept for its delay. Nothing of it is read. */
export class RefusedConnection implements SocketOwner, TimeoutOwner {
  readonly #context: WorkerContext;
  readonly #connection: DownstreamConnection;
  readonly #socket: Socket;
  readonly #timer: TimerEntry;
  readonly #onClosed: (refused: RefusedConnection) => void;

  constructor(
    context: WorkerContext,
    connection: DownstreamConnection,
    delayMs: number,
    onClosed: (refused: RefusedConnection) => void,
  ) {
    this.#context = context;
    this.#connection = connection;
    this.#socket = connection.socket;
    this.#onClosed = onClosed;
    this.#timer = new TimerEntry(this);
    context.wheel.arm(this.#timer, context.clock.monotonicMs() + delayMs);
    attachAccepted(this.#socket, this, context.readMode);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  onTimeout(): void {
    this.destroy();
  }

  onBytes(): boolean {
    return false;
  }

  onEnd(): void {
    this.destroy();
  }

  onDrain(): void {}

  onClose(): void {
    this.#context.wheel.remove(this.#timer);
    this.#onClosed(this);
    this.#connection.closed();
  }

  onFault(error: unknown): void {
    this.#context.logFault('a refused connection', error);
  }
}
