// What logs tell of one proxied TCP connection: its facts, and when an entry is due beside the one at its end.

import { type AccessLogType, StreamFacts } from '../format/stream-facts.ts';
import { connectionFacts } from '../network/connection-facts.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { TcpProxy } from './tcp-proxy.ts';

const LAST_ENTRY = 'TcpConnectionEnd';
const NEVER = Number.POSITIVE_INFINITY;

export class ConnectionEntries {
  /** Null when neither a log nor the request for a tunnel asks for them. */
  readonly facts: StreamFacts | null;
  /** When the next one is due. */
  nextMs = NEVER;
  readonly #context: WorkerContext;
  readonly #filter: TcpProxy;
  readonly #downstream: DownstreamConnection;

  constructor(context: WorkerContext, filter: TcpProxy, downstream: DownstreamConnection) {
    this.#context = context;
    this.#filter = filter;
    this.#downstream = downstream;
    const { accessLog, tunnel, ingress } = filter;
    this.facts =
      accessLog === null && tunnel === null
        ? null
        : new StreamFacts(context.clock, downstream.startMs, connectionFacts(context, downstream), LAST_ENTRY, ingress);
    // A tunnel's hostname may say what the filters before have found out.
    if (tunnel !== null) this.facts!.noteFiltered(downstream);
  }

  begin(nowMs: number): void {
    if (this.#filter.accessLog === null) return;
    const { onStart, intervalMs } = this.#filter.settings.furtherLogEntries;
    if (onStart) this.#write('TcpConnectionStart', nowMs);
    if (intervalMs > 0) this.nextMs = nowMs + intervalMs;
  }

  connected(attempts: number): void {
    if (!this.#filter.settings.furtherLogEntries.onConnected) return;
    this.#noteAttempts(attempts);
    this.#write('TcpUpstreamConnected', this.#context.clock.monotonicMs());
  }

  passTime(nowMs: number, attempts: number): void {
    if (nowMs < this.nextMs) return;
    this.nextMs = nowMs + this.#filter.settings.furtherLogEntries.intervalMs;
    this.#noteAttempts(attempts);
    this.#write('TcpPeriodic', nowMs);
  }

  end(attempts: number): void {
    this.#noteAttempts(attempts);
    this.#write(LAST_ENTRY, this.#context.clock.monotonicMs());
  }

  #noteAttempts(attempts: number): void {
    if (this.facts !== null) this.facts.attempts = attempts;
  }

  /** As if the connection ended now. */
  #write(type: AccessLogType, nowMs: number): void {
    const { facts } = this;
    const { accessLog } = this.#filter;
    if (facts === null || accessLog === null) return;
    facts.accessLogType = type;
    facts.noteFiltered(this.#downstream);
    facts.endMs = nowMs;
    accessLog.write(facts);
    facts.accessLogType = LAST_ENTRY;
  }
}
