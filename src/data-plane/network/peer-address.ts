// The address of a connection's other end, as headers and rules want it.

import { BlockList, isIPv4, isIPv6 } from 'node:net';

const MAPPED_IPV4 = '::ffff:';

/** An IPv4 address that came through an IPv6 socket in its own notation; others as they are. */
export function plainAddress(address: string): string {
  return address.startsWith(MAPPED_IPV4) && address.includes('.') ? address.slice(MAPPED_IPV4.length) : address;
}

function privateNetworks(): BlockList {
  const list = new BlockList();
  list.addSubnet('10.0.0.0', 8, 'ipv4');
  list.addSubnet('172.16.0.0', 12, 'ipv4');
  list.addSubnet('192.168.0.0', 16, 'ipv4');
  list.addSubnet('127.0.0.0', 8, 'ipv4');
  list.addSubnet('fd00::', 8, 'ipv6');
  list.addAddress('::1', 'ipv6');
  return list;
}

const PRIVATE_NETWORKS = privateNetworks();

/** True for addresses of private networks (RFC 1918, RFC 4193) and of this machine. */
export function isInternalAddress(address: string): boolean {
  if (isIPv4(address)) return PRIVATE_NETWORKS.check(address, 'ipv4');
  return isIPv6(address) && PRIVATE_NETWORKS.check(address, 'ipv6');
}

/**
 * How the address of a client is told to others, to whom one of this machine's loopback would mean themselves.
 * @param localAddress of this machine; empty when nobody has said it.
 */
export function forwardedAddress(address: string, localAddress: string): string {
  const isLoopback = address === '::1' || (address.startsWith('127.') && isIPv4(address));
  return isLoopback && localAddress !== '' ? localAddress : address;
}
