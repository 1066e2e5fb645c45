// Which addresses a listener may have beside those that there are, and whose sockets on them it takes over, so that nobody who connects
// meanwhile is refused: its predecessor's, those of other workers, or those of the process before this one. Main thread.

import { type Address, sameAddress } from '../../base/address.ts';
import { WeirError } from '../../base/errors.ts';
import type { InheritedSockets, ListenerSettings } from '../../snapshot/index.ts';
import type { ActiveListener } from './active-listener.ts';

export interface ListenerSocketsDependencies {
  readonly concurrency: number;
  readonly workers: {
    shareSockets(id: number, addressIndex: number, fromWorker?: number): Promise<readonly number[]>;
  };
  /** Descriptors of the sockets that the process before this one has on an address; asked of nobody when absent. */
  readonly inherit?: (address: Address) => Promise<readonly number[]>;
}

export class ListenerSockets {
  readonly #deps: ListenerSocketsDependencies;

  constructor(deps: ListenerSocketsDependencies) {
    this.#deps = deps;
  }

  /**
   * @param others that serve or are being opened, `former` and itself among them.
   * @throws WeirError WEIR_LISTEN_FAILED when it cannot have its addresses beside them.
   */
  check(settings: ListenerSettings, others: Iterable<ActiveListener>, former: ActiveListener | undefined): void {
    refuseUsedAddress(settings, others);
    if (former !== undefined && this.#deps.concurrency > 1) refuseSharing(former, settings);
  }

  /** What there is on its addresses, for it to take over. @returns by address; null where nobody gives any. */
  takenOver(settings: ListenerSettings, former: ActiveListener | undefined): Promise<InheritedSockets | null> {
    return former === undefined ? this.#inherit(settings) : this.#gather(former, settings);
  }

  /** Paths of unix sockets that nobody serves whose socket it gets: what lies there is stale. @param takenOver as of `takenOver`. */
  *freePaths(
    { addresses }: ListenerSettings,
    former: ActiveListener | undefined,
    takenOver: InheritedSockets | null,
  ): Generator<string> {
    for (const [index, address] of addresses.entries()) {
      const isFormers = former !== undefined && former.accepting !== 'stopped' && former.has(address);
      const isFree = !isFormers && !takenOver?.[index]?.length;
      if (address.kind === 'pipe' && isFree) yield address.path;
    }
  }

  /** Descriptors of all sockets that accept on an address, for another process; the caller's, none where nobody does. */
  async share(address: Address, listeners: Iterable<ActiveListener>): Promise<readonly number[]> {
    for (const { settings, addresses, snapshot } of listeners) {
      if (!settings.bindsToPort || settings.udp !== undefined) continue;
      const index = addresses.findIndex((own) => isSameSocket(own, address));
      if (index !== -1) return await this.#deps.workers.shareSockets(snapshot.id, index);
    }
    return [];
  }

  /** By address; null where there is nobody to inherit from. */
  async #inherit({ bindsToPort, addresses, udp }: ListenerSettings): Promise<InheritedSockets | null> {
    const { inherit } = this.#deps;
    // Sockets for datagrams are opened beside those of the other process.
    if (inherit === undefined || !bindsToPort || udp !== undefined) return null;
    const sockets: (readonly number[])[] = [];
    // A port that the system is to choose is a new one.
    for (const address of addresses)
      sockets.push(address.kind === 'ip' && address.port === 0 ? [] : await inherit(address));
    return sockets;
  }

  /**
   * The sockets that other workers than the first have, where that is to accept alone from now on: clients that wait there are
   * its own then. By address; null where there is nothing to gather.
   */
  async #gather(former: ActiveListener, settings: ListenerSettings): Promise<InheritedSockets | null> {
    const { addresses, bindsToPort, reusePort } = settings;
    if (this.#deps.concurrency === 1 || former.accepting === 'stopped' || !bindsToPort || reusePort) return null;
    if (!former.settings.bindsToPort || !former.settings.reusePort) return null;
    const sockets: (readonly number[])[] = [];
    for (const address of addresses) {
      const index = former.settings.addresses.findIndex((own) => isSameSocket(own, address));
      sockets.push(index === -1 ? [] : await this.#deps.workers.shareSockets(former.snapshot.id, index, 1));
    }
    return sockets;
  }
}

/** Workers share ports: the system would let two listeners have the same. */
function refuseUsedAddress({ name, addresses, udp }: ListenerSettings, others: Iterable<ActiveListener>): void {
  for (const other of others) {
    if (other.name === name) continue;
    // A port of TCP and the same one of UDP are two.
    if ((other.settings.udp === undefined) !== (udp === undefined)) continue;
    for (const address of addresses) {
      if (address.kind === 'ip' && address.port === 0) continue;
      if (!other.has(address)) continue;
      throw new WeirError('WEIR_LISTEN_FAILED', `listener ${other.name} has the same address`);
    }
  }
}

/** The system lets no other socket join one that has an address for itself. */
function refuseSharing(former: ActiveListener, { addresses, bindsToPort, reusePort }: ListenerSettings): void {
  if (former.accepting === 'stopped' || !bindsToPort || !reusePort) return;
  if (!former.settings.bindsToPort || former.settings.reusePort) return;
  if (!addresses.some((address) => address.kind === 'ip' && address.port !== 0 && former.has(address))) return;
  throw new WeirError('WEIR_LISTEN_FAILED', 'enable_reuse_port cannot begin at an address that the listener keeps');
}

/** A socket that takes connections of both families is another than one that takes those of one. */
function isSameSocket(a: Address, b: Address): boolean {
  const takesBoth = (address: Address): boolean => address.kind === 'ip' && address.acceptsIpv4 === true;
  return sameAddress(a, b) && takesBoth(a) === takesBoth(b);
}
