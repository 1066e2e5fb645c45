// Refuses mutations that a web page of another site sends through an operator's browser. Programs such as curl
// send none of these headers and are not affected.
//
// Another site is seen by Sec-Fetch-Site, or by an Origin that is not the host of the request. A page can also
// make its own name resolve to this machine (DNS rebinding); then both agree, but the name is not one of ours.
// That is refused where it can be told apart: an interface that is bound to a loopback address is reached by an
// IP address, by `localhost` or by the machine's name. Behind any other binding names are the operator's affair.

import { BlockList, isIP } from 'node:net';
import { hostname } from 'node:os';
import type { Address } from '../base/address.ts';

export interface RequestOrigin {
  /** Host header. */
  readonly host: string | undefined;
  readonly origin: string | undefined;
  /** Sec-Fetch-Site header. */
  readonly fetchSite: string | undefined;
}

/** @returns why a mutation is refused, or undefined when it may go on. */
export function crossSiteRefusal(request: RequestOrigin, bound: Address): string | undefined {
  const { host = '', origin, fetchSite } = request;
  if (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none') {
    return `request from another site (sec-fetch-site: ${fetchSite})`;
  }
  if (origin !== undefined && hostOfOrigin(origin) !== host.toLowerCase()) {
    return `request from another site (origin: ${origin})`;
  }
  if (isLoopback(bound) && !isLocalName(host)) {
    return `host '${host}' is not a name of this address; use localhost or an IP address`;
  }
  return undefined;
}

/** `host[:port]` as a Host header has it; undefined for an opaque origin (`null`). */
function hostOfOrigin(origin: string): string | undefined {
  return URL.parse(origin)?.host;
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

function isLoopback(address: Address): boolean {
  return address.kind === 'ip' && LOOPBACK.check(address.ip, address.ip.includes(':') ? 'ipv6' : 'ipv4');
}

function isLocalName(host: string): boolean {
  const name = URL.parse(`http://${host}`)?.hostname ?? '';
  const literal = name.startsWith('[') ? name.slice(1, -1) : name;
  return isIP(literal) !== 0 || literal === 'localhost' || literal.endsWith('.localhost') || isThisMachine(literal);
}

function isThisMachine(name: string): boolean {
  return name === hostname().toLowerCase();
}
