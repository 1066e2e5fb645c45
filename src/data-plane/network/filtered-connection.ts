// One connection on its way through the network filters of its chain, and beside them afterwards.
//
//   PASSING ──every filter goes on──► OPEN, the terminal filter has it ──► CLOSED
//      └──a filter ends it, client gone, chain ends──────────────────────────►│
//
// As long as a filter holds it, no more is read than one read brings, so that a client which sends before it is let in costs
// that much. Where filters read bytes it stays between the socket and the terminal filter's owner; else it is out of the way.

import type { Socket } from 'node:net';
import type { JsonObject } from '../../base/json.ts';
import type { Metadata } from '../../snapshot/index.ts';
import type { DownstreamFacts, FormatFacts } from '../format/facts.ts';
import type { CallReceiver, CallRequest } from '../http/filter-call.ts';
import type { UpstreamCall } from '../router/upstream-call.ts';
import type { WorkerContext } from '../worker-context.ts';
import { connectionFacts, filterFacts } from './connection-facts.ts';
import type { DownstreamConnection, DownstreamWatcher } from './downstream-connection.ts';
import { HeldBytes } from './held-bytes.ts';
import type { NetworkFilter, NetworkFilterCallbacks, Termination } from './network-filter.ts';
import type { NetworkFilterChain } from './network-filter-chain.ts';
import { PausedPeer, type PausedPeerOwner } from './paused-peers.ts';
import {
  attachAccepted,
  passEndOn,
  passOn,
  resumeAccepted,
  type SocketOwner,
  type SocketStep,
} from './socket-events.ts';

export interface FilteredConnectionOwner {
  /** All filters have let it through: from here on it is the terminal filter's. */
  onFiltersPassed(connection: DownstreamConnection): void;
  /** It is closed, and the terminal filter never gets it. Called before its `closed`. */
  onFilteredOut(connection: DownstreamConnection): void;
}

const PASSING = 0;
const OPEN = 1;
const CLOSED = 2;
const NO_BYTES = Buffer.alloc(0);
/** Of filters that are not held up. */
const NOBODY = -1;

export class FilteredConnection implements SocketStep, PausedPeerOwner, DownstreamWatcher {
  /** Whom the bytes go to behind the filters; null before that is known. */
  next: SocketOwner | null = null;
  readonly #context: WorkerContext;
  readonly #chain: NetworkFilterChain;
  readonly #connection: DownstreamConnection;
  readonly #owner: FilteredConnectionOwner;
  readonly #socket: Socket;
  readonly #filters: readonly NetworkFilter[];
  #state: number = PASSING;
  /** The filter that holds the connection, or its bytes; NOBODY. */
  #holder = NOBODY;
  /** A filter has gone on while it was being asked. */
  #hasGoneOn = false;
  #isAsking = false;
  #isAttached = false;
  /** What has come while a filter holds; reading is stopped as soon as there is some. */
  readonly #held = new HeldBytes();
  #hasClientEnded = false;
  #isEndPassedOn = false;
  #peer: PausedPeer | null = null;
  #calls: Set<UpstreamCall> | null = null;

  constructor(
    context: WorkerContext,
    chain: NetworkFilterChain,
    connection: DownstreamConnection,
    owner: FilteredConnectionOwner,
  ) {
    this.#context = context;
    this.#chain = chain;
    this.#connection = connection;
    this.#owner = owner;
    this.#socket = connection.socket;
    this.#filters = chain.create.map((create, index) => create(new Callbacks(this, index)));
  }

