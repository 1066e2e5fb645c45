// Notes on connections to hosts: limits, sockets, protocols, and what is measured of them.

import type { MessageNotes } from './note.ts';
import {
  ADDRESSES,
  BIND,
  BREAKERS,
  CLUSTER_POLICIES,
  CONVERSION,
  ENDPOINT_STATS,
  FAILURES,
  HOST_ADDRESSES,
  HTTP_BY_ALPN,
  HTTP2_OPTIONS,
  HTTP2_POOL,
  HTTP2_UPSTREAM,
  MEASURES,
  POLICY,
  PRECONNECT,
  PROXY_HEADER,
  REDIS,
  REQUEST_FORM,
  RESPONSE_HEADS,
  RESPONSE_TIMES,
  RETRIES,
  RETRY_BUDGET,
  SOCKET_MATCHES,
  TRAILERS,
  UPDATES,
  UPSTREAM_FILTERS,
  UPSTREAM_TLS,
} from './tests.ts';

const OF_LISTENERS = 'Nothing: it concerns requests of clients.';

export const CONNECTIONS_NOTES: Readonly<Record<string, MessageNotes>> = {
  'proxy.config.cluster.v3.Filter': {
    test: UPSTREAM_FILTERS,
    fields: {
      name: ['Of the filter; one that this build has not is an error.', 'required'],
      typed_config: ['Its settings.', 'none'],
    },
  },
  'proxy.config.cluster.v3.Cluster.TransportSocketMatch': {
    test: SOCKET_MATCHES,
    fields: {
      name: ['In the name of its stat, `transport_socket_match.<name>.total_match_count`.', 'required'],
      match: [
        'What hosts have in their metadata under `envoy.transport_socket_match`; equal values match.',
        'every host matches',
      ],
      transport_socket: ['What their connections are made of: TLS, or plain TCP.', 'plain TCP', UPSTREAM_TLS],
    },
  },
  'proxy.config.core.v3.TransportSocket (inner)': {
    test: PROXY_HEADER,
    fields: {
      name: ['For people, and the older form of naming the kind.', 'required'],
      config: ['The older form of settings.', 'none'],
      typed_config: ['`UpstreamTlsContext` or `RawBuffer`.', 'none', UPSTREAM_TLS],
    },
  },
  'proxy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport': {
    test: PROXY_HEADER,
    fields: {
      config: ['How the header is written that tells of the client.', 'version 1'],
      transport_socket: ['What follows the header.', 'required', UPSTREAM_TLS],
      allow_unspecified_address: ['Nothing: who has no address is told of as this proxy itself.', '`false`'],
      tlv_as_pool_key: ['Nothing: each client has connections of its own.', '`false`'],
    },
  },
  'proxy.config.core.v3.UpstreamHttpProtocolOptions': {
    test: UPSTREAM_TLS,
    fields: {
      auto_sni: [
        'Servers are asked for the name that requests go to; each name has connections of its own, 256 names a host at most, or of each client where clients have their own. ' +
          'An address asks for nothing.',
        '`false`',
      ],
      auto_san_validation: [
        'The certificate has to be for that name or address, in place of the names configured; none is for more than 255 bytes.',
        '`false`',
      ],
      override_auto_sni_header: [
        'Header with the name; a request without it, or with nothing in it, goes by its host.',
        'the host of the request',
      ],
    },
  },
  'proxy.config.core.v3.ProxyProtocolConfig': {
    test: PROXY_HEADER,
    fields: {
      version: ['`V1`, a line of text, or `V2`, binary.', '`V1`'],
      added_tlvs: ['What a header of version 2 says beside the addresses.', 'none'],
      pass_through_tlvs: [
        "Which of the client's TLVs a header of version 2 passes on ([which](listeners.md#proxy_protocol)).",
        'none',
        'test/integration/passed-tlvs.test.ts',
      ],
    },
  },
  'proxy.config.core.v3.TlvEntry': {
    test: PROXY_HEADER,
    fields: { type: ['Below 256.', '`0`'], value: ['Bytes.', 'none'] },
  },
  'proxy.config.cluster.v3.Cluster.PreconnectPolicy': {
    test: PRECONNECT,
    fields: {
      per_upstream_preconnect_ratio: [
        'Connections of a host for each of its requests that run or wait, below every limit; 1 to 3.',
        '1.0',
      ],
      predictive_preconnect_ratio: [
        'Connections of a worker for each request, opened to the hosts that the next ones will go to; 1 to 3.',
        '1.0',
      ],
    },
  },
  'proxy.config.core.v3.BindConfig': {
    test: CONVERSION,
    fields: {
      source_address: ['Where connections come from; empty with port 0 leaves it to the system.', 'none'],
      freebind: ['Source addresses need not be of this machine.', '`false`', BIND],
      socket_options: ['What is set before connections are bound, or before they are made.', 'none', BIND],
      extra_source_addresses: ['Where connections to hosts of the other family come from: one.', 'none', BIND],
      additional_source_addresses: ['The older form of `extra_source_addresses`.', 'none', BIND],
      local_address_selector: ['What chooses among them: the family of the host.', 'none', BIND],
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (local address selector)': {
    test: BIND,
    fields: { name: ['Its name.', 'required'], typed_config: ['`DefaultLocalAddressSelector`.', 'required'] },
  },
  'proxy.config.core.v3.ExtraSourceAddress': {
    test: BIND,
    fields: {
      address: ['Where connections come from.', 'required'],
      socket_options: ['In place of those beside it.', 'those beside it'],
    },
  },
  'proxy.config.core.v3.SocketOptionsOverride': {
    test: BIND,
    fields: { socket_options: ['What is set.', 'nothing'] },
  },
  'proxy.config.core.v3.SocketOption': {
    test: BIND,
    fields: {
      description: ['Nothing: it is for readers.', 'none'],
      level: ['Number of the level, such as 1 for `SOL_SOCKET`.', '0'],
      name: ['Number of the option within it.', '0'],
      int_value: ['A whole number.', 'one of both is required'],
      buf_value: ['Bytes.', 'one of both is required'],
      state: ['Before or after the socket is bound; one that connects never listens.', '`STATE_PREBIND`'],
      type: ['One for datagrams has no effect.', 'any'],
      ip_version: ['Only for hosts of this family.', 'both'],
    },
  },
  'proxy.config.cluster.v3.UpstreamConnectionOptions': {
    test: UPDATES,
    fields: {
      tcp_keepalive: ['Probes on silent connections.', 'none'],
      happy_eyeballs_config: ['In which order the addresses of one host are tried.', 'families in turn', ADDRESSES],
    },
  },
  'proxy.config.cluster.v3.UpstreamConnectionOptions.HappyEyeballsConfig': {
    test: HOST_ADDRESSES,
    fields: {
      first_address_family_version: ['The family to begin with.', 'that of the first address', ADDRESSES],
      first_address_family_count: ['Addresses of it for each one of the other, 1 or more.', '1', ADDRESSES],
    },
  },
  'proxy.config.cluster.v3.TrackClusterStats': {
    test: MEASURES,
    fields: {
      timeout_budgets: ['Histograms of the percent of their time that requests and tries have used.', '`false`'],
      per_endpoint_stats: [
        'Every listing of stats shows `cluster.<name>.endpoint.<address>.*` of each host: what `/clusters` shows, and `healthy`.',
        '`false`',
        ENDPOINT_STATS,
      ],
      request_response_sizes: ['Histograms of the sizes of heads and bodies, chunk framing included.', '`false`'],
    },
  },
  'proxy.config.core.v3.TcpKeepalive': {
    test: UPDATES,
    fields: {
      keepalive_probes: ['Unanswered probes before a connection is dead.', '9'],
      keepalive_time: ['Seconds of silence before the first.', '7200'],
      keepalive_interval: ['Seconds between them.', '75'],
    },
  },
  'proxy.config.cluster.v3.CircuitBreakers': {
    test: BREAKERS,
    fields: {
      thresholds: ['Limits, at most one entry for each priority.', 'the defaults for both', CONVERSION],
      per_host_thresholds: ['Limits of each host, at most one entry for each priority.', 'none', CONVERSION],
    },
  },
  'proxy.config.cluster.v3.CircuitBreakers.Thresholds (per host)': {
    test: BREAKERS,
    fields: {
      priority: ['The routing priority whose connections are limited.', '`DEFAULT`'],
      max_connections: ['Connections of the host, of both priorities, up to which one more is opened.', 'no limit'],
    },
  },
  'proxy.config.cluster.v3.CircuitBreakers.Thresholds': {
    test: BREAKERS,
    fields: {
      priority: ['The routing priority that is limited.', '`DEFAULT`'],
      max_connections: ['Connections.', '1024'],
      max_pending_requests: ['Requests that wait for a connection.', '1024'],
      max_requests: ['Requests that run.', '1024'],
      max_retries: ['Retries that run, without a budget.', '3', RETRIES],
      retry_budget: ['Retries that run, as a share of the requests that run or wait.', 'none', RETRY_BUDGET],
      max_connection_pools: [
        'Pools that have a connection. The HTTP connections of a worker to one host, for one routing priority, are a pool; with `connection_pool_per_downstream_connection` those of each client. Where no place is left, a pool of the same worker that carries nothing closes; without one the request gets 503, flagged `UH`, and `upstream_cx_pool_overflow` counts.',
        'no limit',
      ],
      track_remaining: ['What is left below each limit is shown in stats.', '`false`'],
    },
  },
  'proxy.config.core.v3.HttpProtocolOptions (upstream)': {
    test: FAILURES,
    fields: {
      idle_timeout: ['A connection without requests closes after it; 0 for never.', '1 h'],
      max_connection_duration: ['Age at which a connection takes no more requests.', 'none', UPDATES],
      max_requests_per_connection: ['Requests after which a connection closes.', 'no limit'],
      max_stream_duration: [
        'From the connection of a try to the end of its response; then it is reset, and tried again where the policy retries resets. Without a retry the client gets 504, or 408 while its request is incomplete, flagged `UMSDR`. `x-proxy-upstream-stream-duration-ms` of a client inside takes its place.',
        'none',
        RESPONSE_TIMES,
      ],
      max_headers_count: [
        'Fields of a response; one with more is answered with 502 in its place and flagged `UPE`.',
        '100',
        RESPONSE_HEADS,
      ],
      max_response_headers_kb: [
        'KiB of the head of a response, and of its trailers; one with more is answered with 502 in its place and flagged `UPE`. Above 63 it means 65,535 bytes, with a warning.',
        '60',
        RESPONSE_HEADS,
      ],
      headers_with_underscores_action: ['Nothing: it concerns requests of clients.', '`ALLOW`', CONVERSION],
    },
  },
  'proxy.config.core.v3.Http1ProtocolOptions (upstream)': {
    test: TRAILERS,
    fields: {
      allow_absolute_url: [OF_LISTENERS, '`true`', CONVERSION],
      accept_http_10: [OF_LISTENERS, '`false`', CONVERSION],
      default_host_for_http_10: [OF_LISTENERS, 'none', CONVERSION],
      header_key_format: ['How names of headers are written.', 'as they came', REQUEST_FORM],
      send_fully_qualified_url: [
        'Requests name scheme and host in their first line, but for CONNECT; the scheme is that of `x-forwarded-proto`.',
        '`false`',
        REQUEST_FORM,
      ],
      enable_trailers: ['Trailers pass, both ways.', '`false`'],
      allow_chunked_length: [
        'A response may have a Content-Length beside `Transfer-Encoding: chunked`: the length is left out. Otherwise it is answered with 502 in its place and flagged `UPE`.',
        '`false`',
        RESPONSE_HEADS,
      ],
      override_stream_error_on_invalid_http_message: [OF_LISTENERS, 'none', CONVERSION],
      use_balsa_parser: ['Nothing: there is one parser.', 'none', CONVERSION],
      allow_custom_methods: ['Nothing: every method passes.', '`false`', CONVERSION],
      ignore_http_11_upgrade: [
        'Nothing: an upgrade passes only where the request has asked for it.',
        'none',
        CONVERSION,
      ],
    },
  },
  'proxy.config.core.v3.Http1ProtocolOptions.HeaderKeyFormat': {
    test: REQUEST_FORM,
    fields: {
      proper_case_words: [
        'Each word of a name begins in upper case, and goes on in lower case: `Content-Type`. Of requests, but for their trailers.',
        'none',
      ],
      stateful_formatter: ['Names go on as they came, which they do without it, too.', 'none', CONVERSION],
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (header formatter)': {
    test: CONVERSION,
    fields: {
      name: ['For people alone.', 'required'],
      typed_config: ['`PreserveCaseFormatterConfig`.', 'required'],
    },
  },
  'proxy.extensions.http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig': {
    test: CONVERSION,
    fields: {
      forward_reason_phrase: ['Nothing: reason phrases pass.', '`false`'],
      formatter_type_on_envoy_headers: ['Headers that the proxy adds are in lower case.', '`DEFAULT`'],
    },
  },
  'proxy.extensions.filters.network.redis_proxy.v3.RedisProtocolOptions': {
    about: 'What connections to servers of Redis say first.',
    test: REDIS,
    fields: {
      auth_password: ['The password; checks by Redis say it, too.', 'none'],
      auth_username: ['The name beside it.', "the server's default user"],
    },
  },
  'proxy.config.core.v3.DataSource': {
    test: REDIS,
    fields: {
      filename: ['A file that has it, read while the configuration is loaded.', 'none'],
      inline_bytes: ['In base64.', 'none'],
      inline_string: ['As text.', 'none'],
      environment_variable: ['A variable of the environment that has it.', 'none'],
    },
  },
  'proxy.extensions.upstreams.http.v3.HttpProtocolOptions': {
    test: CONVERSION,
    fields: {
      common_http_protocol_options: ['Options of HTTP.', 'none'],
      upstream_http_protocol_options: ['Names of TLS that requests bring.', 'none', UPSTREAM_TLS],
      explicit_http_config: ['The protocol, and its options.', 'HTTP/1.1'],
      use_downstream_protocol_config: ['The protocol is that of the client.', 'none', HTTP2_UPSTREAM],
      auto_config: [
        'The protocol is what each host chooses by ALPN: HTTP/2, or HTTP/1.1, which it is without an answer, too.',
        'none',
        HTTP_BY_ALPN,
      ],
      retry_policy: [
        'Retries of requests to this cluster, in place of those of routes.',
        'that of the route',
        CLUSTER_POLICIES,
      ],
      hash_policy: [
        'What requests to this cluster are hashed by, in place of what routes say; the `hash_policy` of a balancer goes before it.',
        'that of the route',
        POLICY,
      ],
      request_mirror_policies: [
        'Who gets copies of requests to this cluster, in place of what routes say.',
        'those of the route',
        CLUSTER_POLICIES,
      ],
    },
  },
  'proxy.extensions.upstreams.http.v3.HttpProtocolOptions.ExplicitHttpConfig': {
    test: CONVERSION,
    fields: {
      http_protocol_options: ['HTTP/1, and its options.', 'none'],
      http2_protocol_options: ['HTTP/2, and its options.', 'none', HTTP2_UPSTREAM],
    },
  },
  'proxy.extensions.upstreams.http.v3.HttpProtocolOptions.UseDownstreamHttpConfig': {
    test: HTTP2_UPSTREAM,
    fields: {
      http_protocol_options: ['Options of HTTP/1, for clients that speak it.', 'none'],
      http2_protocol_options: ['Options of HTTP/2, for clients that speak it.', 'none'],
    },
  },
  'proxy.extensions.upstreams.http.v3.HttpProtocolOptions.AutoHttpConfig': {
    test: HTTP_BY_ALPN,
    fields: {
      http_protocol_options: ['Options of HTTP/1, for hosts that choose it.', 'none'],
      http2_protocol_options: ['Options of HTTP/2, for hosts that choose it.', 'none'],
    },
  },
  'proxy.config.core.v3.Http2ProtocolOptions (upstream)': {
    test: HTTP2_OPTIONS,
    fields: {
      hpack_table_size: ['Octets of the table by which upstreams compress heads.', '4096'],
      max_concurrent_streams: [
        'Requests that a connection carries at a time, if the upstream takes as many.',
        '1024',
        HTTP2_POOL,
      ],
      initial_stream_window_size: [
        'What an upstream may send of a response that nobody takes.',
        '`per_connection_buffer_limit_bytes`',
      ],
      initial_connection_window_size: ['The same of all responses of a connection, before they are read.', '24 MiB'],
      allow_connect: ['Of no effect: the upstream says whether it takes extended CONNECT.', '`false`'],
      allow_metadata: ['METADATA frames.', '`false`'],
      max_outbound_frames: ['Frames that may wait for an upstream that reads nothing.', '10000'],
      max_outbound_control_frames: ['The same of answers to its control frames.', '1000'],
      max_consecutive_inbound_frames_with_empty_payload: ['Frames with nothing in them, one behind the other.', '1'],
      max_inbound_priority_frames_per_stream: ['PRIORITY frames for each stream.', '100'],
      max_inbound_window_update_frames_per_data_frame_sent: ['WINDOW_UPDATE frames for each DATA frame.', '10'],
      stream_error_on_invalid_http_messaging: [
        'Of no effect: a response with a fault ends its stream alone.',
        '`false`',
      ],
      override_stream_error_on_invalid_http_message: ['The newer form, of no effect either.', 'none'],
      custom_settings_parameters: ['Settings that are announced besides.', 'none'],
      connection_keepalive: ['Pings, and how soon they are to be answered.', 'none', HTTP2_POOL],
      enable_huffman_encoding: ['Heads are written with the Huffman code where that is shorter.', '`false`'],
    },
  },
  'proxy.config.core.v3.Http2ProtocolOptions.SettingsParameter': {
    test: HTTP2_OPTIONS,
    fields: { identifier: ['Which setting.', 'required'], value: ['Its value.', 'required'] },
  },
  'proxy.config.core.v3.KeepaliveSettings': {
    test: HTTP2_POOL,
    fields: {
      interval: ['Between two pings.', 'none by time'],
      timeout: ['Within which a ping has to be answered.', 'required'],
      interval_jitter: ['By how much of itself an interval may be longer.', '15%'],
      connection_idle_interval: [
        'A connection that has heard nothing for so long pings before its next request.',
        'none',
      ],
    },
  },
  'proxy.config.core.v3.TransportSocket (upstream)': {
    test: CONVERSION,
    fields: {
      name: ['For people, and the older form of naming the kind.', 'required'],
      config: ['The older form of settings.', 'none'],
      typed_config: ['`RawBuffer`.', 'none'],
    },
  },
};
