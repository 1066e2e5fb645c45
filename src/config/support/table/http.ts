// Support rows of the HTTP connection manager, its protocol options and its filters.

import {
  extensions,
  type MessageSupport,
  only,
  onlyElseWarned,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
  supportedWhole,
  warned,
} from '../verdict.ts';
import {
  FORWARD_CLIENT_CERT,
  HTTP_CONNECTION_MANAGER,
  HTTP3,
  LISTENER_FILTER_TYPES,
  READ_AS_TYPED,
  ROUTER,
  TERMINAL_TYPES,
} from './extensions.ts';

const MANAGER = 'proxy.extensions.filters.network.http_connection_manager.v3';
const SCOPED_ROUTES = `${MANAGER}.ScopedRoutes`;
const FRAGMENT_BUILDER = `${SCOPED_ROUTES}.ScopeKeyBuilder.FragmentBuilder`;
const UUID_REQUEST_ID = 'proxy.extensions.request_id.uuid.v3.UuidRequestIdConfig';
const EARLY_HEADER_MUTATION = 'proxy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation';
const XFF = 'proxy.extensions.http.original_ip_detection.xff.v3.XffConfig';
const CUSTOM_HEADER = 'proxy.extensions.http.original_ip_detection.custom_header.v3.CustomHeaderConfig';

/** The rows that both sides have in common. */
/** Where a filter comes from whose configuration is a resource of its own. */
const DISCOVERED_FILTER: MessageSupport = {
  otherwise: rejected(),
  fields: {
    config_source: supported(),
    default_config: extensions([]),
    apply_default_config_without_warming: supported(),
    type_urls: supported(),
  },
};

export const HTTP2_FIELDS: MessageSupport['fields'] = {
  hpack_table_size: supported('up to 65536'),
  max_concurrent_streams: supported('1024 when absent'),
  initial_stream_window_size: supported('16 MiB when absent'),
  initial_connection_window_size: supported('24 MiB when absent'),
  allow_connect: supported(),
  allow_metadata: onlyElseWarned([false], 'METADATA frames are skipped'),
  max_metadata_size: warned('METADATA frames are skipped'),
  max_outbound_frames: supported(),
  max_outbound_control_frames: supported(),
  max_consecutive_inbound_frames_with_empty_payload: supported(),
  max_inbound_priority_frames_per_stream: supported(),
  max_inbound_window_update_frames_per_data_frame_sent: supported(),
  stream_error_on_invalid_http_messaging: supported(),
  override_stream_error_on_invalid_http_message: supported(),
  custom_settings_parameters: supported('MAX_FRAME_SIZE only as 16384'),
  use_oghttp2_codec: warned('there is one codec'),
  enable_huffman_encoding: supported('false when absent'),
};

