// Listeners for datagrams.

import { rejected, type SupportTable, supported, supportedAs, supportedWhole, warned } from '../verdict.ts';
import { UDP_PROXY, UDP_ROUTE } from './extensions.ts';

const ROLE = 'listener';

export const UDP_SUPPORT: SupportTable = {
  [`proxy.config.core.v3.Address (${ROLE})`]: {
    otherwise: rejected(),
    fields: {
      envoy_internal_address: rejected('proxies on one machine reach each other over a Unix socket or loopback'),
      socket_address: supportedAs(ROLE),
      pipe: supported('the first worker accepts alone there'),
    },
  },
  [`proxy.config.core.v3.SocketAddress (${ROLE})`]: {
    otherwise: rejected(),
    fields: {
      named_port: rejected('use port_value'),
      resolver_name: rejected('write an IP address'),
      network_namespace_filepath: rejected('start the proxy in that namespace, by ip netns exec'),
      protocol: supported('UDP with the listener filter udp_proxy'),
      address: supported(),
      port_value: supported(),
      ipv4_compat: supported(),
    },
  },
  'proxy.config.listener.v3.UdpListenerConfig': {
    otherwise: rejected(),
    fields: {
      udp_listener_name: supported('`raw_udp_listener`'),
      downstream_socket_config: supported(),
      quic_options: rejected('there is no QUIC'),
      udp_packet_packet_writer_config: rejected('datagrams are written by one way alone'),
      config: rejected('use the listener filter udp_proxy'),
      typed_config: rejected('use the listener filter udp_proxy'),
    },
  },
  'proxy.config.core.v3.UdpSocketConfig': {
    otherwise: rejected(),
    fields: {
      max_rx_datagram_size: supported('longer ones are dropped'),
      prefer_gro: warned('datagrams are read one by one'),
    },
  },
  [UDP_PROXY]: {
    otherwise: rejected(),
    fields: {
      stat_prefix: supported(),
      cluster: supported(),
      matcher: supported('by addresses and ports'),
      idle_timeout: supported(),
      hash_policies: supportedWhole('takes effect with RING_HASH and MAGLEV'),
      upstream_socket_config: supported(),
      use_per_packet_load_balancing: supported(),
      access_log: supported(),
      use_original_src_ip: rejected('hosts see the address of this proxy; access_log tells who asked'),
      session_filters: rejected('there is none; matcher chooses by addresses and ports'),
      proxy_access_log: warned('sessions are logged by access_log'),
      access_log_options: warned('sessions are logged at their end'),
    },
  },
  [UDP_ROUTE]: { otherwise: rejected(), fields: { cluster: supported() } },
};
