// Socket addresses as both planes use them: an IP literal with a port, or the path of a unix socket.

import { isIP } from 'node:net';
import { plainIp } from './ip-number.ts';

/** Digits and dots, or what stands in brackets; what is no address of its kind is found out by Node. */
const IP_WITH_PORT = /^(?:\[([0-9a-fA-F:.]{2,45})\]|([0-9.]{7,15})):([0-9]{1,5})$/;
const MAX_PORT = 65_535;

export interface IpAddress {
  readonly kind: 'ip';
  /** An IPv4 or IPv6 literal without brackets. */
  readonly ip: string;
  /** 0 to 65535; 0 asks the system for a free port when listening. */
  readonly port: number;
  /** IPv6 when listening: IPv4 clients may come, too. Absent for no. */
  readonly acceptsIpv4?: true;
}

export interface PipeAddress {
  readonly kind: 'pipe';
  /** A file path, or `@name` for Linux' abstract namespace. */
  readonly path: string;
  /** File mode of the socket, 0 to keep the system's default. */
  readonly mode: number;
}

export type Address = IpAddress | PipeAddress;

/** `1.2.3.4:80`, `[::1]:80` or the pipe's path: the form of every listing, log line and stat name. */
export function formatAddress(address: Address): string {
  if (address.kind === 'pipe') return address.path;
  return address.ip.includes(':') ? `[${address.ip}]:${address.port}` : `${address.ip}:${address.port}`;
}

/**
 * The other way round, for `1.2.3.4:80` and `[::1]:80`: equal addresses become equal ones, however they are written.
 * @returns undefined for anything else, for port 0, and for a zone, which means nothing on another machine.
 */
export function parseIpAddress(text: string): IpAddress | undefined {
  const [, ipv6, ipv4, digits] = IP_WITH_PORT.exec(text) ?? [];
  const literal = ipv6 ?? ipv4 ?? '';
  const port = Number(digits);
  if (port === 0 || port > MAX_PORT || isIP(literal) !== (ipv6 === undefined ? 4 : 6)) return undefined;
  return { kind: 'ip', ip: plainIp(literal), port };
}

/** What names a member of a cluster: its address, unless that changes while the member stays. */
export function memberKey(member: { readonly address: Address; readonly logicalName?: string }): string {
  return member.logicalName ?? formatAddress(member.address);
}

export function sameAddress(a: Address, b: Address): boolean {
  return formatAddress(a) === formatAddress(b);
}

/** Of a unix socket's path, in bytes as UTF-8; the system ends what it is given with one more. */
export const MAX_PIPE_PATH_BYTES = 107;

/** Node spells Linux' abstract namespace with a leading NUL, the configuration with `@`. */
export function systemPath(path: string): string {
  return path.startsWith('@') ? `\0${path.slice(1)}` : path;
}
