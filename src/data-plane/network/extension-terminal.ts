// A terminal filter of an extension, in one worker: the list of its connections, each with a filter of its own that reads
// and answers it.

import type { Socket } from 'node:net';
import type { JsonObject } from '../../base/json.ts';
import type { Metadata, NetworkFilterSnapshot } from '../../snapshot/index.ts';
import type { DownstreamFacts, FormatFacts, IngressFacts } from '../format/facts.ts';
import type { CallReceiver, CallRequest } from '../http/filter-call.ts';
import { type UpstreamCall, UpstreamCalls } from '../router/upstream-call.ts';
import { RawUpstreams } from '../tcp-proxy/filter-upstreams.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import { connectionFacts, filterFacts } from './connection-facts.ts';
import { Delivery, type DeliveryOwner } from './delivery.ts';
import type { DownstreamConnection } from './downstream-connection.ts';
import type { NetworkFilter, TerminalCallbacks, TerminalFilterContext, Termination } from './network-filter.ts';
import { ChainFilterContext } from './network-filter-context.ts';
import { PausedPeer, type PausedPeerOwner } from './paused-peers.ts';
import { attachAccepted, resumeAccepted, type SocketOwner } from './socket-events.ts';
import { QUIET_MS, type TerminalFilter } from './terminal-filter.ts';
import { type TimeoutOwner, TimerEntry } from './timer-wheel.ts';

/** A client that takes nothing of the last that it gets for this time has lost it. */
const UNTAKEN_MS = 10_000;
/** Of what hosts answer to the filter at a time. */
const ANSWER_LIMIT_BYTES = 1024 * 1024;
const NO_BYTES = Buffer.alloc(0);
const NEVER = Number.POSITIVE_INFINITY;

class TerminalChainContext extends ChainFilterContext implements TerminalFilterContext {
  readonly upstreams: RawUpstreams;
  readonly #closers: (() => void)[] = [];

  constructor(context: WorkerContext, clusters: ClusterMap, snapshot: NetworkFilterSnapshot) {
    super(context, snapshot);
    this.upstreams = new RawUpstreams(context, clusters, ANSWER_LIMIT_BYTES);
  }

  onClose(callback: () => void): void {
    this.#closers.push(callback);
  }

  override close(): void {
    for (const tell of this.#closers) tell();
    super.close();
  }
}

export class ExtensionTerminal implements TerminalFilter {
  readonly calls: UpstreamCalls;
  readonly ingress: IngressFacts;
  readonly create: (callbacks: TerminalCallbacks) => NetworkFilter;
  readonly #context: WorkerContext;
  readonly #filterContext: TerminalChainContext;
  readonly #connections = new Set<TerminalConnection>();
  #isFinishing = false;

