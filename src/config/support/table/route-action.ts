// Support rows of how routes forward: hosts to choose, retries, hedges, redirects that are followed.

import {
  extensions,
  extensionsElseWarned,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
  supportedWhole,
  warned,
} from '../verdict.ts';
import { READ_AS_TYPED } from './extensions.ts';

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
const TEMPLATE_REWRITE = 'proxy.extensions.path.rewrite.uri_template.v3.UriTemplateRewriteConfig';
const TYPED_RETRY_POLICY = extensionsElseWarned([RETRY_POLICY], 'retry_policy is read first, and alone');

export const ROUTE_ACTION_SUPPORT: SupportTable = {
  'proxy.config.core.v3.TypedExtensionConfig (path rewriter)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([TEMPLATE_REWRITE]) },
  },
  [TEMPLATE_REWRITE]: {
    otherwise: rejected(),
    fields: { path_template_rewrite: supported('with path_match_policy') },
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
      timeout: supported('without max_stream_duration, which takes its place'),
      idle_timeout: supported(),
      max_stream_duration: supported(
        'services of gRPC are told by grpc-timeout what it comes to, and of no time where 0 takes away the limit of the connection manager',
      ),
      max_grpc_timeout: supported('without max_stream_duration, which takes its place'),
      grpc_timeout_offset: supported('takes effect with max_grpc_timeout'),
      flush_timeout: supported(),
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
      filter_state: supported('of the request, else of its connection'),
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
      allow_post: supported(
        'the body of a POST goes to the upstream as it is, and what comes back is that of its answer',
      ),
      proxy_protocol_config: supported(),
    },
  },
};
