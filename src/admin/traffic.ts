// Tells what comes over the connections of the admin interface: each of them, each request, and the bytes of both as they go.

import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../base/clock.ts';
import type { FaultBoundary } from '../base/fault-boundary.ts';
import type { AdminTraffic } from './views/index.ts';

interface Connection {
  readonly openedMs: number;
  activeRequests: number;
  /** The client began to end it. */
  isEndedByClient: boolean;
  readonly counted: { received: number; sent: number };
}

/** Where faults are, as the log says it. */
const COUNTING = 'counting admin traffic';

export class TrafficWatch {
  readonly #traffic: AdminTraffic;
  readonly #clock: Clock;
  readonly #faults: FaultBoundary;
  readonly #connections = new WeakMap<Socket, Connection>();

  constructor(traffic: AdminTraffic, clock: Clock, faults: FaultBoundary) {
    this.#traffic = traffic;
    this.#clock = clock;
    this.#faults = faults;
  }

  connectionRefused(): void {
    this.#traffic.connectionRefused();
  }

  /** Call when it has been accepted. */
  watchConnection(socket: Socket): void {
    const counted = { received: 0, sent: 0 };
    const connection = { openedMs: this.#clock.monotonicMs(), activeRequests: 0, isEndedByClient: false, counted };
    this.#connections.set(socket, connection);
    this.#traffic.connectionOpened();
    // Before the server's own listener, which ends its side in return.
    const onEnd = (): void => {
      connection.isEndedByClient = !socket.writableEnded;
    };
    const onError = (): void => {
      connection.isEndedByClient = true;
    };
    const onClose = (): void => {
      this.#countBytes(socket, connection);
      this.#traffic.connectionClosed({
        isLocal: !connection.isEndedByClient,
        hadRequests: connection.activeRequests > 0,
        lengthMs: this.#clock.monotonicMs() - connection.openedMs,
      });
    };
    socket.prependOnceListener('end', this.#faults.handler(COUNTING, onEnd));
    socket.once('error', this.#faults.handler(COUNTING, onError));
    socket.once('close', this.#faults.handler(COUNTING, onClose));
  }

  /** Call when its head has come in. */
  watchRequest({ raw: { socket } }: FastifyRequest, reply: FastifyReply): void {
    const connection = this.#connections.get(socket);
    const startedMs = this.#clock.monotonicMs();
    this.#traffic.requestStarted();
    if (connection !== undefined) connection.activeRequests += 1;
    const onClose = (): void => {
      if (connection !== undefined && reply.raw.writableFinished) connection.activeRequests -= 1;
      if (connection !== undefined) this.#countBytes(socket, connection);
      const status = reply.raw.writableFinished ? reply.raw.statusCode : 0;
      this.#traffic.requestEnded({ status, durationMs: this.#clock.monotonicMs() - startedMs });
    };
    reply.raw.once('close', this.#faults.handler(COUNTING, onClose));
  }

  #countBytes({ bytesRead, bytesWritten }: Socket, { counted }: Connection): void {
    this.#traffic.bytesMoved(bytesRead - counted.received, bytesWritten - counted.sent);
    counted.received = bytesRead;
    counted.sent = bytesWritten;
  }
}