  constructor(context: WorkerContext, clusters: ClusterMap, snapshot: NetworkFilterSnapshot, ingress: IngressFacts) {
    this.ingress = ingress;
    const { name, settings } = snapshot.settings;
    const kind = context.networkFilters[name];
    // Main has let no other name through.
    if (!kind?.isTerminal) throw new Error(`${name} is no terminal filter`);
    this.#context = context;
    this.calls = new UpstreamCalls(context, clusters);
    this.#filterContext = new TerminalChainContext(context, clusters, snapshot);
    this.create = kind.compile(settings, this.#filterContext);
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  accept(downstream: DownstreamConnection): void {
    const connection = new TerminalConnection(this.#context, this, downstream);
    this.#connections.add(connection);
    connection.start();
    if (this.#isFinishing) connection.endWhenQuiet();
  }

  /** Raw connections have no good moment to end. */
  drain(): void {}

  finish(): void {
    this.#isFinishing = true;
    for (const connection of [...this.#connections]) connection.endWhenQuiet();
  }

  /** Its connections are no streams. */
  findExpensive(): void {}

  /** None of its timeouts is shortened. */
  rescaleTimeouts(): void {}

  destroyConnections(): void {
    for (const connection of [...this.#connections]) connection.close();
  }

  close(): void {
    this.#filterContext.close();
  }

  onConnectionClosed(connection: TerminalConnection): void {
    this.#connections.delete(connection);
    connection.downstream.closed();
  }
}

class TerminalConnection implements SocketOwner, TerminalCallbacks, PausedPeerOwner, DeliveryOwner, TimeoutOwner {
  readonly downstream: DownstreamConnection;
  readonly #context: WorkerContext;
  readonly #terminal: ExtensionTerminal;
  readonly #socket: Socket;
  readonly #timer = new TimerEntry(this);
  readonly #filter: NetworkFilter;
  #isReadStopped = false;
  #isAsking = false;
  #hasGoneOn = false;
  #hasClientEnded = false;
  #isOver = false;
  /** The process ends: silence is the end. */
  #isEnding = false;
  /** Of the last that the client gets; null before that is written. */
  #delivery: Delivery | null = null;
  #deadlineMs = NEVER;
  #peer: PausedPeer | null = null;
  #calls: Set<UpstreamCall> | null = null;

  constructor(context: WorkerContext, terminal: ExtensionTerminal, downstream: DownstreamConnection) {
    this.#context = context;
    this.#terminal = terminal;
    this.downstream = downstream;
    this.#socket = downstream.socket;
    attachAccepted(this.#socket, this, context.readMode);
    this.#filter = terminal.create(this);
  }

  /** Once. */
  start(): void {
    this.#guarded(() => {
      const { onNewConnection } = this.#filter;
      if (onNewConnection === undefined) return;
      this.#isReadStopped = this.#ask(() => onNewConnection.call(this.#filter)) === 'stop';
    });
  }

  endWhenQuiet(): void {
    this.#isEnding = true;
    this.#touch();
  }

  // ---- What the filter asks for ----

  get connection(): DownstreamFacts {
    return connectionFacts(this.#context, this.downstream);
  }

  get metadata(): Metadata | null {
    return this.downstream.metadata;
  }

  formatFacts(): FormatFacts {
    return filterFacts(this.#context, this.downstream, this.#terminal.ingress);
  }

  continueReading(): void {
    if (this.#isAsking) this.#hasGoneOn = true;
    else if (!this.#isOver && this.#isReadStopped) {
      this.#isReadStopped = false;
      this.#peer?.resume();
      resumeAccepted(this.#socket, this.#context.readMode);
    }
  }

  close({ details = '', flag }: Termination = {}): void {
    if (this.#isOver) return;
    this.downstream.terminate(details, flag);
    this.#leave();
    this.#socket.destroy();
  }

  addMetadata(namespace: string, values: JsonObject): void {
    this.downstream.addMetadata(namespace, values);
  }

  setState(key: string, value: string, isReadOnly?: boolean): void {
    this.downstream.setState(key, value, isReadOnly);
  }

  state(key: string): string | undefined {
    return this.downstream.state(key);
  }

  call(request: CallRequest, receiver: CallReceiver): void {
    if (this.#isOver) return;
    let call: UpstreamCall | null = null;
    const tell = (told: () => void): void => {
      if (call !== null) this.#calls?.delete(call);
      if (!this.#isOver) this.#guarded(told);
    };
    call = this.#terminal.calls.begin(request, {
      onAnswer: (answer) => tell(() => receiver.onAnswer(answer)),
      onCallFailure: (failure) => tell(() => receiver.onCallFailure(failure)),
    });
    if (call === null) return;
    if (this.#isOver) {
      call.cancel();
      return;
    }
    this.#calls ??= new Set();
    this.#calls.add(call);
  }

  write(bytes: Buffer): boolean {
    if (this.#isOver || this.#socket.writableEnded || bytes.length === 0) return true;
    if (this.#isEnding) this.#touch();
    return this.#socket.write(bytes);
  }

  end(): void {
    if (!this.#isOver) this.#socket.end();
  }

  finish(): void {
    if (this.#isOver || this.#delivery !== null) return;
    this.#socket.end();
    this.#delivery = new Delivery(this.#context, this.#socket, this);
    this.#touch();
    this.#delivery.start();
  }

  // ---- The client's socket ----

  onBytes(chunk: Buffer, length: number): boolean {
    if (this.#isOver || this.#delivery !== null) return true;
    if (this.#isEnding) this.#touch();
    const { onData } = this.#filter;
    if (onData === undefined) return true;
    const status = this.#ask(() => onData.call(this.#filter, chunk.subarray(0, length), false));
    if (this.#isOver || status === 'continue') return true;
    this.#isReadStopped = true;
    this.#context.pausedPeers.pause(this.#watched);
    return false;
  }

  onEnd(): void {
    this.#hasClientEnded = true;
    if (this.#isOver) return;
    this.#filter.onData?.(NO_BYTES, true);
    if (!this.#isOver) this.#context.pausedPeers.ended(this.#watched);
  }

  onDrain(): void {
    if (!this.#isOver) this.#filter.onWritable?.();
  }

  onClose(): void {
    this.#leave();
  }

  onFault(error: unknown): void {
    this.#context.logFault('a network filter', error);
    this.#leave();
  }

  onPausedPeerGone(isReset: boolean): void {
    if (isReset || this.#hasClientEnded) this.close();
  }

  onDeliveryProgress(): void {
    this.#touch();
  }

  onDelivered(): void {
    this.close();
  }

  onTimeout(nowMs: number): void {
    if (this.#isOver) return;
    if (nowMs < this.#deadlineMs) this.#arm();
    // Bytes that a slow client has not taken yet are waited for.
    else if (this.#delivery === null && this.#socket.writableLength > 0) this.#touch();
    else this.close();
  }

  // ---- Inside ----

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

  get #watched(): PausedPeer {
    this.#peer ??= new PausedPeer(this, this.#socket);
    return this.#peer;
  }

  #touch(): void {
    this.#deadlineMs = this.#context.clock.monotonicMs() + (this.#delivery === null ? QUIET_MS : UNTAKEN_MS);
    this.#arm();
  }

  #arm(): void {
    this.#context.wheel.arm(this.#timer, this.#deadlineMs);
  }

  #guarded(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#context.logFault('a network filter', error);
      this.close();
    }
  }

  #leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#context.wheel.remove(this.#timer);
    this.#delivery?.stop();
    this.#peer?.resume();
    for (const call of this.#calls ?? []) call.cancel();
    this.#calls = null;
    this.#filter.onClosed?.();
    this.#terminal.onConnectionClosed(this);
  }
}
