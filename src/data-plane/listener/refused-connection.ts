// A connection that a network filter has not let in, kept for a while: that slows down clients which come back at once.

import type { Socket } from 'node:net';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { attachAccepted, type SocketOwner } from '../network/socket-events.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import type { WorkerContext } from '../worker-context.ts';

/** Nothing of it is read. */
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
