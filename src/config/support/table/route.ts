// Support rows of route configurations.

import {
  extensions,
  extensionsElseWarned,
  only,
  rejected,
  type SupportTable,
  settingsOf,
  supported,
  supportedAs,
  supportedWhole,
  warned,
} from '../verdict.ts';
import { READ_AS_TYPED } from './extensions.ts';

const FILTER_CONFIG = 'proxy.config.route.v3.FilterConfig';
const RETRY_POLICY = 'proxy.config.route.v3.RetryPolicy';
const RETRY_HOST = 'proxy.extensions.retry.host';
const PREVIOUS_HOSTS = `${RETRY_HOST}.previous_hosts.v3.PreviousHostsPredicate`;
const OMIT_CANARIES = `${RETRY_HOST}.omit_canary_hosts.v3.OmitCanaryHostsPredicate`;
const OMIT_METADATA = `${RETRY_HOST}.omit_host_metadata.v3.OmitHostMetadataConfig`;
const PREVIOUS_PRIORITIES = 'proxy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig';

const REDIRECT = 'proxy.extensions.internal_redirect';
const ALLOWED_ROUTES = `${REDIRECT}.allow_listed_routes.v3.AllowListedRoutesConfig`;
const PREVIOUS_ROUTES = `${REDIRECT}.previous_routes.v3.PreviousRoutesConfig`;
const SAFE_CROSS_SCHEME = `${REDIRECT}.safe_cross_scheme.v3.SafeCrossSchemeConfig`;

const TEMPLATE_MATCH = 'proxy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig';
const TEMPLATE_REWRITE = 'proxy.extensions.path.rewrite.uri_template.v3.UriTemplateRewriteConfig';

/** What matchers of virtual hosts lead to. */
export const ROUTE_ACTIONS_OF_MATCHERS: readonly string[] = [
  'proxy.config.route.v3.Route',
  'proxy.config.route.v3.RouteList',
];

const RATE_LIMIT = 'proxy.config.route.v3.RateLimit';

const TYPED_RETRY_POLICY = extensionsElseWarned([RETRY_POLICY], 'retry_policy is read first, and alone');

/** Note on the v2 field. */
const READ_AS_PER_FILTER = 'read as typed_per_filter_config';
/** The settings themselves join the table with their filters. */
const PER_FILTER = extensions([FILTER_CONFIG]);

