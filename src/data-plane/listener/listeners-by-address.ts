// The listeners of a worker by the addresses that they own, whether they accept there or not: a listener that other
// connections are redirected to hands them over to the owner of the address that they were meant for.

import { isIPv4 } from 'node:net';
import { type Address, formatAddress } from '../../base/address.ts';
import type { Endpoint } from '../format/facts.ts';

const ANY_IPV4 = '0.0.0.0';
const ANY_IPV6 = '::';

export class ListenersByAddress<Listener> {
  readonly #listeners = new Map<string, Listener>();

  /** @param ports in use, by address. A successor takes the place of its predecessor. */
  add(listener: Listener, addresses: readonly Address[], ports: readonly number[]): void {
    for (const [index, address] of addresses.entries()) {
      if (address.kind === 'pipe') continue;
      const port = ports[index]!;
      this.#listeners.set(key(address.ip, port), listener);
      if (address.acceptsIpv4 === true && address.ip === ANY_IPV6) this.#listeners.set(key(ANY_IPV4, port), listener);
    }
  }

  remove(listener: Listener): void {
    for (const [address, owner] of this.#listeners) if (owner === listener) this.#listeners.delete(address);
  }

  /** Who has the very address, else who has the port of all addresses of the family. */
  ownerOf({ ip, port }: Endpoint): Listener | undefined {
    return this.#listeners.get(key(ip, port)) ?? this.#listeners.get(key(isIPv4(ip) ? ANY_IPV4 : ANY_IPV6, port));
  }
}

function key(ip: string, port: number): string {
  return formatAddress({ kind: 'ip', ip, port });
}
