// The access logs of a listener: one entry for each connection, when it has ended or when no filter chain takes it.
// Entries of requests are the connection manager's.

import type { AccessLog } from '../access-log/access-log.ts';
import type { IngressFacts } from '../format/facts.ts';
import { StreamFacts } from '../format/stream-facts.ts';
import { connectionFacts } from '../network/connection-facts.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { ResponseFlag } from '../response-flags.ts';
import type { WorkerContext } from '../worker-context.ts';

export class ListenerAccessLog {
  readonly #context: WorkerContext;
  readonly #log: AccessLog;
  readonly #open = new Map<DownstreamConnection, StreamFacts>();

  constructor(context: WorkerContext, log: AccessLog) {
    this.#context = context;
    this.#log = log;
  }

  /** The connection has a filter chain; its ends are looked up now, since a closed socket has forgotten them. */
  onOpened(connection: DownstreamConnection, ingress: IngressFacts): void {
    this.#open.set(connection, this.#facts(connection, ingress));
  }

  onClosed(connection: DownstreamConnection): void {
    const facts = this.#open.get(connection);
    if (facts === undefined) return;
    this.#open.delete(connection);
    this.#write(facts);
  }

  /** There are no connections any more. */
  close(): void {
    this.#log.close();
  }

  /** Nothing becomes of the connection. */
  onUnmatched(connection: DownstreamConnection, ingress: IngressFacts): void {
    const facts = this.#facts(connection, ingress);
    facts.flags = ResponseFlag.NR;
    facts.details = 'filter_chain_not_found';
    this.#write(facts);
  }

  #facts(connection: DownstreamConnection, ingress: IngressFacts): StreamFacts {
    const { clock } = this.#context;
    const ends = connectionFacts(this.#context, connection);
    return new StreamFacts(clock, connection.startMs, ends, 'NotSet', ingress);
  }

  #write(facts: StreamFacts): void {
    facts.endMs = this.#context.clock.monotonicMs();
    this.#log.write(facts);
  }
}
