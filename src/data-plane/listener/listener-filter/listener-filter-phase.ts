// The time between the accept of a connection and the choice of its filter chain, in which listener filters look at
// its first bytes. A filter is asked again with each arrival, until it is done or refuses.
//
//   WAITING ──all filters done, or time over and that is allowed──► DONE, the filter chain goes on
//      └──refused, peer gone, time over──► CLOSED
//
// What is held is bounded by the filters: the longest PROXY header, 64 KiB, and one read more.

import type { Socket } from 'node:net';
import { type Arrival, ArrivalTimer } from '../../network/arrival-timer.ts';
import type { DownstreamConnection } from '../../network/downstream-connection.ts';
import { HeldBytes } from '../../network/held-bytes.ts';
import { attachAccepted, passOn, passOnLater, type SocketOwner } from '../../network/socket-events.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { NEED_MORE, REFUSED } from './filter.ts';
import type { CurrentListenerFilters } from './listener-filters.ts';

export type PhaseEnd = 'done' | 'refused' | 'remote-close' | 'remote-error' | 'timeout' | 'destroyed';

/** The listener, as a connection in this phase sees it. */
export interface ListenerFilterPhaseOwner {
  /** 0 for no limit. */
  readonly listenerFiltersTimeoutMs: number;
  readonly continueOnListenerFiltersTimeout: boolean;
  /** Called once, before anything becomes of the end. */
  onPhaseEnded(phase: ListenerFilterPhase, end: PhaseEnd): void;
  /** Chooses the filter chain, which takes over the socket, or closes the connection. */
  onListenerFiltersDone(connection: DownstreamConnection): void;
}

const WAITING = 0;
const DONE = 1;
const CLOSED = 2;

export class ListenerFilterPhase implements SocketOwner, Arrival {
  readonly #context: WorkerContext;
  readonly #owner: ListenerFilterPhaseOwner;
  readonly #connection: DownstreamConnection;
  readonly #met: CurrentListenerFilters;
  readonly #socket: Socket;
  readonly #timer: ArrivalTimer;
  readonly #held = new HeldBytes();
  #state: number = WAITING;
  #nextFilter: number;
  /** Bytes of what is held that filters have taken. */
  #taken = 0;

  /** @param met the filters of the listener, to which it keeps. @param nextFilter the first that has not seen the connection yet. */
  constructor(
    context: WorkerContext,
    owner: ListenerFilterPhaseOwner,
    connection: DownstreamConnection,
    met: CurrentListenerFilters,
    nextFilter: number,
  ) {
    this.#context = context;
    this.#owner = owner;
    this.#connection = connection;
    this.#met = met;
    for (const use of met.uses) use.enter();
    this.#socket = connection.socket;
    this.#nextFilter = nextFilter;
    this.#timer = new ArrivalTimer(this, context.wheel, connection.startMs, owner.listenerFiltersTimeoutMs);
    attachAccepted(this.#socket, this, context.readMode);
  }

  destroy(): void {
    this.#close('destroyed');
  }

  /** The process ends. */
  endIfSilent(): void {
    this.#timer.endIfSilent(this.#connection.startMs);
  }

  get isSilent(): boolean {
    return this.#held.length === 0;
  }

  onSilence(): void {
    this.#close('destroyed');
  }

  onBytes(chunk: Buffer, length: number): boolean {
    if (this.#state !== WAITING) return true;
    const isFirst = this.#held.length === 0;
    if (!isFirst) this.#held.append(chunk, 0, length);
    const bytes = isFirst ? chunk : this.#held.peek();
    const end = isFirst ? length : bytes.length;
    const at = this.#inspect(bytes, this.#taken, end);
    if (at === REFUSED) {
      this.#close('refused');
      return true;
    }
    if (this.#nextFilter === this.#met.filters.length) {
      this.#goOn('done');
      return passOn(this.#socket, bytes.subarray(at, end));
    }
    this.#taken = isFirst ? 0 : at;
    if (isFirst) this.#held.append(bytes, at, end);
    return true;
  }

  onEnd(): void {
    this.#close('remote-close');
  }

  onDrain(): void {}

  onClose(error: NodeJS.ErrnoException | null): void {
    this.#close(error === null ? 'remote-close' : 'remote-error');
  }

  onFault(error: unknown): void {
    this.#context.logFault('a listener filter', error);
    this.#close('destroyed');
  }

  onTooLate(): void {
    if (!this.#owner.continueOnListenerFiltersTimeout) {
      this.#close('timeout');
      return;
    }
    this.#goOn('timeout');
    passOnLater(this.#socket, this.#held.peek().subarray(this.#taken), this.#context.readMode);
  }

  /** @returns where the bytes begin that no filter has taken, or REFUSED. */
  #inspect(bytes: Buffer, start: number, end: number): number {
    const { filters } = this.#met;
    let at = start;
    while (this.#nextFilter < filters.length) {
      const taken = filters[this.#nextFilter]!.inspect(bytes, at, end, this.#connection);
      if (taken === NEED_MORE) return at;
      if (taken === REFUSED) return REFUSED;
      at += taken;
      this.#nextFilter += 1;
    }
    return at;
  }

  #goOn(end: PhaseEnd): void {
    this.#end(DONE, end);
    this.#owner.onListenerFiltersDone(this.#connection);
  }

  #close(end: PhaseEnd): void {
    if (this.#state !== WAITING) return;
    this.#end(CLOSED, end);
    this.#socket.destroy();
  }

  #end(state: number, end: PhaseEnd): void {
    this.#state = state;
    this.#timer.remove();
    for (const use of this.#met.uses) use.leave();
    this.#owner.onPhaseEnded(this, end);
  }
}