  /** Once. */
  begin(): void {
    this.#connection.watch(this);
    if (this.#chain.readsData) this.#attach();
    this.#guarded(() => this.#passNew(0));
  }

  destroy(): void {
    this.close({});
  }

  // ---- What filters ask for ----

  get facts(): DownstreamFacts {
    return connectionFacts(this.#context, this.#connection);
  }

  get connection(): DownstreamConnection {
    return this.#connection;
  }

  formatFacts(): FormatFacts {
    return filterFacts(this.#context, this.#connection, this.#chain.ingress);
  }

  get isOver(): boolean {
    return this.#state === CLOSED;
  }

  /** @param index of the filter. */
  goOn(index: number): void {
    if (this.isOver) return;
    if (this.#isAsking) {
      this.#hasGoneOn = true;
      return;
    }
    if (this.#holder !== index) return;
    this.#holder = NOBODY;
    this.#guarded(() => {
      if (this.#state === PASSING) this.#passNew(index + 1);
      else this.#releaseHeld(index + 1);
    });
  }

  close({ details, flag }: Termination): void {
    if (this.isOver) return;
    this.#connection.terminate(details ?? '', flag);
    if (this.#state === OPEN) {
      // Whoever has it is told, and says that it has closed.
      this.#socket.destroy();
      return;
    }
    this.#closeUnpassed();
    this.#socket.destroy();
  }

  call(request: CallRequest, receiver: CallReceiver): void {
    if (this.isOver) return;
    let call: UpstreamCall | null = null;
    // The event is the upstream's, whose connection is not at fault.
    const tell = (told: () => void): void => {
      if (call !== null) this.#calls?.delete(call);
      if (!this.isOver) this.#guarded(told);
    };
    call = this.#chain.calls.begin(request, {
      onAnswer: (answer) => tell(() => receiver.onAnswer(answer)),
      onCallFailure: (failure) => tell(() => receiver.onCallFailure(failure)),
    });
    if (call === null) return;
    if (this.isOver) {
      call.cancel();
      return;
    }
    this.#calls ??= new Set();
    this.#calls.add(call);
  }

  // ---- The client's socket ----

  onBytes(chunk: Buffer, length: number): boolean {
    if (this.isOver) return true;
    if (this.#state === PASSING || this.#holder !== NOBODY) {
      this.#hold(chunk, length);
      return false;
    }
    const bytes = chunk.length === length ? chunk : chunk.subarray(0, length);
    const holder = this.#show(bytes, false, 0);
    if (this.isOver) return true;
    if (holder === NOBODY) return this.next!.onBytes(chunk, length);
    this.#hold(chunk, length);
    return false;
  }

  onEnd(): void {
    this.#hasClientEnded = true;
    if (this.isOver) return;
    if (this.#state === PASSING || this.#holder !== NOBODY) {
      this.#context.pausedPeers.ended(this.#watched);
      return;
    }
    if (this.#show(NO_BYTES, true, 0) === NOBODY) this.#passEnd();
  }

  onDrain(): void {
    this.next?.onDrain();
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    if (this.next !== null) this.next.onClose(error);
    else this.#closeUnpassed();
  }

  onFault(error: unknown): void {
    if (this.next !== null) {
      this.next.onFault(error);
      return;
    }
    this.#context.logFault('a network filter', error);
    this.#closeUnpassed();
  }

  /** An end is no reason to let go: the client may still want what the upstream sends. */
  onPausedPeerGone(isReset: boolean): void {
    if (isReset) this.close({});
  }

  onDownstreamClosed(): void {
    this.#leave();
  }

  // ---- Inside ----

  /** Shows the new connection to the filters from this one on. */
  #passNew(from: number): void {
    for (let index = from; index < this.#filters.length; index++) {
      const filter = this.#filters[index]!;
      const status = this.#ask(() => filter.onNewConnection?.() ?? 'continue');
      if (this.isOver) return;
      if (status === 'continue') continue;
      this.#holder = index;
      if (!this.#isAttached) this.#attach();
      return;
    }
    this.#open();
  }

  #open(): void {
    this.#state = OPEN;
    this.#peer?.resume();
    this.#chain.leave(this);
    this.#owner.onFiltersPassed(this.#connection);
    if (this.isOver || !this.#isAttached) return;
    if (this.#chain.readsData) this.#releaseHeld(0);
    else {
      const bytes = this.#held.take();
      this.#passHeld(bytes, () => passOn(this.#socket, bytes));
    }
  }

  /** What was held goes to the filters from this one on, and behind them. */
  #releaseHeld(from: number): void {
    const bytes = this.#held.take();
    const isEnd = this.#hasClientEnded && !this.#isEndPassedOn;
    if (bytes.length > 0 || isEnd) {
      const holder = this.#show(bytes, isEnd, from);
      if (this.isOver) return;
      if (holder !== NOBODY) {
        this.#held.append(bytes, 0, bytes.length);
        return;
      }
    }
    this.#passHeld(bytes, () => this.next?.onBytes(bytes, bytes.length) ?? true);
  }

  #passHeld(bytes: Buffer, pass: () => boolean): void {
    this.#peer?.resume();
    // Whoever gets them may give their memory back at once.
    const hadBytes = bytes.length > 0;
    const goesOn = !hadBytes || pass();
    if (this.isOver || this.#socket.destroyed) return;
    if (this.#hasClientEnded) this.#passEnd();
    else if (hadBytes && goesOn) resumeAccepted(this.#socket, this.#context.readMode);
  }

  #passEnd(): void {
    if (this.#isEndPassedOn) return;
    this.#isEndPassedOn = true;
    if (this.#chain.readsData) this.next?.onEnd();
    else passEndOn(this.#socket);
  }

  /** @returns the filter that holds them, or NOBODY. */
  #show(bytes: Buffer, isEnd: boolean, from: number): number {
    for (let index = from; index < this.#filters.length; index++) {
      const filter = this.#filters[index]!;
      if (filter.onData === undefined) continue;
      const status = this.#ask(() => filter.onData!(bytes, isEnd));
      if (this.isOver) return NOBODY;
      if (status === 'continue') continue;
      this.#holder = index;
      return index;
    }
    return NOBODY;
  }

  #ask(question: () => 'continue' | 'stop'): 'continue' | 'stop' {
    this.#isAsking = true;
    this.#hasGoneOn = false;
    try {
      const status = question();
      return this.#hasGoneOn ? 'continue' : status;
    } finally {
      this.#isAsking = false;
    }
  }

  #attach(): void {
    this.#isAttached = true;
    attachAccepted(this.#socket, this, this.#context.readMode);
  }

  /** Whether it stays between the socket and who owns it next. */
  get isLasting(): boolean {
    return this.#chain.readsData;
  }

  #hold(chunk: Buffer, length: number): void {
    this.#held.append(chunk, 0, length);
    this.#context.pausedPeers.pause(this.#watched);
  }

  get #watched(): PausedPeer {
    this.#peer ??= new PausedPeer(this, this.#socket);
    return this.#peer;
  }

  #guarded(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#context.logFault('a network filter', error);
      this.close({});
    }
  }

