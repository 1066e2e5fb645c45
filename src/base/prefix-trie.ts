// Values by blocks of IP addresses; the longest block that holds an address wins. A binary trie: as many steps as the
// winning block has bits, however many blocks there are.

import type { IpNumber, IpPrefix } from './ip-number.ts';

interface TrieNode<Value> {
  zero: TrieNode<Value> | undefined;
  one: TrieNode<Value> | undefined;
  value: Value | undefined;
}

export class PrefixTrie<Value extends {}> {
  readonly #ipv4: TrieNode<Value> = emptyNode();
  readonly #ipv6: TrieNode<Value> = emptyNode();

  /** A later value for the same block replaces the earlier. Bits behind the prefix do not matter. */
  set({ ip, length }: IpPrefix, value: Value): void {
    let node = this.#root(ip);
    for (let index = 0; index < length; index += 1) {
      if (ip.bit(index) === 0) node = node.zero ??= emptyNode();
      else node = node.one ??= emptyNode();
    }
    node.value = value;
  }

  /** The value of the longest block that holds the address. */
  find(ip: IpNumber): Value | undefined {
    let node: TrieNode<Value> | undefined = this.#root(ip);
    let found: Value | undefined;
    for (let index = 0; node !== undefined; index += 1) {
      found = node.value ?? found;
      if (index === ip.bitLength) break;
      node = ip.bit(index) === 0 ? node.zero : node.one;
    }
    return found;
  }

  /** The values of all blocks that hold the address, that of the shortest first. */
  findAll(ip: IpNumber): Value[] {
    const found: Value[] = [];
    let node: TrieNode<Value> | undefined = this.#root(ip);
    for (let index = 0; node !== undefined; index += 1) {
      if (node.value !== undefined) found.push(node.value);
      if (index === ip.bitLength) break;
      node = ip.bit(index) === 0 ? node.zero : node.one;
    }
    return found;
  }

  #root(ip: IpNumber): TrieNode<Value> {
    return ip.isIpv4 ? this.#ipv4 : this.#ipv6;
  }
}

function emptyNode<Value>(): TrieNode<Value> {
  return { zero: undefined, one: undefined, value: undefined };
}
