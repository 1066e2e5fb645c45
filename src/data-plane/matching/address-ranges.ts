// Which of several lists of ranges hold an address: one look-up for each length of a prefix that there is, however many
// ranges there are.

import { type IpNumber, parseIp, parsePrefix } from '../../base/ip-number.ts';
import type { CidrRange } from '../../snapshot/index.ts';

/** Lists with a range of one length, by its network. */
interface RangesOfLength {
  readonly length: number;
  readonly isIpv4: boolean;
  readonly lists: Map<string, number[]>;
}

const NOWHERE: readonly number[] = [];

export class AddressRanges {
  /** Longest first. */
  readonly #lengths: readonly RangesOfLength[];

  constructor(lists: readonly (readonly CidrRange[])[]) {
    const lengths: RangesOfLength[] = [];
    for (const [list, ranges] of lists.entries()) {
      for (const { ip, prefixLength } of ranges) {
        const prefix = parsePrefix(ip, prefixLength);
        // The configuration has let no other through.
        if (prefix !== undefined) noteRange(lengths, prefix.ip, prefix.length, list);
      }
    }
    this.#lengths = lengths.sort((a, b) => b.length - a.length);
  }

  /** @returns the lists by their numbers, each once: that of the longest range first, then in order. */
  holding(address: string): readonly number[] {
    const ip = parseIp(address);
    if (ip === undefined) return NOWHERE;
    let found: readonly number[] = NOWHERE;
    for (const { length, isIpv4, lists } of this.#lengths) {
      const held = isIpv4 === ip.isIpv4 ? lists.get(ip.masked(length)) : undefined;
      if (held !== undefined) found = found.length === 0 ? held : [...new Set([...found, ...held])];
    }
    return found;
  }
}

function noteRange(lengths: RangesOfLength[], ip: IpNumber, length: number, list: number): void {
  let entry = lengths.find((each) => each.length === length && each.isIpv4 === ip.isIpv4);
  if (entry === undefined) {
    entry = { length, isIpv4: ip.isIpv4, lists: new Map() };
    lengths.push(entry);
  }
  const network = ip.masked(length);
  const lists = entry.lists.get(network) ?? [];
  entry.lists.set(network, lists);
  if (!lists.includes(list)) lists.push(list);
}
