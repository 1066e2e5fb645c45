// How a connection to a host is opened. A host with several addresses is tried at one after the other, the next one
// as soon as an attempt has failed or has taken 300 ms; what connects first is the connection, the others are closed
// (RFC 8305). Where connections are secured, one counts as connected when it is. The owner bounds how long all of it may take.
//
//   CONNECTING ──an attempt connects──► DONE: its events are the owner's
//       ├──the last attempt fails─────► DONE: the owner hears of it
//       └──the stand-in is destroyed──► DONE
//
// Attempts beyond the first count as connections of their own, as in the reference; that the connection fails counts
// once.

import { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Address, IpAddress } from '../../base/address.ts';
import { attachSecured, type UpstreamSocketOptions, type UpstreamSocketOwner } from '../network/socket-events.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import type { ConnectionTls, TlsFacts } from '../network/tls/connection-tls.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { AlpnWish, Opening } from './opening.ts';
import { SecuredSocket, type SecuredSocketOwner } from './tls/secured-socket.ts';
import type { UpstreamTls } from './tls/upstream-tls.ts';

const ATTEMPT_DELAY_MS = 300;

/** Who waits for a connection, and then gives it to whoever speaks its protocol. */
export interface AttemptsOwner extends Pick<UpstreamSocketOwner, 'readBuffer' | 'onClose' | 'onFault'> {
  /** Another address is tried, too. */
  onFurtherAttempt(): void;
  /**
   * The connection will be over this socket, and to this address.
   * @param tls what a handshake has agreed on; null for a plain connection.
   * @returns whose its events are from now on; `onConnect` is the first.
   */
  onChosen(socket: Socket, address: Address, tls: TlsFacts | null): UpstreamSocketOwner;
}

export interface HostConnectionOwner extends AttemptsOwner, UpstreamSocketOwner {}

/** Where connections go, and how. */
interface ConnectedHost {
  readonly address: Address;
  readonly connectOrder: readonly IpAddress[] | null;
  readonly cluster: { readonly settings: UpstreamSocketOptions };
}

/**
 * @param alpn what a handshake offers.
 * @returns the socket of the connection; with several addresses, or TLS, one that stands for it until `onChosen`: to
 *   destroy it calls off all attempts.
 */
export function connectToHost(
  context: WorkerContext,
  host: ConnectedHost,
  owner: HostConnectionOwner,
  opening: Opening,
  alpn: AlpnWish,
): Socket {
  const { connectOrder, cluster, address } = host;
  if (connectOrder === null && opening.tls === null) {
    return context.connectUpstream(address, owner, context, cluster.settings, opening.preamble);
  }
  return attemptConnection(context, host, owner, opening, alpn);
}

/** The same for an owner that learns from the attempts who will own the connection. */
export function attemptConnection(
  context: WorkerContext,
  { connectOrder, cluster, address }: ConnectedHost,
  owner: AttemptsOwner,
  opening: Opening,
  alpn: AlpnWish,
): Socket {
  return new SeveralAttempts(context, cluster.settings, connectOrder ?? [address], owner, opening, alpn).standIn;
}

class SeveralAttempts implements TimeoutOwner {
  readonly standIn = new Socket();
  readonly owner: AttemptsOwner;
  readonly #context: WorkerContext;
  readonly #settings: UpstreamSocketOptions;
  readonly #addresses: readonly Address[];
  readonly #opening: Opening;
  readonly #alpn: AlpnWish;
  readonly #running = new Set<AnyAttempt>();
  readonly #timer = new TimerEntry(this);
  #next = 0;
  #isDone = false;

