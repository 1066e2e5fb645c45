// Support rows of connections to hosts: sockets, limits, and the protocol spoken over them.

import {
  extensions,
  onlyElseWarned,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
  supportedWhole,
  warned,
} from '../verdict.ts';
import {
  HTTP_OPTIONS,
  HTTP3,
  LOCAL_ADDRESS_SELECTOR,
  PRESERVE_CASE,
  RAW_BUFFER,
  READ_AS_TYPED,
  UPSTREAM_NETWORK_FILTERS,
  UPSTREAM_PROXY_PROTOCOL,
  UPSTREAM_TLS,
} from './extensions.ts';
import { HTTP2_FIELDS } from './http.ts';

const OF_LISTENERS = 'concerns requests of clients';

export const CLUSTER_CONNECTIONS_SUPPORT: SupportTable = {
  'proxy.config.cluster.v3.Cluster.PreconnectPolicy': {
    otherwise: rejected(),
    fields: {
      per_upstream_preconnect_ratio: supported(),
      predictive_preconnect_ratio: supported('with ROUND_ROBIN and RANDOM, without subsets'),
    },
  },
  'proxy.config.cluster.v3.Filter': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      typed_config: extensions(UPSTREAM_NETWORK_FILTERS),
      config_discovery: rejected('this build discovers no extensions'),
    },
  },
  'proxy.config.core.v3.BindConfig': {
    otherwise: rejected(),
    fields: {
      source_address: supported('an empty address and port 0 leave it to the system'),
      freebind: supported(),
      socket_options: supported(),
      additional_source_addresses: supported('one, of the other family'),
      extra_source_addresses: supported('one, of the other family'),
      local_address_selector: supportedAs('local address selector', 'that by the family of the host'),
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (local address selector)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([LOCAL_ADDRESS_SELECTOR]) },
  },
  [LOCAL_ADDRESS_SELECTOR]: { otherwise: rejected(), fields: {} },
  'proxy.config.core.v3.ExtraSourceAddress': {
    otherwise: rejected(),
    fields: { address: supported(), socket_options: supported() },
  },
  'proxy.config.core.v3.SocketOptionsOverride': { otherwise: rejected(), fields: { socket_options: supported() } },
  'proxy.config.core.v3.SocketOption': {
    otherwise: rejected(),
    fields: {
      description: supported(),
      level: supported(),
      name: supported(),
      int_value: supported(),
      buf_value: supported(),
      state: supported(),
      type: supportedWhole(),
      ip_version: supported(),
    },
  },
  'proxy.config.cluster.v3.UpstreamConnectionOptions': {
    otherwise: rejected(),
    fields: {
      tcp_keepalive: supported(),
      set_local_interface_name_on_upstream_connections: warned('no filter and no format of this build asks for it'),
      happy_eyeballs_config: supported('of hosts with several addresses'),
    },
  },
  'proxy.config.cluster.v3.UpstreamConnectionOptions.HappyEyeballsConfig': {
    otherwise: rejected(),
    fields: { first_address_family_version: supported(), first_address_family_count: supported() },
  },
  'proxy.config.core.v3.TcpKeepalive': {
    otherwise: rejected(),
    fields: { keepalive_probes: supported(), keepalive_time: supported(), keepalive_interval: supported() },
  },
  'proxy.config.cluster.v3.CircuitBreakers': {
    otherwise: rejected(),
    fields: { thresholds: supported(), per_host_thresholds: supportedAs('per host') },
  },
  'proxy.config.cluster.v3.CircuitBreakers.Thresholds': {
    otherwise: rejected(),
    fields: {
      priority: supported(),
      max_connections: supported(),
      max_pending_requests: supported(),
      max_requests: supported(),
      max_retries: supported('without a retry_budget'),
      retry_budget: supportedWhole(),
      track_remaining: supported(),
      max_connection_pools: supported('of HTTP connections'),
    },
  },
  'proxy.config.cluster.v3.CircuitBreakers.Thresholds (per host)': {
    otherwise: rejected('hosts have no limit of their own for it'),
    fields: { priority: supported(), max_connections: supported() },
  },
  'proxy.config.core.v3.HttpProtocolOptions (upstream)': {
    otherwise: rejected(),
    fields: {
      idle_timeout: supported(),
      max_headers_count: supported('of responses; up to 1024'),
      max_connection_duration: supported(),
      max_stream_duration: supported('from the connection of a try on; retried as a reset'),
      headers_with_underscores_action: supported('concerns requests of clients: responses pass as they are'),
      max_requests_per_connection: supported(),
      max_response_headers_kb: supported('up to 64 KiB less one byte'),
    },
  },
  'proxy.config.core.v3.Http1ProtocolOptions (upstream)': {
    otherwise: rejected(),
    fields: {
      allow_absolute_url: supported(OF_LISTENERS),
      accept_http_10: supported(OF_LISTENERS),
      default_host_for_http_10: supported(OF_LISTENERS),
      header_key_format: supported(),
      enable_trailers: supported(),
      allow_chunked_length: supported(),
      override_stream_error_on_invalid_http_message: supported(OF_LISTENERS),
      send_fully_qualified_url: supported(),
      use_balsa_parser: supported('there is one parser'),
      allow_custom_methods: supported('every method passes'),
      ignore_http_11_upgrade: supported('an upgrade passes only where the request has asked for it'),
    },
  },
  'proxy.config.core.v3.Http1ProtocolOptions.HeaderKeyFormat': {
    otherwise: rejected(),
    fields: {
      proper_case_words: supportedWhole('of requests, but for their trailers'),
      stateful_formatter: supportedAs(
        'header formatter',
        'names pass in the case in which they came, anyway; what the proxy adds is in lower case',
      ),
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (header formatter)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([PRESERVE_CASE]) },
  },
  [PRESERVE_CASE]: {
    otherwise: rejected(),
    fields: {
      forward_reason_phrase: supported('reason phrases pass'),
      formatter_type_on_envoy_headers: onlyElseWarned(['DEFAULT'], 'what the proxy adds is in lower case'),
    },
  },
  [HTTP_OPTIONS]: {
    otherwise: rejected(),
    fields: {
      common_http_protocol_options: supportedAs('upstream'),
      upstream_http_protocol_options: supported(),
      explicit_http_config: supported(),
      use_downstream_protocol_config: supported(),
      auto_config: supported('needs TLS; a server that names no protocol by ALPN speaks HTTP/1.1'),
      http_filters: rejected('this build has no filters of upstream requests'),
      header_validation_config: rejected('this build has one way to validate headers'),
      outlier_detection: warned('the status of a response decides'),
      hash_policy: supported("takes the place of the route's; that of the balancer goes before it"),
      retry_policy: supported("takes the place of the route's"),
      request_mirror_policies: supported("take the place of the route's"),
    },
  },
  'proxy.extensions.upstreams.http.v3.HttpProtocolOptions.ExplicitHttpConfig': {
    otherwise: rejected(),
    fields: {
      http_protocol_options: supportedAs('upstream'),
      http2_protocol_options: supportedAs('upstream'),
      http3_protocol_options: rejected(HTTP3),
    },
  },
  'proxy.extensions.upstreams.http.v3.HttpProtocolOptions.UseDownstreamHttpConfig': {
    otherwise: rejected(),
    fields: {
      http_protocol_options: supportedAs('upstream'),
      http2_protocol_options: supportedAs('upstream'),
      http3_protocol_options: rejected(HTTP3),
    },
  },
  'proxy.extensions.upstreams.http.v3.HttpProtocolOptions.AutoHttpConfig': {
    otherwise: rejected(),
    fields: {
      http_protocol_options: supportedAs('upstream'),
      http2_protocol_options: supportedAs('upstream'),
      http3_protocol_options: rejected(HTTP3),
      alternate_protocols_cache_options: rejected(HTTP3),
    },
  },
  'proxy.config.core.v3.Http2ProtocolOptions (upstream)': {
    otherwise: rejected(),
    fields: {
      ...HTTP2_FIELDS,
      initial_stream_window_size: supported('per_connection_buffer_limit_bytes when absent, 64 KiB to 16 MiB'),
      allow_connect: supported('the upstream says whether it takes extended CONNECT'),
      stream_error_on_invalid_http_messaging: supported('a message with a fault ends its stream alone'),
      override_stream_error_on_invalid_http_message: supported('a message with a fault ends its stream alone'),
      connection_keepalive: supported(),
    },
  },
  'proxy.config.core.v3.KeepaliveSettings': {
    otherwise: rejected(),
    fields: {
      interval: supported(),
      timeout: supported(),
      interval_jitter: supportedWhole(),
      connection_idle_interval: supported(),
    },
  },
  'proxy.config.cluster.v3.Cluster.TransportSocketMatch': {
    otherwise: rejected(),
    fields: { name: supported(), match: supportedWhole(), transport_socket: supportedAs('inner') },
  },
  'proxy.config.core.v3.TransportSocket (upstream)': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      config: supported(READ_AS_TYPED),
      typed_config: extensions([RAW_BUFFER, UPSTREAM_TLS, UPSTREAM_PROXY_PROTOCOL]),
    },
  },
  'proxy.config.core.v3.TransportSocket (inner)': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      config: supported(READ_AS_TYPED),
      typed_config: { ...extensions([RAW_BUFFER, UPSTREAM_TLS]), note: 'a raw buffer or TLS may stand here' },
    },
  },
  'proxy.config.core.v3.UpstreamHttpProtocolOptions': {
    otherwise: rejected(),
    fields: {
      auto_sni: supported(),
      auto_san_validation: supported(),
      override_auto_sni_header: supported(),
    },
  },
  [UPSTREAM_PROXY_PROTOCOL]: {
    otherwise: rejected(),
    fields: {
      config: supported(),
      transport_socket: supportedAs('inner'),
      allow_unspecified_address: supported('whose address is not known is told of as this proxy itself, anyway'),
      tlv_as_pool_key: supported('each client has connections of its own, anyway'),
    },
  },
  'proxy.config.core.v3.ProxyProtocolConfig': {
    otherwise: rejected(),
    fields: {
      version: supported(),
      pass_through_tlvs: supportedWhole('those that the listener filter proxy_protocol passes, or a TCP proxy says'),
      added_tlvs: supported('in place of those of the same type that are passed'),
    },
  },
  'proxy.config.core.v3.TlvEntry': {
    otherwise: rejected(),
    fields: {
      type: supported(),
      value: supported(),
      format_string: rejected('proxy_protocol_tlvs of a TCP proxy makes TLVs of connections'),
    },
  },
};
