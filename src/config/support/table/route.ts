// Support rows of route configurations: tables, hosts, routes, and what answers without an upstream.

import {
  extensions,
  extensionsElseWarned,
  rejected,
  type SupportTable,
  settingsOf,
  supported,
  supportedWhole,
  warned,
} from '../verdict.ts';

const FILTER_CONFIG = 'proxy.config.route.v3.FilterConfig';
const RETRY_POLICY = 'proxy.config.route.v3.RetryPolicy';
/** What matchers of virtual hosts lead to. */
const NO_AUTH = 'never had an effect; write the filter jwt_authn, rbac or ext_authz, and what a route says to it';

export const ROUTE_ACTIONS_OF_MATCHERS: readonly string[] = [
  'proxy.config.route.v3.Route',
  'proxy.config.route.v3.RouteList',
];
const TYPED_RETRY_POLICY = extensionsElseWarned([RETRY_POLICY], 'retry_policy is read first, and alone');
/** Note on the v2 field. */
const READ_AS_PER_FILTER = 'read as typed_per_filter_config';
/** The settings themselves join the table with their filters. */
const PER_FILTER = extensions([FILTER_CONFIG]);

export const ROUTE_SUPPORT: SupportTable = {
  'proxy.config.route.v3.Vhds': {
    otherwise: rejected(),
    fields: { config_source: supported('by DELTA_GRPC') },
  },
  'proxy.config.route.v3.RouteConfiguration': {
    otherwise: rejected(),
    fields: {
      vhds: supported('of tables that come by rds; see docs/xds.md'),
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
      auth: rejected(NO_AUTH),
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
      auth: rejected(NO_AUTH),
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
    fields: {
      config: settingsOf([]),
      is_optional: supported('settings that this build lacks are then left out, with a warning'),
      disabled: supported(),
    },
  },
  'proxy.type.matcher.v3.RegexMatchAndSubstitute': {
    otherwise: rejected(),
    fields: { pattern: supported(), substitution: supported() },
  },
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
  'proxy.config.common.mutation_rules.v3.HeaderMutation': {
    otherwise: rejected(),
    fields: { remove: supported(), append: supported() },
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
