// Address messages as the addresses of src/base: an IP literal with a port, or a unix socket.

import { isIP } from 'node:net';
import { type Address, type IpAddress, MAX_PIPE_PATH_BYTES, type PipeAddress } from '../../base/address.ts';
import { asciiHostName } from '../../base/host-name.ts';
import { canonicalIp } from '../../base/ip-number.ts';
import { quote } from '../source/node.ts';
import type { FaultSink } from './fault-sink.ts';
import type { AddressMessage } from './messages.ts';

/** The part of an Address message that names an IP address; it has no name of its own in the list of messages. */
type SocketAddressMessage = NonNullable<AddressMessage['socket_address']>;

/** What the address is for; it decides why a name will not do. */
export type AddressUse =
  | 'listener'
  | 'static-endpoint'
  | 'admin'
  | 'source'
  | 'resolver'
  | 'health-check'
  | 'stat-sink';

const WHY_AN_IP: Readonly<Record<AddressUse, string>> = {
  listener: 'a listener binds to an IP address',
  admin: 'the admin interface binds to an IP address',
  source: 'connections start from an IP address',
  'health-check': 'a check connects to an IP address',
  'stat-sink': 'statistics are sent to an IP address',
  resolver: 'a DNS server is asked at an IP address',
  'static-endpoint': 'a STATIC cluster needs IP addresses; STRICT_DNS and LOGICAL_DNS resolve names',
};

/** @returns undefined when the address cannot be used; a fault says why, here or from the field rules. */
export function convertAddress(
  message: AddressMessage | null,
  at: string,
  use: AddressUse,
  faults: FaultSink,
): Address | undefined {
  if (message === null) {
    faults.error(at, 'is required');
    return undefined;
  }
  if (message.pipe !== null) return convertPipe(message.pipe, `${at}.pipe`, faults);
  const socket = message.socket_address;
  return socket === null ? undefined : convertSocketAddress(socket, `${at}.socket_address`, use, faults);
}

function convertPipe(
  { path, mode }: NonNullable<AddressMessage['pipe']>,
  at: string,
  faults: FaultSink,
): PipeAddress | undefined {
  const bytes = Buffer.byteLength(path);
  if (bytes <= MAX_PIPE_PATH_BYTES) return { kind: 'pipe', path, mode };
  const text = `${quote(path)} has ${bytes} bytes; the path of a unix socket has ${MAX_PIPE_PATH_BYTES} at most`;
  faults.error(`${at}.path`, text);
  return undefined;
}

/** As convertAddress, where the schema leaves no choice but an IP address. */
export function convertSocketAddress(
  socket: SocketAddressMessage,
  at: string,
  use: AddressUse,
  faults: FaultSink,
): IpAddress | undefined {
  if (socket.address === '') return undefined;
  if (isIP(socket.address) === 0) {
    faults.error(`${at}.address`, `${quote(socket.address)} is not an IP address; ${WHY_AN_IP[use]}`);
    return undefined;
  }
  if (socket.port_value === 0 && use === 'static-endpoint') warnOfPortZero(at, faults);
  const ip = canonicalIp(socket.address);
  const acceptsIpv4 = socket.ipv4_compat && use === 'listener' && ip.includes(':');
  const address = { kind: 'ip', ip, port: socket.port_value } as const;
  return acceptsIpv4 ? { ...address, acceptsIpv4 } : address;
}

/** The address of an endpoint that DNS finds: a host name, in ASCII, or an IP literal, with a port. */
export function convertNamedAddress(
  message: AddressMessage | null,
  at: string,
  faults: FaultSink,
): { readonly name: string; readonly port: number } | undefined {
  if (message === null) {
    faults.error(at, 'is required');
    return undefined;
  }
  if (message.pipe !== null) {
    faults.error(`${at}.pipe`, 'a unix socket has no name to look up; it needs a STATIC cluster');
    return undefined;
  }
  const socket = message.socket_address;
  if (socket === null || socket.address === '') return undefined;
  if (socket.port_value === 0) warnOfPortZero(`${at}.socket_address`, faults);
  if (isIP(socket.address) !== 0) return { name: canonicalIp(socket.address), port: socket.port_value };
  const name = asciiHostName(socket.address);
  if (name !== undefined) return { name, port: socket.port_value };
  faults.error(`${at}.socket_address.address`, `${quote(socket.address)} is neither a host name nor an IP address`);
  return undefined;
}

function warnOfPortZero(at: string, faults: FaultSink): void {
  faults.warning(`${at}.port_value`, 'nothing can be connected to at port 0');
}
