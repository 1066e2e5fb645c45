// A socket that accepts on one address of a listener. Other workers listen on the same address and port; the kernel
// spreads connections over them.
//
//   closed ──listen──▶ listening ──descriptors run short, or held──▶ paused ──some are free, and not held──▶ listening
//      ◀────────────────────┴────────────────────close─────────────────┘
//
// Node cannot stop to accept without closing the socket, which would refuse those who wait. So a second descriptor of it
// is kept: while the listener pauses, clients wait in the kernel's queue, and a copy of it then accepts them.

import { unlinkSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { createServer, type ListenOptions, type Server, Socket } from 'node:net';
import { type Address, formatAddress, type IpAddress, systemPath } from '../../base/address.ts';
import { familyOf } from '../../base/address-families.ts';
import type { Clock } from '../../base/clock.ts';
import { type DescriptorBudget, descriptorOf } from '../../base/descriptor-budget.ts';
import { errorMessage, WeirError } from '../../base/errors.ts';
import { bindPath, checkSystemCalls, type ListeningOptions, openSocket, setOptions } from '../../base/own-sockets.ts';
import type { SystemCalls } from '../../base/system-calls.ts';
import { ACCEPTED_SOCKET_OPTIONS } from '../network/socket-events.ts';

export interface ListeningSocketOptions {
  readonly address: Address;
  readonly backlog: number;
  readonly reusePort: boolean;
  /** What it begins with, which needs system calls; null for nothing. */
  readonly beginning: ListeningOptions | null;
  readonly clock: Clock;
  readonly descriptorBudget: DescriptorBudget;
  /** Without them accepting never pauses: clients beyond the limit are refused. */
  readonly systemCalls: SystemCalls | undefined;
}

export interface ListeningSocketOwner {
  onAccepted(socket: Socket, from: ListeningSocket): void;
  /** A client has been refused for want of descriptors. */
  onRefused(): void;
  onPaused(): void;
  onResumed(): void;
  /** Accepting has failed; it goes on. */
  onAcceptError(error: Error): void;
  /** `onAccepted` has thrown. */
  onFault(error: unknown): void;
}

type State = 'closed' | 'listening' | 'paused';

/** What Node is told to listen on. */
type Place = ListenOptions | { readonly fd: number };

/** How often a paused socket looks whether descriptors are free. */
const RESUME_MS = 100;
const NONE = -1;
/** SO_REUSEADDR, SO_REUSEPORT and IPV6_V6ONLY of Linux, which Node sets. */
const REUSE_ADDRESS = { level: 1, name: 2, value: 1 };
const REUSE_PORT = { level: 1, name: 15, value: 1 };
const IPV6_ONLY = { level: 41, name: 26 };

export class ListeningSocket {
  readonly #options: ListeningSocketOptions;
  #owner: ListeningSocketOwner;
  readonly #server: Server;
  #state: State = 'closed';
  /** Bound; 0 for a pipe. */
  #port = 0;
  /** Holds the second descriptor. A socket object and no bare number: it is closed when the thread ends, however. */
  #kept: Socket | null = null;
  /** Descriptors have run short before: each client is followed by a look whether there is one for the next. */
  #isShort = false;
  /** There is a file, and it is not libuv's to remove: that would do so with each pause. */
  #removesPath = false;
  /** Another process may accept here, too. */
  #isShared = false;
  /** Another process accepts here until it leaves it to this one. */
  #isAdopted = false;
  #cancelResume: (() => void) | null = null;
  /** Clients are to wait, whatever there is. */
  #isHeld = false;
  /** It pauses for want of descriptors. */
  #isWanting = false;

  constructor(options: ListeningSocketOptions, owner: ListeningSocketOwner) {
    this.#options = options;
    this.#owner = owner;
    this.#server = createServer(ACCEPTED_SOCKET_OPTIONS);
    this.#server.on('connection', (socket) => this.#onConnection(socket));
  }

  /**
   * @param inherited a descriptor of a socket that listens on the address already, which becomes this one's; undefined to open one.
   * @returns the bound port, 0 for a pipe. @throws WeirError WEIR_LISTEN when the address cannot be had.
   */
  async listen(port: number, inherited?: number): Promise<number> {
    const { address } = this.#options;
    await new Promise<void>((resolve, reject) => {
      const fail = (error: Error): void => {
        const text = `cannot listen on ${formatAddress(address)}: ${error.message}`;
        reject(new WeirError('WEIR_LISTEN', text, { cause: error }));
      };
      this.#server.once('error', fail);
      try {
        this.#listenOn(inherited === undefined ? this.#where(port) : this.#adopt(inherited), () => {
          this.#server.off('error', fail);
          resolve();
        });
      } catch (error) {
        fail(error as Error);
      }
    });
    this.#state = 'listening';
    this.#finishBeginning();
    this.#server.on('error', (error) => this.#onError(error));
    this.#kept = this.#keep();
    if (address.kind === 'pipe' && address.mode !== 0 && !address.path.startsWith('@'))
      await chmod(address.path, address.mode);
    const bound = this.#server.address();
    this.#port = bound === null || typeof bound === 'string' ? 0 : bound.port;
    // The order may have come while it was being opened.
    if (this.#isHeld) this.#rest();
    return this.#port;
  }

  /** The same for sockets on one address, as configured, that begin in the same way. */
  get identity(): string {
    const { address, beginning } = this.#options;
    return formatAddress(address) + (beginning === null ? '' : JSON.stringify(beginning));
  }

  get isOpen(): boolean {
    return this.#state !== 'closed';
  }

  get port(): number {
    return this.#port;
  }

  /**
   * Lets another process accept here, too: the clients that wait in the kernel's queue are those of both.
   * @returns a second descriptor of the socket, which is the caller's; undefined where there is none.
   */
  share(): number | undefined {
    const { systemCalls } = this.#options;
    if (systemCalls === undefined || this.#state === 'closed') return undefined;
    const copy = systemCalls.duplicate(descriptorOf(this.#kept ?? this.#server));
    if (copy < 0) return undefined;
    this.#isShared = true;
    return copy;
  }

  /** The process that it is from has left it to this one: the path is this one's to remove. */
  own(): void {
    const { address } = this.#options;
    if (this.#isAdopted && this.isOpen) this.#removesPath = address.kind === 'pipe' && !address.path.startsWith('@');
    this.#isAdopted = false;
  }

  /** Whoever connects from now on is another's client. */
  handTo(owner: ListeningSocketOwner): void {
    this.#owner = owner;
  }

  /** Has clients wait in the kernel's queue, or lets them in again. Without system calls they cannot be made to wait. */
  hold(isHeld: boolean): void {
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    if (isHeld) this.#rest();
    else if (this.#state === 'paused') this.#resume();
  }

  /**
   * Accepted connections go on, those that wait are reset, unless another process accepts here. Idempotent.
   * @param leavesPath to the process that it is shared with.
   */
  close(leavesPath = false): void {
    this.#state = 'closed';
    this.#cancelResume?.();
    this.#cancelResume = null;
    this.#server.close();
    this.#kept?.destroy();
    this.#kept = null;
    const removesPath = this.#removesPath && !(leavesPath && this.#isShared);
    this.#removesPath = false;
    if (!removesPath) return;
    try {
      unlinkSync(formatAddress(this.#options.address));
    } catch {
      // Somebody else has removed it.
    }
  }

  /** @returns a descriptor that is bound, as Node would have it. @throws a system error, or WeirError WEIR_SOCKET_OPTIONS. */
  #begin(address: IpAddress, { beforeBind, afterBind }: ListeningOptions): number {
    const { reusePort, systemCalls } = this.#options;
    checkSystemCalls('it', systemCalls);
    const family = familyOf(address.ip);
    const asNode = [
      REUSE_ADDRESS,
      ...(reusePort ? [REUSE_PORT] : []),
      ...(family === 'v6' ? [{ ...IPV6_ONLY, value: address.acceptsIpv4 === true ? 0 : 1 }] : []),
    ];
    return openSocket(systemCalls, family, { address, beforeBind: [...asNode, ...beforeBind], afterBind });
  }

  #finishBeginning(): void {
    const { beginning, systemCalls } = this.#options;
    if (beginning === null || beginning.afterListen.length === 0) return;
    try {
      setOptions(systemCalls!, descriptorOf(this.#server), beginning.afterListen);
    } catch (error) {
      this.close();
      const text = `cannot listen on ${formatAddress(this.#options.address)}: ${errorMessage(error)}`;
      throw new WeirError('WEIR_LISTEN', text, { cause: error });
    }
  }

  #onConnection(socket: Socket): void {
    const { acceptBelow, connectBelow } = this.#options.descriptorBudget;
    const descriptor = descriptorOf(socket);
    if (descriptor >= acceptBelow || (this.#isShort && !this.#hasFree())) this.#pause();
    if (descriptor >= connectBelow) {
      socket.destroy();
      this.#owner.onRefused();
      return;
    }
    try {
      this.#owner.onAccepted(socket, this);
    } catch (error) {
      socket.destroy();
      this.#owner.onFault(error);
    }
  }

  #onError(error: Error): void {
    this.#owner.onAcceptError(error);
    // Taking the socket up again has failed: it is tried again.
    if (!this.#server.listening) this.#pause();
  }

  // ---- Pausing ----

  #keep(): Socket | null {
    const copy = this.#options.systemCalls?.duplicate(descriptorOf(this.#server)) ?? NONE;
    return copy < 0 ? null : new Socket({ fd: copy, readable: false, writable: false });
  }

  #pause(): void {
    if (!this.#rest()) return;
    this.#isShort = true;
    this.#isWanting = true;
    this.#owner.onPaused();
  }

  /** @returns false where clients are accepted all the same, or were made to wait before. */
  #rest(): boolean {
    if (this.#state !== 'listening' || this.#kept === null) return false;
    this.#server.close();
    this.#state = 'paused';
    this.#resumeLater();
    return true;
  }

  #resumeLater(): void {
    this.#cancelResume?.();
    this.#cancelResume = this.#options.clock.after(RESUME_MS, () => this.#resume());
  }

  #resume(): void {
    const descriptor = this.#isHeld ? NONE : this.#freeDescriptor();
    if (descriptor === NONE) {
      this.#resumeLater();
      return;
    }
    this.#cancelResume?.();
    this.#cancelResume = null;
    this.#state = 'listening';
    this.#listenOn({ fd: descriptor });
    if (this.#isWanting) this.#owner.onResumed();
    this.#isWanting = false;
  }

  /** A copy of the kept descriptor, if there is one within the budget and one more for a client; else none. */
  #freeDescriptor(): number {
    const copy = this.#duplicate();
    if (copy === NONE || this.#hasFree()) return copy;
    this.#options.systemCalls!.close(copy);
    return NONE;
  }

  /** Whether a client that came now would be within the budget. */
  #hasFree(): boolean {
    const copy = this.#duplicate();
    if (copy === NONE) return false;
    this.#options.systemCalls!.close(copy);
    return true;
  }

  /** A copy of the kept descriptor that is within the budget. */
  #duplicate(): number {
    const calls = this.#options.systemCalls!;
    const copy = calls.duplicate(descriptorOf(this.#kept!));
    if (copy < this.#options.descriptorBudget.acceptBelow) return Math.max(copy, NONE);
    calls.close(copy);
    return NONE;
  }

  #where(port: number): Place {
    const { address, reusePort, beginning } = this.#options;
    if (address.kind === 'pipe') return this.#wherePipe(address.path);
    if (beginning !== null) return { fd: this.#begin({ ...address, port }, beginning) };
    return { host: address.ip, port, reusePort, ipv6Only: address.acceptsIpv4 !== true };
  }

  /** What it was to begin with is set late; most of it came along with the socket. */
  #adopt(descriptor: number): Place {
    const { address, beginning, reusePort, systemCalls } = this.#options;
    // The other process may have had it alone; other workers of this one are to bind the address, too.
    if (reusePort && address.kind === 'ip') setOptions(systemCalls!, descriptor, [REUSE_PORT]);
    if (beginning !== null) setOptions(systemCalls!, descriptor, [...beginning.beforeBind, ...beginning.afterBind]);
    this.#isAdopted = true;
    return { fd: descriptor };
  }

  #wherePipe(path: string): Place {
    const { systemCalls } = this.#options;
    if (systemCalls === undefined) return { path: systemPath(path) };
    const descriptor = bindPath(systemCalls, path);
    this.#removesPath = !path.startsWith('@');
    return { fd: descriptor };
  }

  #listenOn(place: Place, onListening?: () => void): void {
    const { backlog } = this.#options;
    // Node takes it from here for a descriptor, and from the options for all else.
    if ('fd' in place) this.#server.listen(place, backlog, onListening);
    else this.#server.listen({ ...place, backlog }, onListening);
  }
}
