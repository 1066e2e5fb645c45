// Tells what comes over the connections of the admin interface: each of them, each request, and the bytes of both as they go.

import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../base/clock.ts';
import type { AdminTraffic } from './views/index.ts';

interface Connection {
  readonly openedMs: number;
  activeRequests: number;
  /** The client began to end it. */
  isEndedByClient: boolean;
  readonly counted: { received: number; sent: number };
}

export class TrafficWatch {
  readonly #traffic: AdminTraffic;
  readonly #clock: Clock;
  readonly #connections = new WeakMap<Socket, Connection>();

  constructor(traffic: AdminTraffic, clock: Clock) {
    this.#traffic = traffic;
    this.#clock = clock;
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
    socket.prependOnceListener('end', () => {
      connection.isEndedByClient = !socket.writableEnded;
    });
    socket.once('error', () => {
      connection.isEndedByClient = true;
    });
    socket.once('close', () => {
      this.#countBytes(socket, connection);
      this.#traffic.connectionClosed({
        isLocal: !connection.isEndedByClient,
        hadRequests: connection.activeRequests > 0,
        lengthMs: this.#clock.monotonicMs() - connection.openedMs,
      });
    });
  }

  /** Call when its head has come in. */
  watchRequest({ raw: { socket } }: FastifyRequest, reply: FastifyReply): void {
    const connection = this.#connections.get(socket);
    const startedMs = this.#clock.monotonicMs();
    this.#traffic.requestStarted();
    if (connection !== undefined) connection.activeRequests += 1;
    reply.raw.once('close', () => {
      if (connection !== undefined && reply.raw.writableFinished) connection.activeRequests -= 1;
      if (connection !== undefined) this.#countBytes(socket, connection);
      const status = reply.raw.writableFinished ? reply.raw.statusCode : 0;
      this.#traffic.requestEnded({ status, durationMs: this.#clock.monotonicMs() - startedMs });
    });
  }

  #countBytes({ bytesRead, bytesWritten }: Socket, { counted }: Connection): void {
    this.#traffic.bytesMoved(bytesRead - counted.received, bytesWritten - counted.sent);
    counted.received = bytesRead;
    counted.sent = bytesWritten;
  }
}
