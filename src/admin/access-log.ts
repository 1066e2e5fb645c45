// The admin interface's access log (admin.access_log_path): one line a request, in the default layout of access
// logs, so that the tools that read those read these.
//
//   [start] "method path protocol" code flags received sent duration upstream-time
//   "x-forwarded-for" "user-agent" "x-request-id" "host" "upstream"                        (one line)

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../base/clock.ts';
import { escapeLine, type LogDestination } from '../log/index.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** Bytes of the body handed to the socket so far. */
    bodyBytes: number;
  }
}

/** Response flag of a client that went before its answer was complete. */
const DOWNSTREAM_TERMINATION = 'DC';

const NOTHING = '-';

export class AccessLog {
  readonly #destination: Pick<LogDestination, 'write'>;
  readonly #clock: Clock;

  constructor(destination: Pick<LogDestination, 'write'>, clock: Clock) {
    this.#destination = destination;
    this.#clock = clock;
  }

  /** Call when the request has come in; the line is written when its response has ended. */
  watch(request: FastifyRequest, reply: FastifyReply): void {
    const startMs = this.#clock.monotonicMs();
    const startTime = new Date(this.#clock.wallMs()).toISOString();
    reply.raw.once('close', () => {
      const durationMs = Math.round(this.#clock.monotonicMs() - startMs);
      this.#destination.write(`[${startTime}] ${requestText(request)} ${responseText(request, reply, durationMs)}\n`);
    });
  }
}

function requestText({ raw }: FastifyRequest): string {
  return quoted(`${raw.method} ${raw.url} HTTP/${raw.httpVersion}`);
}

function responseText({ headers, body }: FastifyRequest, reply: FastifyReply, durationMs: number): string {
  const { raw, bodyBytes: sent } = reply;
  const flags = raw.writableFinished ? NOTHING : DOWNSTREAM_TERMINATION;
  const received = body instanceof Buffer ? body.length : 0;
  const fields = ['x-forwarded-for', 'user-agent', 'x-request-id', 'host'].map((name) => quoted(headers[name]));
  return [raw.statusCode, flags, received, sent, durationMs, NOTHING, ...fields, quoted(undefined)].join(' ');
}

function quoted(value: string | string[] | undefined): string {
  return `"${value === undefined ? NOTHING : escapeLine(String(value))}"`;
}
