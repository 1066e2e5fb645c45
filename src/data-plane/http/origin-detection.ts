// Who has sent a request where the configuration says how that is found out (original_ip_detection_extensions): by
// x-forwarded-for, counting hops or knowing the proxies that are believed, or by a header of its own. The first way
// that finds an address decides.

import { parseIp, parsePrefix } from '../../base/ip-number.ts';
import { PrefixTrie } from '../../base/prefix-trie.ts';
import type { ForwardingSettings, OriginDetection } from '../../snapshot/index.ts';
import type { RequestHead } from '../../wasm/http1.ts';
import type { InternalAddresses } from './internal-addresses.ts';
import type { LocalReply } from './local-reply.ts';
import type { RequestOrigin } from './request-edits.ts';

const FORWARDED_FOR = 'x-forwarded-for';

/** An address that one of the ways has found; its origin is internal only where that is believed. */
interface Found {
  readonly address: string;
  readonly isBelieved: boolean;
  /** The peer is added to x-forwarded-for. */
  readonly appendsPeer: boolean;
}

/** Null for nothing, so that the next way is tried. @param peerAddress empty for a pipe. */
type Detect = (head: RequestHead, peerAddress: string) => Found | LocalReply | null;

export class OriginDetectors {
  readonly #ways: readonly Detect[];
  readonly #internal: InternalAddresses;

  /** @returns null where it is not said. */
  static of({ originDetection = [] }: ForwardingSettings, internal: InternalAddresses): OriginDetectors | null {
    return originDetection.length === 0 ? null : new OriginDetectors(originDetection, internal);
  }

  private constructor(settings: readonly OriginDetection[], internal: InternalAddresses) {
    this.#ways = settings.map(compile);
    this.#internal = internal;
  }

  /** @returns the origin, or the answer to a request that says nothing of it where it has to. */
  detect(head: RequestHead, peerAddress: string): RequestOrigin | LocalReply {
    for (const detect of this.#ways) {
      const found = detect(head, peerAddress);
      if (found === null) continue;
      if ('status' in found) return found;
      const { address, isBelieved, appendsPeer } = found;
      return { address, isInternal: isBelieved && this.#internal.has(address), appendsPeer };
    }
    return { address: '', isInternal: false, appendsPeer: false };
  }
}

function compile(way: OriginDetection): Detect {
  switch (way.kind) {
    case 'hops':
      return byHops(way.trustedHops, way.appendsPeer);
    case 'proxies':
      return byProxies(way);
    case 'header':
      return byHeader(way);
  }
}

function byHops(trustedHops: number, appendsPeer: boolean): Detect {
  return (head) => {
    const hops = hopsOf(head);
    const address = hops.at(-1 - trustedHops);
    if (address === undefined || parseIp(address) === undefined) return null;
    // Of several nobody knows which of them are inside.
    return { address, isBelieved: hops.length === 1, appendsPeer };
  };
}

function byProxies({ proxies, appendsPeer }: OriginDetection & { readonly kind: 'proxies' }): Detect {
  const ranges = new PrefixTrie<true>();
  for (const { ip, prefixLength } of proxies) ranges.set(parsePrefix(ip, prefixLength)!, true);
  const isProxy = (address: string): boolean => {
    const ip = parseIp(address);
    return ip !== undefined && ranges.find(ip) === true;
  };
  return (head, peerAddress) => {
    if (!isProxy(peerAddress)) return null;
    const hops = hopsOf(head);
    let last: string | null = null;
    for (const address of hops.toReversed()) {
      // What is no address has been written by somebody who is not to be believed, and so has all before it.
      if (parseIp(address) === undefined)
        return last === null ? null : { address: last, isBelieved: false, appendsPeer };
      last = address;
      if (!isProxy(address)) break;
    }
    return last === null ? null : { address: last, isBelieved: hops.length === 1, appendsPeer };
  };
}

function byHeader({ name, isBelieved, refusalStatus }: OriginDetection & { readonly kind: 'header' }): Detect {
  const refusal: LocalReply | null =
    refusalStatus === null
      ? null
      : { status: refusalStatus, body: '', flag: '-', details: 'rejecting_because_detection_failed' };
  return (head) => {
    const [address] = head.valuesByName(name);
    if (address === undefined || parseIp(address) === undefined) return refusal;
    return { address, isBelieved, appendsPeer: true };
  };
}

/** Addresses from the client's on. */
function hopsOf(head: RequestHead): readonly string[] {
  const value = head.headerByName(FORWARDED_FOR);
  return value === undefined ? [] : value.split(',').map((hop) => hop.trim());
}
