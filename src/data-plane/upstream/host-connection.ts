// How a connection to a host is opened. A host with several addresses is tried at one after the other, the next one
// as soon as an attempt has failed or has taken 300 ms; what connects first is the connection, the others are closed
// (RFC 8305). The owner bounds how long all of it may take.
//
//   CONNECTING ──an attempt connects──► DONE: its events are the owner's
//       ├──the last attempt fails─────► DONE: the owner hears of it
//       └──the stand-in is destroyed──► DONE
//
// Attempts beyond the first count as connections of their own, as in the reference; that the connection fails counts
// once.

import { Socket } from 'node:net';
import type { Address, IpAddress } from '../../base/address.ts';
import type { UpstreamSocketOptions, UpstreamSocketOwner } from '../network/socket-events.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import type { WorkerContext } from '../worker-context.ts';

const ATTEMPT_DELAY_MS = 300;

export interface HostConnectionOwner extends UpstreamSocketOwner {
  /** Another address is tried, too. */
  onFurtherAttempt(): void;
  /** The connection will be over this socket, and to this address; `onConnect` follows. */
  onChosen(socket: Socket, address: Address): void;
}

/** Where connections go, and how. */
interface ConnectedHost {
  readonly address: Address;
  readonly connectOrder: readonly IpAddress[] | null;
  readonly cluster: { readonly settings: UpstreamSocketOptions };
}

/**
 * @param preamble as for connectUpstream.
 * @returns the socket of the connection; with several addresses one that stands for it until `onChosen`: to destroy
 *   it calls off all attempts.
 */
export function connectToHost(
  context: WorkerContext,
  host: ConnectedHost,
  owner: HostConnectionOwner,
  preamble: Buffer | null,
): Socket {
  const { connectOrder, cluster } = host;
  if (connectOrder === null) return context.connectUpstream(host.address, owner, context, cluster.settings, preamble);
  return new SeveralAttempts(context, cluster.settings, connectOrder, owner, preamble).standIn;
}

class SeveralAttempts implements TimeoutOwner {
  readonly standIn = new Socket();
  readonly owner: HostConnectionOwner;
  readonly #context: WorkerContext;
  readonly #settings: UpstreamSocketOptions;
  readonly #addresses: readonly IpAddress[];
  readonly #preamble: Buffer | null;
  readonly #running = new Set<Attempt>();
  readonly #timer = new TimerEntry(this);
  #next = 0;
  #isDone = false;

  constructor(
    context: WorkerContext,
    settings: UpstreamSocketOptions,
    addresses: readonly IpAddress[],
    owner: HostConnectionOwner,
    preamble: Buffer | null,
  ) {
    this.#context = context;
    this.#settings = settings;
    this.#addresses = addresses;
    this.#preamble = preamble;
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
    attempt.isChosen = true;
    this.owner.onChosen(attempt.socket, attempt.address);
    this.owner.onConnect();
  }

  onFailed(attempt: Attempt, error: NodeJS.ErrnoException | null): void {
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
    const attempt = new Attempt(this, this.#addresses[this.#next]!);
    this.#next++;
    this.#running.add(attempt);
    const { address } = attempt;
    attempt.socket = this.#context.connectUpstream(address, attempt, this.#context, this.#settings, this.#preamble);
    const isLast = this.#next === this.#addresses.length;
    if (isLast) wheel.disarm(this.#timer);
    else wheel.arm(this.#timer, clock.monotonicMs() + ATTEMPT_DELAY_MS);
  }

  /** @param chosen goes on; null for none. */
  #end(chosen: Attempt | null): void {
    this.#isDone = true;
    this.#context.wheel.remove(this.#timer);
    for (const attempt of this.#running) if (attempt !== chosen) attempt.socket.destroy();
    this.#running.clear();
  }
}

/** Passes on what happens to one socket: to those who wait for it, and to the owner when it has been chosen. */
class Attempt implements UpstreamSocketOwner {
  readonly address: IpAddress;
  socket!: Socket;
  readonly #all: SeveralAttempts;
  readonly #owner: HostConnectionOwner;
  isChosen = false;

  constructor(all: SeveralAttempts, address: IpAddress) {
    this.#all = all;
    this.#owner = all.owner;
    this.address = address;
  }

  onConnect(): void {
    this.#all.onConnected(this);
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    if (this.isChosen) this.#owner.onClose(error);
    else this.#all.onFailed(this, error);
  }

  onFault(error: unknown): void {
    this.#all.onFault(error);
  }

  readBuffer(): Buffer {
    return this.#owner.readBuffer();
  }

  onBytes(chunk: Buffer, length: number): boolean {
    return this.#owner.onBytes(chunk, length);
  }

  onEnd(): void {
    this.#owner.onEnd();
  }

  onDrain(): void {
    this.#owner.onDrain();
  }

  onSendFailed(error: NodeJS.ErrnoException): void {
    this.#owner.onSendFailed(error);
  }
}