  constructor(
    context: WorkerContext,
    settings: UpstreamSocketOptions,
    addresses: readonly Address[],
    owner: AttemptsOwner,
    opening: Opening,
    alpn: AlpnWish,
  ) {
    this.#context = context;
    this.#settings = settings;
    this.#addresses = addresses;
    this.#opening = opening;
    this.#alpn = alpn;
    this.owner = owner;
    this.standIn.on('close', () => this.#end(null));
    this.#tryNext();
  }

  onTimeout(): void {
    if (this.#isOver) return;
    this.owner.onFurtherAttempt();
    this.#tryNext();
  }

  onConnected(attempt: Attempt): void {
    if (this.#isOver) return;
    this.#end(attempt);
    const chosen = this.owner.onChosen(attempt.socket!, attempt.address, null);
    attempt.chosen = chosen;
    chosen.onConnect();
  }

  onSecured(attempt: SecuredAttempt, socket: TLSSocket, tls: ConnectionTls): void {
    if (this.#isOver) {
      socket.destroy();
      return;
    }
    this.#end(attempt);
    const chosen = this.owner.onChosen(socket, attempt.address, tls);
    attachSecured(socket, chosen, this.#context.readMode);
    chosen.onConnect();
  }

  onFailed(attempt: AnyAttempt, error: NodeJS.ErrnoException | null): void {
    if (this.#isOver) return;
    this.#running.delete(attempt);
    if (this.#next < this.#addresses.length) {
      this.owner.onFurtherAttempt();
      this.#tryNext();
    } else if (this.#running.size === 0) {
      this.#end(null);
      this.owner.onClose(error);
    }
  }

  onFault(error: unknown): void {
    this.#end(null);
    this.owner.onFault(error);
  }

  /** The close of the stand-in is told a little later. */
  get #isOver(): boolean {
    return this.#isDone || this.standIn.destroyed;
  }

  #tryNext(): void {
    const { wheel, clock } = this.#context;
    const address = this.#addresses[this.#next]!;
    this.#next++;
    this.#running.add(this.#attempt(address));
    const isLast = this.#next === this.#addresses.length;
    if (isLast) wheel.disarm(this.#timer);
    else wheel.arm(this.#timer, clock.monotonicMs() + ATTEMPT_DELAY_MS);
  }

  #attempt(address: Address): AnyAttempt {
    const { tls, preamble } = this.#opening;
    if (tls !== null)
      return new SecuredAttempt(this, address, this.#context, this.#settings, tls, this.#opening, this.#alpn);
    const attempt = new Attempt(this, address);
    attempt.socket = this.#context.connectUpstream(address, attempt, this.#context, this.#settings, preamble);
    return attempt;
  }

  /** @param chosen goes on; null for none. */
  #end(chosen: AnyAttempt | null): void {
    this.#isDone = true;
    this.#context.wheel.remove(this.#timer);
    for (const attempt of this.#running) if (attempt !== chosen) attempt.destroy();
    this.#running.clear();
  }
}

interface AnyAttempt {
  readonly address: Address;
  destroy(): void;
}

/** Over once the connection is secured: its events are the owner's own then. */
class SecuredAttempt implements AnyAttempt, SecuredSocketOwner {
  readonly address: Address;
  readonly #all: SeveralAttempts;
  readonly #socket: SecuredSocket;

  constructor(
    all: SeveralAttempts,
    address: Address,
    context: WorkerContext,
    settings: UpstreamSocketOptions,
    tls: UpstreamTls,
    opening: Opening,
    alpn: AlpnWish,
  ) {
    this.#all = all;
    this.address = address;
    this.#socket = new SecuredSocket(context, address, settings, tls, opening, alpn, this);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  onSecured(socket: TLSSocket, tls: ConnectionTls): void {
    this.#all.onSecured(this, socket, tls);
  }

  onFailed(error: NodeJS.ErrnoException | null): void {
    this.#all.onFailed(this, error);
  }

  onFault(error: unknown): void {
    this.#all.onFault(error);
  }
}

/** Passes on what happens to one socket: to those who wait for it, and to the owner when it has been chosen. */
class Attempt implements AnyAttempt, UpstreamSocketOwner {
  readonly address: Address;
  socket: Socket | null = null;
  readonly #all: SeveralAttempts;
  /** Whose the connection is; null before it is chosen. */
  chosen: UpstreamSocketOwner | null = null;

  constructor(all: SeveralAttempts, address: Address) {
    this.#all = all;
    this.address = address;
  }

  destroy(): void {
    this.socket?.destroy();
  }

  onConnect(): void {
    this.#all.onConnected(this);
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    if (this.chosen === null) this.#all.onFailed(this, error);
    else this.chosen.onClose(error);
  }

  onFault(error: unknown): void {
    if (this.chosen === null) this.#all.onFault(error);
    else this.chosen.onFault(error);
  }

  readBuffer(): Buffer {
    return (this.chosen ?? this.#all.owner).readBuffer();
  }

  onBytes(chunk: Buffer, length: number): boolean {
    return this.chosen!.onBytes(chunk, length);
  }

  onEnd(): void {
    this.chosen?.onEnd();
  }

  onDrain(): void {
    this.chosen?.onDrain();
  }

  onSendFailed(error: NodeJS.ErrnoException): void {
    this.chosen?.onSendFailed(error);
  }
}