export const HTTP_SUPPORT: SupportTable = {
  [HTTP_CONNECTION_MANAGER]: {
    otherwise: rejected(),
    fields: {
      codec_type: only(['AUTO', 'HTTP1', 'HTTP2'], HTTP3),
      stat_prefix: supported(),
      route_config: supported(),
      http_filters: supported(),
      server_name: supported(),
      server_header_transformation: supported(),
      via: supported(),
      use_remote_address: supported(),
      xff_num_trusted_hops: supported(),
      skip_xff_append: supported(),
      generate_request_id: supported(),
      preserve_external_request_id: supported(),
      always_set_request_id_in_response: supported('also in replies of the proxy itself'),
      request_id_extension: supported(),
      idle_timeout: supported('the v2 place of common_http_protocol_options.idle_timeout'),
      stream_idle_timeout: supported(),
      request_timeout: supported(),
      request_headers_timeout: supported(),
      max_request_headers_kb: supported(
        'a head beyond it is answered with 431; over HTTP/2 a block beyond 1 MiB ends its connection, as a flood does',
      ),
      common_http_protocol_options: supportedAs('downstream'),
      http_protocol_options: supportedAs('downstream'),
      http2_protocol_options: supportedAs('downstream'),
      http3_protocol_options: warned('clients are spoken to in HTTP/1.1 and HTTP/2'),
      normalize_path: supported(
        'without it the runtime says it, `http_connection_manager.normalize_path`, and no otherwise',
      ),
      merge_slashes: supported('of the path, behind its other changes'),
      path_with_escaped_slashes_action: supported(
        'by default what the runtime says, `http_connection_manager.path_with_escaped_slashes_action`, and KEEP_UNCHANGED otherwise',
      ),
      path_normalization_options: rejected(
        '`normalize_path` and `merge_slashes` say the same for all readers of a path',
      ),
      strip_matching_host_port: supported('when it is the port that the client has connected to'),
      strip_any_host_port: supported('but of CONNECT'),
      strip_trailing_host_dot: supported(),
      forward_client_cert_details: supported(),
      set_current_client_cert_details: supported(),
      add_user_agent: supported('with `node.cluster` and `node.id`'),
      represent_ipv4_remote_address_as_ipv4_mapped_ipv6: supported('with `use_remote_address`'),
      internal_address_config: supported('without ranges those of private networks are internal'),
      scheme_header_transformation: supported(),
      forward_proto_config: supported('by the port that the PROXY protocol or original_dst has told'),
      proxy_100_continue: supported('all interim responses pass then, those of 103 too'),
      append_x_forwarded_port: supported(),
      append_local_overload: supported('`x-proxy-local-overloaded`'),
      early_header_mutation_extensions: supportedAs('early header mutation'),
      forward_client_cert_matcher: supported('where it leads nowhere, the two fields above count'),
      typed_header_validation_config: rejected('there is one way to validate headers'),
      rds: supported('see docs/xds.md'),
      scoped_routes: supported('see docs/xds.md'),
      original_ip_detection_extensions: supportedAs('origin'),
      add_proxy_protocol_connection_state: supported('there is no PROXY protocol'),
      bugfix_reverse_encode_order: warned('the order is the corrected one'),
      drain_timeout: supported('between the two GOAWAYs of HTTP/2'),
      delayed_close_timeout: supported('from the end of what was sent on'),
      stream_flush_timeout: supported(),
      stream_error_on_invalid_http_message: supported(
        'over HTTP/1 the connection stays behind a 400 of the proxy itself when its request has been read in full',
      ),
      http1_safe_max_connection_duration: supported(),
      local_reply_config: supported(),
      proxy_status_config: supported(),
      tracing: supported(),
      upgrade_configs: supported(),
      access_log: supported(),
      access_log_flush_interval: supported('an older form of `access_log_options`'),
      flush_access_log_on_new_request: supported('an older form of `access_log_options`'),
      access_log_options: supported(),
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (early header mutation)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([EARLY_HEADER_MUTATION]) },
  },
  [EARLY_HEADER_MUTATION]: {
    otherwise: rejected(),
    fields: {
      mutations: supported('when paths and hosts have their form, before all else; not of the host and of `:`-names'),
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (origin)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([XFF, CUSTOM_HEADER]) },
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.RequestIDExtension': {
    otherwise: rejected(),
    fields: { typed_config: extensions([UUID_REQUEST_ID]) },
  },
  [UUID_REQUEST_ID]: {
    otherwise: rejected(),
    fields: {
      pack_trace_reason: supported(),
      use_request_id_for_trace_sampling: supported(),
    },
  },
  [XFF]: {
    otherwise: rejected(),
    fields: {
      xff_num_trusted_hops: supported(),
      xff_trusted_cidrs: supportedWhole('of all that are believed, the first'),
      skip_xff_append: supported('true when absent'),
    },
  },
  [CUSTOM_HEADER]: {
    otherwise: rejected(),
    fields: {
      header_name: supported(),
      allow_extension_to_set_address_as_trusted: supported(),
      reject_with_status: supportedWhole(),
    },
  },
  [`${HTTP_CONNECTION_MANAGER}.HcmAccessLogOptions`]: {
    otherwise: rejected(),
    fields: {
      access_log_flush_interval: supported('`DownstreamPeriodic`'),
      flush_access_log_on_new_request: supported('`DownstreamStart`, when its route is found'),
      flush_log_on_tunnel_successfully_established: supported('`DownstreamTunnelSuccessfullyEstablished`'),
    },
  },
  [`${HTTP_CONNECTION_MANAGER}.InternalAddressConfig`]: {
    otherwise: rejected(),
    fields: { unix_sockets: supported('clients that come through a pipe'), cidr_ranges: supportedWhole() },
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.ForwardProtoConfig': {
    otherwise: rejected(),
    fields: { https_destination_ports: supported(), http_destination_ports: supported() },
  },
  'proxy.config.core.v3.SchemeHeaderTransformation': {
    otherwise: rejected(),
    fields: {
      scheme_to_overwrite: supported('as `x-forwarded-proto`, and as `:scheme` of HTTP/2'),
      match_upstream: supported(
        'of `:scheme` of HTTP/2, of full URLs of HTTP/1 and of `%REQ(:SCHEME)%`; without it upstreams get the scheme that `x-forwarded-proto` says',
      ),
    },
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.LocalReplyConfig': {
    otherwise: rejected(),
    fields: { mappers: supported(), body_format: supported() },
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.ResponseMapper': {
    otherwise: rejected(),
    fields: {
      filter: supported(),
      status_code: supported(),
      body: supported(),
      body_format_override: supported(),
      headers_to_add: supported('a body that is changed has the type of its format'),
    },
  },
  [`${HTTP_CONNECTION_MANAGER}.UpgradeConfig`]: {
    otherwise: rejected(),
    fields: {
      upgrade_type: supported('`CONNECT` stands for the method'),
      enabled: supported(),
      filters: supported('the settings of their router must be those of `http_filters`'),
    },
  },
  'proxy.config.core.v3.HttpProtocolOptions (downstream)': {
    otherwise: rejected(),
    fields: {
      idle_timeout: supported(),
      max_headers_count: supported(),
      headers_with_underscores_action: supported('of trailers, too; over HTTP/2 a rejected request is reset'),
      max_connection_duration: supported('then as in a drain'),
      max_requests_per_connection: supported(),
      max_stream_duration: supported('a route may replace it'),
      max_response_headers_kb: supported('concerns responses of upstreams: say it at clusters'),
    },
  },
  'proxy.config.core.v3.Http1ProtocolOptions (downstream)': {
    otherwise: rejected(),
    fields: {
      allow_absolute_url: onlyElseWarned([true], 'each server has to understand them'),
      accept_http_10: supported(
        'without it clients of HTTP/1.0 get 426, as nginx may be in front (`proxy_http_version 1.1` there)',
      ),
      default_host_for_http_10: supported('without it requests of HTTP/1.0 need a host'),
      header_key_format: supportedAs('downstream'),
      enable_trailers: supported('to an HTTP/1.0 client none'),
      allow_chunked_length: supported('the Content-Length is dropped, and the connection ends with the response'),
      override_stream_error_on_invalid_http_message: supported(
        'behind a head or a framing that cannot be read the connection closes all the same',
      ),
      send_fully_qualified_url: supported('concerns requests to upstreams: say it at clusters'),
      use_balsa_parser: supported('there is one parser'),
      allow_custom_methods: supported('every method passes'),
      ignore_http_11_upgrade: supported('a request that wants no other goes on without'),
    },
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.Rds': {
    otherwise: rejected(),
    fields: { config_source: supported(), route_config_name: supported() },
  },
  [SCOPED_ROUTES]: {
    otherwise: rejected(),
    fields: {
      name: supported(),
      scope_key_builder: supported(),
      rds_config_source: supported(),
      scoped_route_configurations_list: supported(),
      scoped_rds: supported(),
    },
  },
  [`${SCOPED_ROUTES}.ScopeKeyBuilder`]: { otherwise: rejected(), fields: { fragments: supported() } },
  [FRAGMENT_BUILDER]: { otherwise: rejected(), fields: { header_value_extractor: supported() } },
  [`${FRAGMENT_BUILDER}.HeaderValueExtractor`]: {
    otherwise: rejected(),
    fields: {
      name: supported('the first of several headers counts'),
      element_separator: supported(),
      index: supported(),
      element: supported(),
    },
  },
  [`${FRAGMENT_BUILDER}.HeaderValueExtractor.KvElement`]: {
    otherwise: rejected(),
    fields: { separator: supported(), key: supported() },
  },
  [`${MANAGER}.ScopedRouteConfigurationsList`]: {
    otherwise: rejected(),
    fields: { scoped_route_configurations: supported('no two with one name or one key') },
  },
  [`${MANAGER}.ScopedRds`]: {
    otherwise: rejected('resources are asked for by type, not by locator'),
    fields: { scoped_rds_config_source: supported() },
  },
  'proxy.config.route.v3.ScopedRouteConfiguration': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      key: supported('of two with one key the first counts'),
      route_configuration_name: supported(),
      route_configuration: supported(),
      on_demand: supported('the on_demand filter asks for the table'),
    },
  },
  'proxy.config.route.v3.ScopedRouteConfiguration.Key': { otherwise: rejected(), fields: { fragments: supported() } },
  'proxy.config.route.v3.ScopedRouteConfiguration.Key.Fragment': {
    otherwise: rejected(),
    fields: { string_key: supported() },
  },
  'proxy.config.core.v3.Http1ProtocolOptions.HeaderKeyFormat (downstream)': {
    otherwise: rejected(),
    fields: {
      proper_case_words: supportedWhole('of responses, but for their trailers'),
      stateful_formatter: supportedAs(
        'header formatter',
        'names pass in the case in which they came, anyway; what the proxy adds is in lower case',
      ),
    },
  },
  'proxy.config.core.v3.Http2ProtocolOptions (downstream)': {
    otherwise: rejected(),
    fields: {
      ...HTTP2_FIELDS,
      connection_keepalive: supportedAs('downstream'),
    },
  },
  'proxy.config.core.v3.KeepaliveSettings (downstream)': {
    otherwise: rejected(),
    fields: {
      interval: supported(),
      timeout: supported(),
      interval_jitter: supported(),
      connection_idle_interval: warned('clients open the streams'),
    },
  },
  'proxy.config.core.v3.Http2ProtocolOptions.SettingsParameter': {
    otherwise: rejected(),
    fields: { identifier: supported(), value: supported() },
  },
  [`${HTTP_CONNECTION_MANAGER}.ProxyStatusConfig`]: {
    otherwise: rejected(),
    fields: {
      remove_details: supported(),
      remove_connection_termination_details: supported('requests have none of their own'),
      remove_response_flags: supported(),
      set_recommended_response_code: supported("of replies of the proxy's own; an upstream's answer keeps its status"),
      use_node_id: supported(),
      literal_proxy_name: supported(),
    },
  },
  [FORWARD_CLIENT_CERT]: {
    otherwise: rejected(),
    fields: { forward_client_cert_details: supported(), set_current_client_cert_details: supported() },
  },
  [`${HTTP_CONNECTION_MANAGER}.SetCurrentClientCertDetails`]: {
    otherwise: rejected(),
    fields: {
      san: rejected('use uri and dns'),
      subject: supported(),
      cert: supported(),
      dns: supported(),
      uri: supported(),
      chain: supported('without the root; of a resumed session as far as TLS still knows it'),
    },
  },
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpFilter': {
    otherwise: rejected(),
    fields: {
      config_discovery: supportedAs('HTTP filter', 'see docs/xds.md'),
      deprecated_v1: rejected('use typed_config'),
      name: supported(),
      config: supported(READ_AS_TYPED),
      typed_config: extensions([ROUTER]),
      is_optional: supported('a filter that this build lacks is then left out, with a warning'),
      disabled: supported(),
    },
  },
  'proxy.config.core.v3.ExtensionConfigSource (HTTP filter)': DISCOVERED_FILTER,
  'proxy.config.core.v3.ExtensionConfigSource (network filter)': {
    ...DISCOVERED_FILTER,
    fields: { ...DISCOVERED_FILTER.fields, default_config: extensions(TERMINAL_TYPES) },
  },
  'proxy.config.core.v3.ExtensionConfigSource (listener filter)': {
    ...DISCOVERED_FILTER,
    fields: { ...DISCOVERED_FILTER.fields, default_config: extensions(LISTENER_FILTER_TYPES) },
  },
  // What comes by discovery.
  'proxy.config.core.v3.TypedExtensionConfig': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([...TERMINAL_TYPES, ...LISTENER_FILTER_TYPES]) },
  },
  'proxy.config.core.v3.TypedExtensionConfig (delegated filter)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([]) },
  },
  [`${ROUTER}.UpstreamAccessLogOptions`]: {
    otherwise: rejected(),
    fields: {
      flush_upstream_log_on_upstream_stream: supported('`UpstreamPoolReady`'),
      upstream_log_flush_interval: supported('`UpstreamPeriodic`'),
    },
  },
  [ROUTER]: {
    otherwise: warned(),
    fields: {
      suppress_grpc_request_failure_code_stats: warned('failures of gRPC are counted as the others are'),
      dynamic_stats: onlyElseWarned([true]),
      start_child_span: supported('as spawn_upstream_span'),
      suppress_envoy_headers: supported('of all its own headers, under whatever name'),
      strict_check_headers: supported('of requests from inside'),
      respect_expected_rq_timeout: supported('of requests from inside'),
      reject_connect_request_early_data: onlyElseWarned([false]),
      upstream_http_filters: rejected('put the filters before the router'),
      upstream_log: supported('an entry for each attempt: `UpstreamEnd`'),
      upstream_log_options: supported(),
    },
  },
};
