// A filter chain of one listener in one worker: who is let in, what secures its connections, the filters that they pass, then its
// terminal filter.

import type { DownstreamTlsSnapshot, DrainProgress } from '../../snapshot/index.ts';
import type { ListenerDrain } from '../drains.ts';
import type { IngressFacts } from '../format/facts.ts';
import type { DownstreamConnection, DownstreamConnectionOwner } from '../network/downstream-connection.ts';
import type { FilteredConnectionOwner } from '../network/filtered-connection.ts';
import type { Refusal } from '../network/network-filter.ts';
import type { ConnectionFilters } from '../network/network-filter-chain.ts';
import type { ExpensiveStream, TerminalFilter } from '../network/terminal-filter.ts';
import type { WorkerContext } from '../worker-context.ts';
import { RefusedConnection } from './refused-connection.ts';
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
  /** Before the terminal one; null for none. */
  readonly filters: ConnectionFilters | null;
  /** The terminal one. */
  readonly filter: TerminalFilter;
  /** That the filter asks. */
  readonly drain: ListenerDrain;
  readonly security: ChainSecurity | null;
}

export class ActiveFilterChain implements DownstreamConnectionOwner, SecuredOwner, FilteredConnectionOwner {
  readonly id: number;
  readonly ingress: IngressFacts;
  readonly #context: WorkerContext;
  readonly #owner: FilterChainOwner;
  readonly #filters: ConnectionFilters | null;
  readonly #filter: TerminalFilter;
  readonly #drain: ListenerDrain;
  /** Null where connections come as they are. */
  readonly #tls: TlsAcceptor | null;
  readonly #refused = new Set<RefusedConnection>();

  constructor(
    context: WorkerContext,
    owner: FilterChainOwner,
    { id, ingress, filters, filter, drain, security }: FilterChainParts,
  ) {
    this.id = id;
    this.#drain = drain;
    this.#context = context;
    this.#owner = owner;
    this.ingress = ingress;
    this.#filters = filters;
    this.#filter = filter;
    this.#tls = security && new TlsAcceptor(context, security.snapshot, security.timeoutMs, this);
  }

  get connectionCount(): number {
    const waiting = (this.#tls?.connectionCount ?? 0) + (this.#filters?.waitingCount ?? 0);
    return this.#filter.connectionCount + this.#refused.size + waiting;
  }

  accept(connection: DownstreamConnection): void {
    this.#owner.onConnectionOpened();
    const refusal = this.#admit(connection);
    if (refusal !== null) {
      this.#refuse(connection, refusal);
      return;
    }
    connection.open(this);
    if (this.#tls === null) {
      this.#pass(connection);
      return;
    }
    this.#filter.approaches?.onBegun(connection);
    this.#tls.accept(connection);
  }

  /** Takes a place at every filter, or none. @returns why there is none. */
  #admit(connection: DownstreamConnection): Refusal | null {
    const byFilters = this.#filters === null ? null : this.#filters.admit(connection);
    if (byFilters !== null || this.#filter.admit === undefined) return byFilters;
    const refusal = this.#filter.admit(connection);
    if (refusal !== null) this.#filters?.release(connection);
    return refusal;
  }

  /** Has handshakes from now on go by other settings. */
  secure(snapshot: DownstreamTlsSnapshot): void {
    this.#tls?.update(snapshot);
  }

  onSecured(connection: DownstreamConnection): void {
    this.#pass(connection);
  }

  onUnsecured(connection: DownstreamConnection): void {
    this.#filter.approaches?.onFailed(connection);
  }

  onFiltersPassed(connection: DownstreamConnection): void {
    this.#filter.accept(connection);
  }

  onFilteredOut(connection: DownstreamConnection): void {
    this.#filter.approaches?.onFailed(connection);
  }

  #pass(connection: DownstreamConnection): void {
    if (this.#filters === null) {
      this.#filter.accept(connection);
      return;
    }
    this.#filter.approaches?.onBegun(connection);
    this.#filters.begin(connection, this);
  }

  onHandshakeTimeout(): void {
    this.#owner.onHandshakeTimeout();
  }

  /** Has responses end their connections, more and more of them. */
  beginDrain(progress: DrainProgress): void {
    this.#drain.begin(progress);
    this.announceDrain();
  }

  /** By whose order ever one has begun. */
  announceDrain(): void {
    this.#filter.announceDrain?.();
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
    this.#filters?.destroyConnections();
    this.#filter.destroyConnections();
  }

  close(): void {
    this.#tls?.close();
    this.#filters?.close();
    this.#filter.close();
  }

  onConnectionClosed(connection: DownstreamConnection): void {
    this.#filters?.release(connection);
    this.#filter.release?.(connection);
    this.#owner.onConnectionClosed(connection);
  }

  #refuse(connection: DownstreamConnection, { delayMs, details = '', flag }: Refusal): void {
    connection.open(this.#owner);
    connection.terminate(details, flag);
    const { approaches } = this.#filter;
    approaches?.onBegun(connection);
    approaches?.onFailed(connection);
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
