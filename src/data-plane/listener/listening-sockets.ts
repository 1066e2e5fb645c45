// The sockets that a listener of this worker accepts on: one for each of its addresses, and further ones on the same addresses that
// another process with more workers, or other workers, have handed over. A successor takes over those on addresses of both.

import type { InheritedSockets, ListenerSettings } from '../../snapshot/index.ts';
import type { WorkerContext } from '../worker-context.ts';
import { ListeningSocket, type ListeningSocketOwner } from './listening-socket.ts';

export class ListeningSockets {
  readonly #context: WorkerContext;
  readonly #settings: ListenerSettings;
  readonly #owner: ListeningSocketOwner;
  /** By address; several may let the system choose a port of theirs. */
  readonly #first: ListeningSocket[];
  readonly #further: ListeningSocket[] = [];

  /** @param settings of the listener; it binds to the ports of its addresses. */
  constructor(context: WorkerContext, settings: ListenerSettings, owner: ListeningSocketOwner) {
    this.#context = context;
    this.#settings = settings;
    this.#owner = owner;
    this.#first = settings.addresses.map((_, index) => this.#make(index));
  }

  /**
   * @param ports, inherited, predecessor as of ActiveListener.listen.
   * @returns the bound ports, 0 for a pipe. @throws WeirError WEIR_LISTEN when an address cannot be had: to be closed then.
   */
  async listen(
    ports: readonly number[],
    inherited: InheritedSockets | null,
    predecessor: ListeningSockets | null,
  ): Promise<readonly number[]> {
    const bound: number[] = [];
    const held = predecessor === null ? [] : this.#shared(predecessor);
    for (const [index, socket] of this.#first.entries()) {
      const heldPort = held[index]?.port;
      const further = [...(inherited?.[index] ?? [])];
      bound.push(heldPort ?? (await socket.listen(ports[index]!, further.shift())));
      for (const descriptor of further) await this.#listenFurther(index, descriptor);
    }
    return bound;
  }

  /** Descriptors of all sockets on one address, for another process, which are the caller's. @param index of the address. */
  share(index: number): number[] {
    const first = this.#first[index];
    const sockets = this.#further.filter(({ identity }) => identity === first?.identity);
    return [...(first === undefined ? [] : [first]), ...sockets].flatMap((socket) => socket.share() ?? []);
  }

  /** Sockets that came from another process are this one's alone. */
  own(): void {
    for (const socket of this.#all) socket.own();
  }

  /** Accepts from now on in the place of another on addresses of both: no client that waits there is lost. */
  takeOver(predecessor: ListeningSockets): void {
    for (const [index, socket] of this.#shared(predecessor).entries()) {
      if (socket === undefined || this.#first[index]!.isOpen) continue;
      predecessor.#first.splice(predecessor.#first.indexOf(socket), 1);
      this.#first[index] = socket;
      socket.handTo(this.#owner);
    }
    for (const socket of [...predecessor.#further]) {
      if (!this.#first.some(({ identity }) => identity === socket.identity)) continue;
      predecessor.#further.splice(predecessor.#further.indexOf(socket), 1);
      this.#further.push(socket);
      socket.handTo(this.#owner);
    }
  }

  /** Has clients wait, or lets them in. */
  hold(isHeld: boolean): void {
    for (const socket of this.#all) socket.hold(isHeld);
  }

  /** Accepted connections go on. Idempotent. @param leavesPaths as for ListeningSocket.close. */
  close(leavesPaths: boolean): void {
    for (const socket of this.#all) socket.close(leavesPaths);
  }

  /** @returns the index of the address that a socket of these accepts on. */
  addressOf(socket: ListeningSocket): number {
    const index = this.#first.indexOf(socket);
    return index === -1 ? this.#first.findIndex(({ identity }) => identity === socket.identity) : index;
  }

  get #all(): readonly ListeningSocket[] {
    return [...this.#first, ...this.#further];
  }

  async #listenFurther(index: number, descriptor: number): Promise<void> {
    const socket = this.#make(index);
    this.#further.push(socket);
    await socket.listen(0, descriptor);
  }

  #make(index: number): ListeningSocket {
    const { addresses, backlog, reusePort, listeningOptions } = this.#settings;
    const { clock, descriptorBudget, systemCalls } = this.#context;
    const beginning = listeningOptions?.[index] ?? null;
    const options = { address: addresses[index]!, backlog, reusePort, beginning, clock, descriptorBudget, systemCalls };
    return new ListeningSocket(options, this.#owner);
  }

  /** By address of its own: the other's open socket on the same one. */
  #shared(predecessor: ListeningSockets): readonly (ListeningSocket | undefined)[] {
    const open = predecessor.#first.filter(({ isOpen }) => isOpen);
    return this.#first.map(({ identity }) => {
      const at = open.findIndex((socket) => socket.identity === identity);
      return at === -1 ? undefined : open.splice(at, 1)[0];
    });
  }
}
