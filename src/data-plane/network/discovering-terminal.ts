// A terminal filter whose configuration comes by discovery: new connections get the one that is in force, and keep to it until they end. While
// there is none nobody is let in.

import type { PublishedTerminal } from '../../snapshot/index.ts';
import { DiscoveredPlaces, type FilterInPlace } from '../discovered-places.ts';
import type { WorkerContext } from '../worker-context.ts';
import { NO_CONFIGURATION } from './discovering-filters.ts';
import type { DownstreamConnection } from './downstream-connection.ts';
import type { Refusal } from './network-filter.ts';
import type { ApproachObserver, ExpensiveStream, TerminalFilter } from './terminal-filter.ts';

type Placed = FilterInPlace<TerminalFilter>;

export interface DiscoveringTerminalParts {
  readonly name: string;
  readonly id: number;
  /** @throws what its code does. */
  readonly create: (configured: NonNullable<PublishedTerminal['configured']>) => TerminalFilter;
  /** Told of each connection that is refused for want of a configuration. */
  readonly onMissing: () => void;
}

export class DiscoveringTerminal implements TerminalFilter, ApproachObserver {
  readonly #onMissing: () => void;
  readonly #places: DiscoveredPlaces<PublishedTerminal, TerminalFilter>;
  #current: Placed | null = null;
  /** With those that have been replaced, and still have connections. */
  readonly #all = new Set<TerminalFilter>();
  /** By connection, what it has met. */
  readonly #met = new Map<DownstreamConnection, Placed>();
  /** As it was told: one that comes now is to know it. */
  #end: 'none' | 'drain' | 'drain-idle' | 'finish' = 'none';

  constructor(context: WorkerContext, { name, id, create, onMissing }: DiscoveringTerminalParts) {
    this.#onMissing = onMissing;
    this.#places = new DiscoveredPlaces(context, {
      what: 'the terminal filter',
      make: (_, { configured }) => {
        if (configured === null) return null;
        const made = create(configured);
        this.#begin(made);
        return { made, close: () => this.#close(made) };
      },
      onPlaced: (_, placed) => {
        this.#current = placed;
      },
    });
    this.#places.join(0, name, id);
  }

  get connectionCount(): number {
    let count = 0;
    for (const { connectionCount } of this.#all) count += connectionCount;
    return count;
  }

  get approaches(): ApproachObserver {
    return this;
  }

  onBegun(connection: DownstreamConnection): void {
    this.#of(connection)?.approaches?.onBegun(connection);
  }

  onFailed(connection: DownstreamConnection): void {
    this.#of(connection)?.approaches?.onFailed(connection);
  }

  admit(connection: DownstreamConnection): Refusal | null {
    const current = this.#current;
    if (current === null) {
      this.#onMissing();
      return NO_CONFIGURATION;
    }
    current.use.enter();
    this.#met.set(connection, current);
    return null;
  }

  release(connection: DownstreamConnection): void {
    const met = this.#met.get(connection);
    this.#met.delete(connection);
    met?.use.leave();
  }

  accept(connection: DownstreamConnection): void {
    this.#met.get(connection)!.made.accept(connection);
  }

  announceDrain(): void {
    for (const filter of this.#all) filter.announceDrain?.();
  }

  drain(endsIdle: boolean): void {
    if (this.#end !== 'finish') this.#end = endsIdle ? 'drain-idle' : 'drain';
    for (const filter of this.#all) filter.drain(endsIdle);
  }

  finish(): void {
    this.#end = 'finish';
    for (const filter of this.#all) filter.finish();
  }

  findExpensive(fromBytes: number, found: ExpensiveStream[]): void {
    for (const filter of this.#all) filter.findExpensive(fromBytes, found);
  }

  rescaleTimeouts(): void {
    for (const filter of this.#all) filter.rescaleTimeouts();
  }

  destroyConnections(): void {
    for (const filter of [...this.#all]) filter.destroyConnections();
  }

  close(): void {
    this.#places.close();
  }

  /** Of one that is refused before it has met any, the one in force. */
  #of(connection: DownstreamConnection): TerminalFilter | undefined {
    return (this.#met.get(connection) ?? this.#current)?.made;
  }

  #begin(filter: TerminalFilter): void {
    this.#all.add(filter);
    if (this.#end === 'none') return;
    filter.drain(this.#end !== 'drain');
    if (this.#end === 'finish') filter.finish();
  }

  #close(filter: TerminalFilter): void {
    this.#all.delete(filter);
    filter.close();
  }
}
