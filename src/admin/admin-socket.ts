// The socket that the admin interface listens on: bound here or taken over from the process before this one, lent to the process
// behind it, and its path removed by whoever has it last. Main thread. A descriptor of it is what goes from process to process.

import { once } from 'node:events';
import { chmodSync, closeSync, unlinkSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { type Address, formatAddress, sameAddress, systemPath } from '../base/address.ts';
import { descriptorOf } from '../base/descriptor-budget.ts';
import type { FaultBoundary } from '../base/fault-boundary.ts';
import { bindPath } from '../base/own-sockets.ts';
import { removeStaleSocket } from '../base/stale-socket.ts';
import type { SystemCalls } from '../base/system-calls.ts';

type PipeAddress = Extract<Address, { readonly kind: 'pipe' }>;

export class AdminSocket {
  readonly #app: FastifyInstance;
  readonly #systemCalls: SystemCalls | undefined;
  readonly #faults: FaultBoundary;
  /** A descriptor of the socket while nobody accepts on it here. */
  #yielded: number | undefined;
  /** There is a file that Node does not remove. */
  #removesPath = false;
  /** It belongs to another process now. */
  #leavesPath = false;
  /** As configured until it listens, then as bound. */
  #address: Address;

  /** @param address where to listen; port 0 takes a free one. @param systemCalls without them the socket cannot be lent. */
  constructor(app: FastifyInstance, address: Address, systemCalls: SystemCalls | undefined, faults: FaultBoundary) {
    this.#app = app;
    this.#address = address;
    this.#systemCalls = systemCalls;
    this.#faults = faults;
  }

  get address(): Address {
    return this.#address;
  }

  /** Binds it, or accepts on the one that is `inherited`. @throws what the system says against it. */
  async listen(inherited: number | undefined): Promise<void> {
    if (inherited === undefined) return this.#bind();
    this.#leavesPath = true;
    return this.#adopt(inherited);
  }

  /**
   * Accepts no more for now; connections that are there may go on. @param address of another process's admin interface.
   * @returns a descriptor of the socket for that process, if it has the same address; the caller's.
   */
  yield(address: Address | null): number | undefined {
    if (this.#yielded !== undefined) return undefined;
    const descriptor = descriptorOf(this.#app.server);
    this.#yielded = this.#duplicate(descriptor);
    const isWanted = address !== null && sameAddress(address, this.#address);
    const copy = isWanted ? this.#duplicate(descriptor) : undefined;
    this.#leavesPath = copy !== undefined;
    this.#app.server.close();
    return copy;
  }

  /** Accepts again. */
  resume(): void {
    if (this.#yielded !== undefined) this.#app.server.listen({ fd: this.#yielded });
    this.#yielded = undefined;
    this.#leavesPath = false;
  }

  /** The process that the socket came from has left it to this one: the path is this one's to remove. */
  own(): void {
    this.#leavesPath = false;
  }

  /** Call when nobody listens on it here any more. Idempotent. */
  release(): void {
    if (this.#yielded !== undefined) closeSync(this.#yielded);
    this.#yielded = undefined;
    if (!this.#removesPath || this.#leavesPath) return;
    this.#removesPath = false;
    unlinkSync(formatAddress(this.#address));
  }

  #duplicate(descriptor: number): number | undefined {
    const copy = this.#systemCalls?.duplicate(descriptor) ?? -1;
    return copy < 0 ? undefined : copy;
  }

  async #adopt(descriptor: number): Promise<void> {
    const { server } = this.#app;
    await this.#app.ready();
    server.listen({ fd: descriptor });
    await once(server, 'listening');
    this.#removesPath = this.#address.kind === 'pipe' && !isAbstract(this.#address);
  }

  async #bind(): Promise<void> {
    const address = this.#address;
    if (address.kind === 'pipe') return this.#bindPath(address);
    await this.#app.listen({ host: address.ip, port: address.port });
    const bound = this.#app.server.address();
    if (bound !== null && typeof bound === 'object') this.#address = { ...address, port: bound.port };
  }

  async #bindPath(address: PipeAddress): Promise<void> {
    if (!isAbstract(address)) await removeStaleSocket(address.path);
    // Node would remove the path with each pause.
    if (this.#systemCalls !== undefined) {
      const descriptor = bindPath(this.#systemCalls, address.path);
      restrict(address);
      return this.#adopt(descriptor);
    }
    const restricted = Promise.withResolvers<void>();
    // Before anything else runs on this thread: nobody else shall connect in between.
    const onListening = (): void => {
      try {
        restrict(address);
        restricted.resolve();
      } catch (error) {
        restricted.reject(error);
      }
    };
    this.#app.server.once('listening', this.#faults.handler('opening the admin interface', onListening));
    await this.#app.listen({ path: systemPath(address.path) });
    await restricted.promise;
  }
}

function isAbstract({ path }: PipeAddress): boolean {
  return path.startsWith('@');
}

function restrict(address: PipeAddress): void {
  if (!isAbstract(address) && address.mode !== 0) chmodSync(address.path, address.mode);
}