export const ROUTE_SUPPORT: SupportTable = {
  'proxy.config.route.v3.RouteConfiguration': {
    otherwise: rejected(),
    fields: {
      vhds: rejected('write the virtual hosts into route_config'),
      cluster_specifier_plugins: rejected('neither Lua nor Go runs here; cluster_header leaves the choice to a filter'),
      name: supported(),
      virtual_hosts: supported(),
      validate_clusters: supported(),
      max_direct_response_body_size_bytes: supported(),
      request_mirror_policies: supported(),
      metadata: supportedWhole('no command operator asks for it'),
      most_specific_header_mutations_wins: supported(),
      request_headers_to_add: supported(),
      request_headers_to_remove: supported(),
      response_headers_to_add: supported(),
      response_headers_to_remove: supported(),
      internal_only_headers: supported(),
      ignore_port_in_host_matching: supported(),
      ignore_path_parameters_in_path_matching: supported(),
      vhost_header: supported(),
      typed_per_filter_config: PER_FILTER,
    },
  },
  'proxy.config.route.v3.VirtualHost': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      domains: supported(),
      routes: supported(),
      matcher: supported('in place of routes; leads to a Route or a RouteList, whose own matches hold beside it'),
      request_headers_to_add: supported(),
      request_headers_to_remove: supported(),
      response_headers_to_add: supported(),
      response_headers_to_remove: supported(),
      require_tls: supported(),
      metadata: supportedWhole('METADATA(VIRTUAL_HOST)'),
      request_mirror_policies: supported(),
      cors: supported('read by the cors filter'),
      virtual_clusters: supported(),
      rate_limits: supported('read by the ratelimit and local_ratelimit filters'),
      retry_policy: supported(),
      retry_policy_typed_config: TYPED_RETRY_POLICY,
      hedge_policy: supported(),
      include_request_attempt_count: supported(),
      include_attempt_count_in_response: supported(),
      include_is_timeout_retry_header: supported(),
      per_filter_config: supported(READ_AS_PER_FILTER),
      typed_per_filter_config: PER_FILTER,
      per_request_buffer_limit_bytes: supported('of bodies that are kept for retries'),
      request_body_buffer_limit: supported('of bodies that are kept for retries'),
    },
  },
  'proxy.config.route.v3.RouteList': { otherwise: rejected(), fields: { routes: supported() } },
  'proxy.config.route.v3.Route': {
    otherwise: rejected(),
    fields: {
      filter_action: rejected('no filter of this build answers in place of a route; use direct_response'),
      non_forwarding_action: rejected('write a route, a redirect or a direct_response'),
      name: supported(),
      match: supported(),
      route: supported(),
      redirect: supported(),
      direct_response: supported(),
      request_headers_to_add: supported(),
      request_headers_to_remove: supported(),
      response_headers_to_add: supported(),
      response_headers_to_remove: supported(),
      metadata: supportedWhole('METADATA(ROUTE)'),
      decorator: supported('where requests are traced'),
      tracing: supported('where requests are traced'),
      stat_prefix: supported(),
      per_request_buffer_limit_bytes: supported('of bodies that are kept for retries'),
      request_body_buffer_limit: supported('of bodies that are kept for retries'),
      per_filter_config: supported(READ_AS_PER_FILTER),
      typed_per_filter_config: PER_FILTER,
    },
  },
  'proxy.config.route.v3.VirtualCluster': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      headers: supported(),
      pattern: supported('RE2, not ECMAScript'),
      method: supported('with pattern'),
    },
  },
  // Of the fields `cors`; the same in typed_per_filter_config is its filter's own.
  'proxy.config.route.v3.CorsPolicy': { otherwise: supported(), fields: {} },
  [FILTER_CONFIG]: {
    otherwise: rejected(),
    fields: { config: settingsOf([]), is_optional: supported(), disabled: supported() },
  },
  'proxy.config.route.v3.RouteMatch': {
    otherwise: rejected(),
    fields: {
      prefix: supported(),
      path: supported(),
      path_separated_prefix: supported(),
      regex: supported('RE2, not ECMAScript'),
      safe_regex: supported(),
      case_sensitive: supported(),
      headers: supported(),
      query_parameters: supported(),
      grpc: supportedWhole(),
      connect_matcher: supportedWhole(),
      runtime_fraction: supported(),
      runtime: supported('read as runtime_fraction out of 100'),
      path_match_policy: supportedAs('path matcher'),
      tls_context: supportedWhole(),
      dynamic_metadata: supportedWhole('of what filters have said when the route is chosen'),
      cookies: supported(),
      filter_state: supportedWhole('of the connection; a text that is an IP address for `address_match`'),
    },
  },
  'proxy.config.route.v3.CookieMatcher': {
    otherwise: rejected(),
    fields: { name: supported(), string_match: supported(), invert_match: supported() },
  },
  'proxy.config.core.v3.TypedExtensionConfig (path matcher)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([TEMPLATE_MATCH]) },
  },
  [TEMPLATE_MATCH]: { otherwise: rejected(), fields: { path_template: supported() } },
  'proxy.config.core.v3.TypedExtensionConfig (path rewriter)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([TEMPLATE_REWRITE]) },
  },
  [TEMPLATE_REWRITE]: {
    otherwise: rejected(),
    fields: { path_template_rewrite: supported('with path_match_policy') },
  },
  [RATE_LIMIT]: {
    otherwise: rejected(),
    fields: {
      stage: supported(),
      disable_key: supported(),
      actions: supported(),
      limit: supported('read by the ratelimit filter'),
      hits_addend: supported(),
      apply_on_stream_done: supported('read by the ratelimit filter; entries are those of the request as it came'),
      x_ratelimit_option: supported('read by the ratelimit filter'),
    },
  },
  [`${RATE_LIMIT}.HitsAddend`]: { otherwise: rejected(), fields: { number: supported(), format: supported() } },
  [`${RATE_LIMIT}.Override`]: { otherwise: rejected(), fields: { dynamic_metadata: supported() } },
  [`${RATE_LIMIT}.Override.DynamicMetadata`]: { otherwise: rejected(), fields: { metadata_key: supportedWhole() } },
  [`${RATE_LIMIT}.Action`]: {
    otherwise: rejected(),
    fields: {
      extension: rejected('requests are described by the other actions alone'),
      source_cluster: supported("the node's cluster"),
      destination_cluster: supported('not where the cluster is named by a header'),
      request_headers: supported(),
      remote_address: supported('by the trusted hops'),
      generic_key: supported(),
      header_value_match: supported(),
      dynamic_metadata: supported(),
      metadata: supported(),
      masked_remote_address: supported(),
      query_parameter_value_match: supported(),
      query_parameters: supported(),
    },
  },
  [`${RATE_LIMIT}.Action.SourceCluster`]: { otherwise: supported(), fields: {} },
  [`${RATE_LIMIT}.Action.DestinationCluster`]: { otherwise: supported(), fields: {} },
  [`${RATE_LIMIT}.Action.RemoteAddress`]: { otherwise: supported(), fields: {} },
  [`${RATE_LIMIT}.Action.RequestHeaders`]: {
    otherwise: rejected(),
    fields: { header_name: supported(), descriptor_key: supported(), skip_if_absent: supported() },
  },
  [`${RATE_LIMIT}.Action.QueryParameters`]: {
    otherwise: rejected(),
    fields: { query_parameter_name: supported(), descriptor_key: supported(), skip_if_absent: supported() },
  },
  [`${RATE_LIMIT}.Action.MaskedRemoteAddress`]: {
    otherwise: rejected(),
    fields: { v4_prefix_mask_len: supported(), v6_prefix_mask_len: supported() },
  },
  [`${RATE_LIMIT}.Action.GenericKey`]: {
    otherwise: rejected(),
    fields: {
      default_value: rejected('descriptor_value is always there: it has no command operators'),
      descriptor_value: supported('without command operators'),
      descriptor_key: supported(),
    },
  },
  [`${RATE_LIMIT}.Action.HeaderValueMatch`]: {
    otherwise: rejected(),
    fields: {
      default_value: rejected('descriptor_value is always there: it has no command operators'),
      descriptor_value: supported('without command operators'),
      expect_match: supported(),
      headers: supported(),
      descriptor_key: supported(),
    },
  },
  [`${RATE_LIMIT}.Action.QueryParameterValueMatch`]: {
    otherwise: rejected(),
    fields: {
      default_value: rejected('descriptor_value is always there: it has no command operators'),
      descriptor_value: supported('without command operators'),
      expect_match: supported(),
      query_parameters: supported(),
      descriptor_key: supported(),
    },
  },
  [`${RATE_LIMIT}.Action.DynamicMetaData`]: {
    otherwise: rejected(),
    fields: { descriptor_key: supported(), metadata_key: supportedWhole(), default_value: supported() },
  },
  [`${RATE_LIMIT}.Action.MetaData`]: {
    otherwise: rejected(),
    fields: {
      descriptor_key: supported(),
      metadata_key: supportedWhole(),
      default_value: supported(),
      source: supported(),
      skip_if_absent: supported(),
    },
  },
  'proxy.config.route.v3.HeaderMatcher': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      value: supported(),
      regex: supported(),
      exact_match: supported(),
      regex_match: supported('RE2, not ECMAScript'),
      range_match: supported(),
      present_match: supported(),
      prefix_match: supported(),
      suffix_match: supported(),
      safe_regex_match: supported(),
      contains_match: supported(),
      string_match: supported(),
      invert_match: supported(),
      treat_missing_header_as_empty: supported(),
    },
  },
  'proxy.config.route.v3.QueryParameterMatcher': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      value: supported(),
      regex: supported('RE2, not ECMAScript'),
      string_match: supported(),
      present_match: supported(),
    },
  },
  'proxy.type.matcher.v3.StringMatcher': {
    otherwise: rejected(),
    fields: {
      exact: supported(),
      prefix: supported(),
      suffix: supported(),
      contains: supported(),
      regex: supported('RE2, not ECMAScript'),
      safe_regex: supported(),
      ignore_case: supported('not with a regular expression, as in the reference'),
    },
  },
  'proxy.type.matcher.v3.RegexMatcher': {
    otherwise: rejected(),
    fields: {
      google_re2: supportedWhole('RE2 is the only engine; its time is linear, so no size limit is needed'),
      regex: supported(),
    },
  },
  'proxy.type.matcher.v3.RegexMatchAndSubstitute': {
    otherwise: rejected(),
    fields: { pattern: supported(), substitution: supported() },
  },
  'proxy.type.v3.Int64Range': { otherwise: rejected(), fields: { start: supported(), end: supported() } },
  'proxy.config.core.v3.RuntimeFractionalPercent': {
    otherwise: rejected(),
    fields: { default_value: supported(), runtime_key: supported() },
  },
  'proxy.type.v3.Percent': { otherwise: rejected(), fields: { value: supported() } },
  'proxy.type.v3.FractionalPercent': {
    otherwise: rejected(),
    fields: { numerator: supported(), denominator: supported() },
  },
  'proxy.config.core.v3.HeaderValueOption': {
    otherwise: rejected(),
    fields: { header: supported(), append: supported(), append_action: supported(), keep_empty_value: supported() },
  },
  'proxy.config.core.v3.HeaderValue': {
    otherwise: rejected(),
    fields: { key: supported(), value: supported('with command operators'), raw_value: supported() },
  },
  'proxy.config.route.v3.WeightedCluster': {
    otherwise: rejected(),
    fields: {
      clusters: supported(),
      total_weight: supported('must be the sum of the weights'),
      runtime_key_prefix: supported(),
      header_name: supported('a whole number; else chance decides'),
      use_hash_policy: supported('requests without a hash go by chance'),
    },
  },
  'proxy.config.route.v3.WeightedCluster.ClusterWeight': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      weight: supported(),
      request_headers_to_add: supported(),
      request_headers_to_remove: supported(),
      response_headers_to_add: supported(),
      response_headers_to_remove: supported(),
      host_rewrite_literal: supported(),
      cluster_header: supported('in place of name'),
      per_filter_config: supported(READ_AS_PER_FILTER),
      typed_per_filter_config: PER_FILTER,
      metadata_match: supportedWhole('merged into that of the route'),
    },
  },
  'proxy.config.route.v3.RedirectAction': {
    otherwise: rejected(),
    fields: {
      host_redirect: supported(),
      port_redirect: supported(),
      path_redirect: supported(),
      prefix_rewrite: supported(),
      regex_rewrite: supported(),
      response_code: supported(),
      https_redirect: supported(),
      scheme_redirect: supported(),
      strip_query: supported(),
    },
  },
  'proxy.config.route.v3.RouteAction.MaxStreamDuration': {
    otherwise: warned(),
    fields: {
      max_stream_duration: supported(),
      grpc_timeout_header_max: supported(),
      grpc_timeout_header_offset: supported('takes effect with grpc_timeout_header_max'),
    },
  },
  'proxy.config.route.v3.RouteAction': {
    otherwise: rejected(),
    fields: {
      cors: supported('read by the cors filter'),
      cluster: supported(),
      cluster_header: supported(),
      weighted_clusters: supported(),
      cluster_specifier_plugin: rejected('neither Lua nor Go runs here; cluster_header leaves the choice to a filter'),
      inline_cluster_specifier_plugin: rejected(
        'neither Lua nor Go runs here; cluster_header leaves the choice to a filter',
      ),
      cluster_not_found_response_code: supported(),
      prefix_rewrite: supported(),
      regex_rewrite: supported(),
      path_rewrite: supported('with command operators; in place of the path, the query stays'),
      path_rewrite_policy: supportedAs('path rewriter'),
      host_rewrite_literal: supported('host_rewrite in v2'),
      host_rewrite: supported('with command operators'),
      host_rewrite_header: supported('auto_host_rewrite_header in v2'),
      host_rewrite_path_regex: supported(),
      auto_host_rewrite: supported(),
      timeout: supported(),
      idle_timeout: supported(),
      max_stream_duration: supported(),
      max_grpc_timeout: supported(),
      grpc_timeout_offset: supported('takes effect with max_grpc_timeout'),
      flush_timeout: warned('stream_flush_timeout of the connection manager holds for all routes'),
      websocket_config: rejected('write an entry of upgrade_configs with upgrade_type websocket'),
      retry_policy: supported(),
      retry_policy_typed_config: TYPED_RETRY_POLICY,
      hedge_policy: supported(),
      use_websocket: supported('as an upgrade of type websocket'),
      upgrade_configs: supported(),
      priority: supported(),
      metadata_match: supportedWhole('takes effect in clusters with subsets'),
      hash_policy: supported('takes effect with RING_HASH and MAGLEV'),
      request_mirror_policy: supported(),
      request_mirror_policies: supported(),
      rate_limits: supported('read by the ratelimit and local_ratelimit filters'),
      include_vh_rate_limits: supported(),
      internal_redirect_action: supported('internal_redirect_policy supersedes it'),
      max_internal_redirects: supported('with internal_redirect_action'),
      internal_redirect_policy: supported(),
      append_x_forwarded_host: supported(),
      request_headers_to_add: supported('as on Route'),
      response_headers_to_add: supported('as on Route'),
      response_headers_to_remove: supported('as on Route'),
      early_data_policy: warned('no request goes out as early data'),
    },
  },
  'proxy.config.route.v3.RouteAction.RequestMirrorPolicy': {
    otherwise: rejected(),
    fields: {
      cluster: supported(),
      cluster_header: supported(),
      runtime_key: supported(),
      runtime_fraction: supported(),
      trace_sampled: warned('copies have no spans of their own'),
      disable_shadow_host_suffix_append: supported(),
      host_rewrite_literal: supported(),
      request_headers_mutations: supported(),
    },
  },
  'proxy.config.common.mutation_rules.v3.HeaderMutation': {
    otherwise: rejected(),
    fields: { remove: supported(), append: supported() },
  },
  [RETRY_POLICY]: {
    otherwise: rejected(),
    fields: {
      retry_on: supported('refused-stream and http3-post-connect-failure do not happen with HTTP/1.1'),
      num_retries: supported(),
      per_try_timeout: supported(),
      per_try_idle_timeout: supported(),
      retry_priority: supported(),
      retry_host_predicate: supported(),
      host_selection_retry_max_attempts: supported(),
      retriable_status_codes: supported(),
      retry_back_off: supported(),
      rate_limited_retry_back_off: supported(),
      retriable_headers: supported(),
      retriable_request_headers: supported(),
      retry_options_predicates: warned('the schema has no such predicate: a retry has the options of the first try'),
    },
  },
  [`${RETRY_POLICY}.RetryBackOff`]: {
    otherwise: rejected(),
    fields: { base_interval: supported(), max_interval: supported() },
  },
  [`${RETRY_POLICY}.RateLimitedRetryBackOff`]: {
    otherwise: rejected(),
    fields: { reset_headers: supported(), max_interval: supported() },
  },
  [`${RETRY_POLICY}.ResetHeader`]: { otherwise: rejected(), fields: { name: supported(), format: supported() } },
  [`${RETRY_POLICY}.RetryHostPredicate`]: {
    otherwise: rejected(),
    fields: {
      name: supported(),
      config: supported(READ_AS_TYPED),
      typed_config: extensions([PREVIOUS_HOSTS, OMIT_CANARIES, OMIT_METADATA]),
    },
  },
  [`${RETRY_POLICY}.RetryPriority`]: {
    otherwise: rejected(),
    fields: { name: supported(), config: supported(READ_AS_TYPED), typed_config: extensions([PREVIOUS_PRIORITIES]) },
  },
  [PREVIOUS_HOSTS]: { otherwise: rejected(), fields: {} },
  [OMIT_CANARIES]: { otherwise: rejected(), fields: {} },
  [OMIT_METADATA]: {
    otherwise: rejected(),
    fields: { metadata_match: supportedWhole('the balancer namespace') },
  },
  [PREVIOUS_PRIORITIES]: { otherwise: rejected(), fields: { update_frequency: supported() } },
  'proxy.config.route.v3.InternalRedirectPolicy': {
    otherwise: rejected(),
    fields: {
      max_internal_redirects: supported(),
      redirect_response_codes: supported(),
      predicates: supportedAs('redirect predicate'),
      allow_cross_scheme_redirect: supported(),
      response_headers_to_copy: supported(),
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (redirect predicate)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([ALLOWED_ROUTES, PREVIOUS_ROUTES, SAFE_CROSS_SCHEME]) },
  },
  [ALLOWED_ROUTES]: { otherwise: rejected(), fields: { allowed_route_names: supported() } },
  [PREVIOUS_ROUTES]: { otherwise: rejected(), fields: {} },
  [SAFE_CROSS_SCHEME]: { otherwise: rejected(), fields: {} },
  'proxy.config.route.v3.HedgePolicy': {
    otherwise: rejected(),
    fields: {
      initial_requests: supported('16 at most; all but the first have places under max_retries'),
      additional_request_chance: supported(),
      hedge_on_per_try_timeout: supported(),
    },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy': {
    otherwise: rejected(),
    fields: {
      header: supported(),
      cookie: supported(),
      connection_properties: supported(),
      query_parameter: supported(),
      filter_state: supported('of the connection'),
      terminal: supported(),
    },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.Header': {
    otherwise: rejected(),
    fields: { header_name: supported('of the request as it came'), regex_rewrite: supported() },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.Cookie': {
    otherwise: rejected(),
    fields: { name: supported(), ttl: supported(), path: supported(), attributes: supported() },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.CookieAttribute': {
    otherwise: rejected(),
    fields: { name: supported(), value: supported() },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.ConnectionProperties': {
    otherwise: rejected(),
    fields: { source_ip: supported() },
  },
  'proxy.config.route.v3.RouteAction.HashPolicy.FilterState': { otherwise: rejected(), fields: { key: supported() } },
  'proxy.config.route.v3.RouteAction.HashPolicy.QueryParameter': {
    otherwise: rejected(),
    fields: { name: supported() },
  },
  'proxy.config.route.v3.RouteAction.UpgradeConfig': {
    otherwise: rejected(),
    fields: { upgrade_type: supported(), enabled: supported(), connect_config: supported() },
  },
  'proxy.config.route.v3.RouteAction.UpgradeConfig.ConnectConfig': {
    otherwise: rejected(),
    fields: {
      allow_post: only([false], 'tunnels are asked for by CONNECT; a POST is forwarded as any request'),
      proxy_protocol_config: rejected('have the cluster write the header, by the proxy_protocol transport socket'),
    },
  },
  'proxy.config.route.v3.DirectResponseAction': {
    otherwise: warned(),
    fields: {
      status: supported(),
      body: supported(),
      body_format: supported('in place of the body, which is %LOCAL_REPLY_BODY%'),
    },
  },
};