  #closeUnpassed(): void {
    if (this.#state !== PASSING) return;
    this.#leave();
    this.#owner.onFilteredOut(this.#connection);
    this.#connection.closed();
  }

  #leave(): void {
    if (this.isOver) return;
    this.#state = CLOSED;
    this.#peer?.resume();
    this.#held.take();
    this.#chain.leave(this);
    for (const call of this.#calls ?? []) call.cancel();
    this.#calls = null;
    for (const filter of this.#filters) filter.onClosed?.();
  }
}

class Callbacks implements NetworkFilterCallbacks {
  readonly #filtered: FilteredConnection;
  readonly #index: number;

  constructor(filtered: FilteredConnection, index: number) {
    this.#filtered = filtered;
    this.#index = index;
  }

  get connection(): DownstreamFacts {
    return this.#filtered.facts;
  }

  get metadata(): Metadata | null {
    return this.#filtered.connection.metadata;
  }

  formatFacts(): FormatFacts {
    return this.#filtered.formatFacts();
  }

  continueReading(): void {
    this.#filtered.goOn(this.#index);
  }

  close(why: Termination = {}): void {
    this.#filtered.close(why);
  }

  addMetadata(namespace: string, values: JsonObject): void {
    this.#filtered.connection.addMetadata(namespace, values);
  }

  setState(key: string, value: string, isReadOnly?: boolean): void {
    this.#filtered.connection.setState(key, value, isReadOnly);
  }

  state(key: string): string | undefined {
    return this.#filtered.connection.state(key);
  }

  call(request: CallRequest, receiver: CallReceiver): void {
    this.#filtered.call(request, receiver);
  }
}
