// Socket addresses as both planes use them: an IP literal with a port, or the path of a unix socket.

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

/** What names a member of a cluster: its address, unless that changes while the member stays. */
export function memberKey(member: { readonly address: Address; readonly logicalName?: string }): string {
  return member.logicalName ?? formatAddress(member.address);
}

export function sameAddress(a: Address, b: Address): boolean {
  return formatAddress(a) === formatAddress(b);
}

/** Node spells Linux' abstract namespace with a leading NUL, the configuration with `@`. */
export function systemPath(path: string): string {
  return path.startsWith('@') ? `\0${path.slice(1)}` : path;
}
