// Refuses what a web page of another site asks for through an operator's browser. Programs such as curl send none of these
// headers and are not affected.
//
// A mutation of another site is seen by Sec-Fetch-Site, or by an Origin that is not the host of the request. What another
// site reads, the browser keeps from its page. But a page can make its own name resolve to this machine (DNS rebinding): then
// all agree, and only the name is not one of ours. That is refused where it can be told apart: an interface that is bound to a
// loopback address is reached by an IP address, by `localhost`, by the machine's name or by one that the command line allows
// (--admin-name). Behind any other binding names are the operator's affair, unless the command line lists them.

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

/** Where the interface is. */
export interface Reach {
  readonly bound: Address;
  /** Names beyond those of this machine, in lower case. */
  readonly names: readonly string[];
}

/** @returns why a mutation is refused, or undefined when it may go on. */
export function crossSiteRefusal(request: RequestOrigin, reach: Reach): string | undefined {
  const { host = '', origin, fetchSite } = request;
  if (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none') {
    return `request from another site (sec-fetch-site: ${fetchSite})`;
  }
  // A proxy may ask by another host than the browser did, which has said already that the site is the same.
  if (fetchSite === undefined && origin !== undefined && hostOfOrigin(origin) !== host.toLowerCase()) {
    return `request from another site (origin: ${origin})`;
  }
  return judgesNames(reach) && !isOwnName(nameOf(host), reach) ? foreignName(host) : undefined;
}

/**
 * @param host Host header.
 * @returns why not even reading is allowed. A name without a dot is nobody's in the internet: no page comes from it.
 */
export function foreignNameRefusal(host: string | undefined, reach: Reach): string | undefined {
  if (!judgesNames(reach)) return undefined;
  const name = nameOf(host ?? '');
  return !name.includes('.') || isOwnName(name, reach) ? undefined : foreignName(host);
}

function foreignName(host = ''): string {
  return `host '${host}' is not a name of this address; use localhost or an IP address, or allow it with --admin-name`;
}

/** `host[:port]` as a Host header has it; undefined for an opaque origin (`null`). */
function hostOfOrigin(origin: string): string | undefined {
  return URL.parse(origin)?.host;
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

function judgesNames({ bound, names }: Reach): boolean {
  return names.length > 0 || (bound.kind === 'ip' && isLoopback(bound));
}

/** Whether only this machine can reach the address. */
export function isLoopback(address: Address): boolean {
  return address.kind === 'pipe' || LOOPBACK.check(address.ip, address.ip.includes(':') ? 'ipv6' : 'ipv4');
}

function nameOf(host: string): string {
  const name = URL.parse(`http://${host}`)?.hostname ?? '';
  const literal = name.startsWith('[') ? name.slice(1, -1) : name;
  // Fully qualified names may say so.
  return literal.endsWith('.') ? literal.slice(0, -1) : literal;
}

function isOwnName(name: string, { names }: Reach): boolean {
  if (isIP(name) !== 0 || name === 'localhost' || name.endsWith('.localhost')) return true;
  return name === hostname().toLowerCase() || names.includes(name);
}
