// Whose requests count as internal, as one connection manager sees it.

import { parseIp, parsePrefix } from '../../base/ip-number.ts';
import { PrefixTrie } from '../../base/prefix-trie.ts';
import type { InternalAddressSettings } from '../../snapshot/index.ts';
import { isInternalAddress } from '../network/peer-address.ts';

export class InternalAddresses {
  readonly #hasPipes: boolean;
  /** Null for private networks. */
  readonly #ranges: PrefixTrie<true> | null;

  constructor(settings: InternalAddressSettings | null) {
    this.#hasPipes = settings?.unixSockets ?? false;
    this.#ranges = settings === null || settings.ranges.length === 0 ? null : new PrefixTrie();
    for (const { ip, prefixLength } of settings?.ranges ?? []) this.#ranges!.set(parsePrefix(ip, prefixLength)!, true);
  }

  /** @param address without port; empty for a pipe. What is no address is outside. */
  has(address: string): boolean {
    if (address === '') return this.#hasPipes;
    if (this.#ranges === null) return isInternalAddress(address);
    const ip = parseIp(address);
    return ip !== undefined && this.#ranges.find(ip) === true;
  }
}
