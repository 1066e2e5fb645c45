// A filter chain of one listener in one worker: its limits, what secures its connections, then its terminal filter.

import type { DownstreamTlsSnapshot, DrainProgress } from '../../snapshot/index.ts';
import type { ListenerDrain } from '../drains.ts';
import type { IngressFacts } from '../format/facts.ts';
import type { DownstreamConnection, DownstreamConnectionOwner } from '../network/downstream-connection.ts';
import type { ExpensiveStream, NetworkFilter } from '../network/filter.ts';
import type { WorkerContext } from '../worker-context.ts';
import { type ConnectionLimit, RefusedConnection } from './connection-limit.ts';
import { type SecuredOwner, TlsAcceptor } from './tls/tls-acceptor.ts';

/** The listener, as its chains see it. */
export interface FilterChainOwner extends DownstreamConnectionOwner {
  onConnectionOpened(): void;
  onHandshakeTimeout(): void;
}

/** How a chain secures its connections. */
export interface ChainSecurity {
  readonly snapshot: DownstreamTlsSnapshot;
  /** 0 for no limit. */
  readonly timeoutMs: number;
}

export interface FilterChainParts {
  /** As in its snapshot. */
  readonly id: number;
  readonly ingress: IngressFacts;
  readonly limits: readonly ConnectionLimit[];
  /** The terminal one. */
  readonly filter: NetworkFilter;
  /** That the filter asks. */
  readonly drain: ListenerDrain;
  readonly security: ChainSecurity | null;
}

export class ActiveFilterChain implements DownstreamConnectionOwner, SecuredOwner {
  readonly id: number;
  readonly ingress: IngressFacts;
  readonly #context: WorkerContext;
  readonly #owner: FilterChainOwner;
  readonly #limits: readonly ConnectionLimit[];
  readonly #filter: NetworkFilter;
  readonly #drain: ListenerDrain;
  /** Null where connections come as they are. */
  readonly #tls: TlsAcceptor | null;
  readonly #refused = new Set<RefusedConnection>();

  constructor(
    context: WorkerContext,
    owner: FilterChainOwner,
    { id, ingress, limits, filter, drain, security }: FilterChainParts,
  ) {
    this.id = id;
    this.#drain = drain;
    this.#context = context;
    this.#owner = owner;
    this.ingress = ingress;
    this.#limits = limits;
    this.#filter = filter;
    this.#tls = security && new TlsAcceptor(context, security.snapshot, security.timeoutMs, this);
  }

  get connectionCount(): number {
    return this.#filter.connectionCount + this.#refused.size + (this.#tls?.connectionCount ?? 0);
  }

  accept(connection: DownstreamConnection): void {
    this.#owner.onConnectionOpened();
    const refusedBy = this.#acquire();
    if (refusedBy !== undefined) {
      this.#refuse(connection, refusedBy.delayMs);
      return;
    }
    connection.open(this);
    if (this.#tls === null) {
      this.#filter.accept(connection);
      return;
    }
    this.#filter.handshakes?.onBegun(connection);
    this.#tls.accept(connection);
  }

  /** Has handshakes from now on go by other settings. */
  secure(snapshot: DownstreamTlsSnapshot): void {
    this.#tls?.update(snapshot);
  }

  onSecured(connection: DownstreamConnection): void {
    this.#filter.accept(connection);
  }

  onUnsecured(connection: DownstreamConnection): void {
    this.#filter.handshakes?.onFailed(connection);
  }

  onHandshakeTimeout(): void {
    this.#owner.onHandshakeTimeout();
  }

  /** Has responses end their connections, more and more of them. */
  beginDrain(progress: DrainProgress): void {
    this.#drain.begin(progress);
  }

  drain(endsIdle: boolean): void {
    if (endsIdle) {
      this.#destroyRefused();
      this.#tls?.endSilent();
    }
    this.#filter.drain(endsIdle);
  }

  finish(): void {
    this.#filter.finish();
  }

  findExpensive(fromBytes: number, found: ExpensiveStream[]): void {
    this.#filter.findExpensive(fromBytes, found);
  }

  rescaleTimeouts(): void {
    this.#filter.rescaleTimeouts();
  }

  destroyConnections(): void {
    this.#destroyRefused();
    this.#tls?.destroyConnections();
    this.#filter.destroyConnections();
  }

  close(): void {
    this.#tls?.close();
    this.#filter.close();
  }

  onConnectionClosed(connection: DownstreamConnection): void {
    for (const limit of this.#limits) limit.release();
    this.#owner.onConnectionClosed(connection);
  }

  /** Takes a place under every limit, or none. @returns the limit that had no room. */
  #acquire(): ConnectionLimit | undefined {
    for (const [index, limit] of this.#limits.entries()) {
      if (limit.tryAcquire()) continue;
      for (const taken of this.#limits.slice(0, index)) taken.release();
      return limit;
    }
    return undefined;
  }

  #refuse(connection: DownstreamConnection, delayMs: number): void {
    connection.open(this.#owner);
    if (delayMs > 0) {
      const forget = (refused: RefusedConnection): void => void this.#refused.delete(refused);
      this.#refused.add(new RefusedConnection(this.#context, connection, delayMs, forget));
      return;
    }
    connection.socket.destroy();
    connection.closed();
  }

  #destroyRefused(): void {
    for (const refused of this.#refused) refused.destroy();
  }
}
