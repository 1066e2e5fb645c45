// What the access logs of the admin interface are told: each request once, when its response has ended.

import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../base/clock.ts';
import type { FaultBoundary } from '../base/fault-boundary.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** Bytes of the body handed to the socket so far. */
    bodyBytes: number;
  }
}

export interface RequestEndpoint {
  readonly ip: string;
  /** 0 for a unix socket. */
  readonly port: number;
}

/** A request whose response has ended. */
export interface EndedRequest {
  /** By the monotonic clock. */
  readonly startMs: number;
  readonly endMs: number;
  /** `HTTP/1.1`. */
  readonly protocol: string;
  /** As on the wire, a character a byte, with the empty line at the end. */
  readonly requestHead: string;
  readonly responseHead: string;
  readonly status: number;
  /** Of the bodies. */
  readonly received: number;
  readonly sent: number;
  /** The client went before its answer was complete. */
  readonly isCutOff: boolean;
  readonly connectionId: number;
  readonly remote: RequestEndpoint;
  readonly local: RequestEndpoint;
}

/** Takes what is to be logged, and returns at once. */
export interface AccessLogWriter {
  write(request: EndedRequest): void;
}

interface Connection {
  readonly id: number;
  readonly remote: RequestEndpoint;
  readonly local: RequestEndpoint;
}

/** Of a socket that takes both families. */
const MAPPED_IPV4 = /^::ffff:(?=\d+\.)/;

export class AccessLog {
  readonly #writer: AccessLogWriter;
  readonly #clock: Clock;
  readonly #faults: FaultBoundary;
  readonly #connections = new WeakMap<Socket, Connection>();
  #lastConnection = 0;

  constructor(writer: AccessLogWriter, clock: Clock, faults: FaultBoundary) {
    this.#writer = writer;
    this.#clock = clock;
    this.#faults = faults;
  }

  /** Call when the request has come in. */
  watch(request: FastifyRequest, reply: FastifyReply): void {
    const startMs = this.#clock.monotonicMs();
    const { id: connectionId, remote, local } = this.#connectionOf(request.raw.socket);
    const onClose = (): void => {
      const { raw } = request;
      this.#writer.write({
        startMs,
        endMs: this.#clock.monotonicMs(),
        protocol: `HTTP/${raw.httpVersion}`,
        requestHead: requestHead(request),
        responseHead: responseHead(reply),
        status: reply.raw.statusCode,
        received: request.body instanceof Buffer ? request.body.length : 0,
        sent: reply.bodyBytes,
        isCutOff: !reply.raw.writableFinished,
        connectionId,
        remote,
        local,
      });
    };
    reply.raw.once('close', this.#faults.handler('the admin access log', onClose));
  }

  /** Its addresses are known as long as it is open only. */
  #connectionOf(socket: Socket): Connection {
    const known = this.#connections.get(socket);
    if (known !== undefined) return known;
    this.#lastConnection += 1;
    const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket;
    const connection = {
      id: this.#lastConnection,
      remote: { ip: remoteAddress.replace(MAPPED_IPV4, ''), port: remotePort },
      local: { ip: localAddress.replace(MAPPED_IPV4, ''), port: localPort },
    };
    this.#connections.set(socket, connection);
    return connection;
  }
}

function requestHead({ raw: { method, url, httpVersion, rawHeaders } }: FastifyRequest): string {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) head += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`;
  return `${head}\r\n`;
}

function responseHead(reply: FastifyReply): string {
  const { raw } = reply;
  const lines = Object.entries(reply.getHeaders()).map(([name, value]) => `${name}: ${String(value)}\r\n`);
  return `HTTP/1.1 ${raw.statusCode} ${raw.statusMessage}\r\n${lines.join('')}\r\n`;
}
