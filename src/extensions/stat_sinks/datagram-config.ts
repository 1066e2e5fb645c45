// Addresses that datagrams go to: UDP, or a unix socket.

import {
  type AddressMessage,
  type Conversion,
  convertAddress,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
} from '../../config/index.ts';
import type { DatagramTarget } from './lines/datagrams.ts';

const ROLE = 'datagrams';

/** For the field that holds the address. */
export const DATAGRAM_ADDRESS = supportedAs(ROLE);

export const DATAGRAM_SUPPORT: SupportTable = {
  [`proxy.config.core.v3.Address (${ROLE})`]: {
    otherwise: rejected(),
    fields: {
      envoy_internal_address: rejected('proxies on one machine reach each other over a Unix socket or loopback'),
      socket_address: supportedAs(ROLE),
      pipe: supportedAs(ROLE),
    },
  },
  [`proxy.config.core.v3.SocketAddress (${ROLE})`]: {
    otherwise: rejected(),
    fields: {
      named_port: rejected('use port_value'),
      ipv4_compat: rejected('write the IPv4 address'),
      resolver_name: rejected('write an IP address'),
      network_namespace_filepath: rejected('start the proxy in that namespace, by ip netns exec'),
      protocol: supported('it is UDP either way'),
      address: supported(),
      port_value: supported(),
    },
  },
  [`proxy.config.core.v3.Pipe (${ROLE})`]: {
    otherwise: rejected(),
    fields: { path: supported('a socket for datagrams'), mode: supported('nothing is made at the path') },
  },
};

/** @returns undefined where a fault says why. */
export function convertDatagramTarget(
  message: AddressMessage | null,
  at: string,
  { faults }: Conversion,
): DatagramTarget | undefined {
  const address = convertAddress(message, at, 'stat-sink', faults);
  if (address === undefined) return undefined;
  if (address.kind === 'pipe') return { kind: 'pipe', path: address.path };
  if (address.port === 0) {
    faults.error(`${at}.socket_address.port_value`, 'is required: no datagram can be sent to port 0');
    return undefined;
  }
  return { kind: 'udp', ip: address.ip, port: address.port };
}
