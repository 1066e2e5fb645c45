// What an operator sees of connections and requests at the levels debug and trace: their beginning, route, hosts and end, a
// line each, by `[C<connection>][S<stream>]` as searches in logs know them. Worker thread. While the level is above, each is
// one comparison, and streams have no number.

import type { Logger } from '../log/index.ts';
import type { RequestHead } from '../wasm/http1.ts';
import { connectionFacts } from './network/connection-facts.ts';
import type { DownstreamConnection } from './network/downstream-connection.ts';
import { shortFlags } from './response-flags.ts';
import type { WorkerContext } from './worker-context.ts';

/** This one, as loggers of files are listed. */
const FILE = 'src/data-plane/traffic-log.ts';

/** What there is to say of a request that is over. */
export interface EndedRequest {
  readonly status: number;
  readonly flags: number;
  readonly details: string;
}

export class TrafficLog {
  readonly #context: WorkerContext;
  readonly #connections: Logger;
  readonly #filters: Logger;
  readonly #requests: Logger;
  readonly #routes: Logger;
  /** Of streams that a line has named. */
  readonly #streamIds = new WeakMap<object, number>();

  constructor(context: WorkerContext) {
    const { connection, filter, http, router } = context.logs;
    this.#context = context;
    this.#connections = connection.ofFile(FILE);
    this.#filters = filter.ofFile(FILE);
    this.#requests = http.ofFile(FILE);
    this.#routes = router.ofFile(FILE);
  }

  connectionOpened(connection: DownstreamConnection): void {
    const log = this.#connections;
    if (!log.enabled('debug')) return;
    const from = place(connection.remoteAddress, connection.remotePort);
    log.debug(`${this.#connection(connection)} new connection from ${from}`);
  }

  connectionClosed(connection: DownstreamConnection, nowMs: number): void {
    const log = this.#connections;
    // A socket that has ended does not know any more whose it was.
    if (!log.enabled('debug') || connection.facts === null) return;
    log.debug(`${this.#connection(connection)} closed after ${Math.round(nowMs - connection.startMs)} ms`);
  }

  /** Its host has been chosen. @param host address. */
  connectionForwarded(connection: DownstreamConnection, cluster: string, host: string): void {
    const log = this.#filters;
    if (log.enabled('debug')) log.debug(`${this.#connection(connection)} goes to ${host} of cluster '${cluster}'`);
  }

  /** @param head of the request, in the codec. Its fields are not shown: some carry credentials. */
  requestBegun(stream: object, connection: DownstreamConnection, protocol: string, head: RequestHead): void {
    const log = this.#requests;
    if (!log.enabled('debug')) return;
    log.debug(
      `${this.#stream(stream, connection)} ${head.method} ${head.target()} ${protocol}, host '${head.authority()}'`,
    );
  }

  /** @param cluster empty where no route matches. */
  requestRouted(stream: object, connection: DownstreamConnection, cluster: string): void {
    const log = this.#routes;
    if (!log.enabled('debug')) return;
    const text = cluster === '' ? 'no route matches' : `goes to cluster '${cluster}'`;
    log.debug(`${this.#stream(stream, connection)} ${text}`);
  }

  /** @param attempt from 1. @param host address. */
  requestAttempted(stream: object, connection: DownstreamConnection, attempt: number, host: string): void {
    const log = this.#routes;
    if (log.enabled('debug')) log.debug(`${this.#stream(stream, connection)} attempt ${attempt} goes to ${host}`);
  }

  requestEnded(
    stream: object,
    connection: DownstreamConnection,
    { status, flags, details }: EndedRequest,
    durationMs: number,
  ): void {
    const log = this.#requests;
    if (!log.enabled('debug')) return;
    const why = flags === 0 ? details : `${shortFlags(flags)}, ${details}`;
    log.debug(`${this.#stream(stream, connection)} ${status} after ${Math.round(durationMs)} ms, ${why}`);
  }

  #connection(connection: DownstreamConnection): string {
    return `[C${connectionFacts(this.#context, connection).connectionId}]`;
  }

  #stream(stream: object, connection: DownstreamConnection): string {
    let id = this.#streamIds.get(stream);
    if (id === undefined) {
      id = this.#context.nextStreamId();
      this.#streamIds.set(stream, id);
    }
    return `${this.#connection(connection)}[S${id}]`;
  }
}

function place(address: string, port: number): string {
  if (address === '') return 'a pipe';
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}
