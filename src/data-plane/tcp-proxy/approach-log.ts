// Entries of connections that never come to a TCP proxy, because they could not be secured, or a filter has ended them.

import type { AccessLog } from '../access-log/access-log.ts';
import type { IngressFacts } from '../format/facts.ts';
import { StreamFacts } from '../format/stream-facts.ts';
import { connectionFacts } from '../network/connection-facts.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import type { ApproachObserver } from '../network/terminal-filter.ts';
import type { WorkerContext } from '../worker-context.ts';

export class ApproachLog implements ApproachObserver {
  readonly #context: WorkerContext;
  readonly #log: AccessLog;
  readonly #ingress: IngressFacts;

  constructor(context: WorkerContext, log: AccessLog, ingress: IngressFacts) {
    this.#context = context;
    this.#log = log;
    this.#ingress = ingress;
  }

  /** Its ends are looked up now: a closed socket has forgotten them. */
  onBegun(connection: DownstreamConnection): void {
    connectionFacts(this.#context, connection);
  }

  onFailed(connection: DownstreamConnection): void {
    const { clock } = this.#context;
    const ends = connectionFacts(this.#context, connection);
    const facts = new StreamFacts(clock, connection.startMs, ends, 'TcpConnectionEnd', this.#ingress);
    facts.endMs = clock.monotonicMs();
    facts.noteFiltered(connection);
    this.#log.write(facts);
  }
}
