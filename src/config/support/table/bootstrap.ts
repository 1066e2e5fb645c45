// Support rows of the bootstrap itself: node, admin interface, statistics, process-wide settings.

import {
  extensions,
  only,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
  supportedWhole,
  warned,
} from '../verdict.ts';
import { INTERNAL_LISTENER, RE2, READ_AS_TYPED } from './extensions.ts';

const NEVER = '0s is never';
const FILES_LAYER = 'read again when another link is moved over it';
const DISCOVERY_FILE = 'of a DiscoveryResponse; read again when another file is moved over it';
const STATIC_LAYER = 'the keys that this build reads; it warns of the others';

export const BOOTSTRAP_SUPPORT: SupportTable = {
  'proxy.config.bootstrap.v3.Bootstrap': {
    otherwise: rejected(),
    fields: {
      bootstrap_extensions: supportedAs('bootstrap extension', 'those of the build; filters of your own are modules'),
      config_sources: rejected('sources are named where they are used, as in cds_config'),
      default_config_source: rejected('sources are named where they are used, as in cds_config'),
      default_socket_interface: rejected('sockets are those of the system'),
      certificate_provider_instances: rejected('use tls_certificates, or secrets from files by sds_config'),
      default_regex_engine: supportedAs('regex engine', 'RE2 is the only one, and the default'),
      listener_manager: rejected('there is one listener manager, for sockets of this machine'),
      node: supported(),
      static_resources: supported(),
      dynamic_resources: supported(),
      cluster_manager: supported(),
      flags_path: warned('options stand on the command line'),
      stats_sinks: supported(),
      stats_flush_interval: supported(),
      stats_flush_on_admin: supported(),
      stats_eviction_interval: warned('stats stay for as long as what they belong to'),
      watchdog: supported('of all threads'),
      watchdogs: supported(),
      tracing: supported('of connection managers that name no provider'),
      rate_limit_service: supported('of ratelimit filters that name none'),
      runtime: supported(),
      layered_runtime: supported(),
      admin: supported(),
      stats_config: supported(),
      hds_config: supported('checks hosts for a server by a stream of gRPC, whatever api_type says'),
      overload_manager: supported(),
      enable_dispatcher_stats: supported('costs about a microsecond a turn of each event loop'),
      header_prefix: supported(),
      stats_server_version_override: supported(),
      use_tcp_for_dns_lookups: supported('of clusters without resolvers of their own'),
      dns_resolution_config: supported('of clusters without resolvers of their own'),
      typed_dns_resolver_config: supportedAs('DNS resolver', 'of clusters without resolvers of their own'),
      node_context_params: warned('resources are asked for by their names alone'),
      fatal_actions: warned('faults are logged with their stacks, and workers replaced'),
      inline_headers: supportedWhole('a hint for header lookups, which are equally fast without it'),
      perf_tracing_file_path: warned('the admin interface has profiles of processor and memory'),
      xds_delegate_extension: warned('/config_dump shows the resources in force'),
      xds_config_tracker_extension: warned('/config_dump shows the resources in force, and why others were refused'),
      application_log_config: supported('in place of --log-format'),
      deferred_stat_options: supportedWhole(
        'a hint; a stat that is not used takes 8 bytes a thread, and goes to no sink',
      ),
      grpc_async_client_manager_config: warned('services are asked over the connections of their clusters'),
      memory_allocator_manager: warned('memory is managed by Node'),
    },
  },
  'proxy.config.core.v3.TypedExtensionConfig (bootstrap extension)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([INTERNAL_LISTENER]) },
  },
  [INTERNAL_LISTENER]: { otherwise: warned('listeners of that kind are refused where they stand'), fields: {} },
  'proxy.config.core.v3.TypedExtensionConfig (regex engine)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([RE2]) },
  },
  [RE2]: { otherwise: rejected(), fields: {} },
  'proxy.config.bootstrap.v3.Watchdogs': {
    otherwise: rejected(),
    fields: { main_thread_watchdog: supported(), worker_watchdog: supported() },
  },
  'proxy.config.bootstrap.v3.Watchdog': {
    otherwise: rejected(),
    fields: {
      miss_timeout: supported(NEVER),
      megamiss_timeout: supported(NEVER),
      kill_timeout: supported('a worker is ended and replaced; for the main thread the process is aborted'),
      multikill_timeout: supported('of workers; the process is aborted'),
      multikill_threshold: supported(),
      max_kill_timeout_jitter: supported(),
      actions: warned('what happens with each event stands in docs/process.md'),
    },
  },
  'proxy.config.bootstrap.v3.Bootstrap.StaticResources': {
    otherwise: rejected(),
    fields: { listeners: supported(), clusters: supported(), secrets: supported() },
  },
  'proxy.config.bootstrap.v3.Bootstrap.ApplicationLogConfig': {
    otherwise: rejected(),
    fields: { log_format: supported() },
  },
  'proxy.config.bootstrap.v3.Bootstrap.ApplicationLogConfig.LogFormat': {
    otherwise: rejected(),
    fields: {
      json_format: supportedWhole('one object a line, with the flags of --log-format but %v and %_'),
      text_format: supported('the flags of --log-format'),
    },
  },
  'proxy.config.bootstrap.v3.Runtime': {
    otherwise: warned('the layer is left out'),
    fields: {
      symlink_root: supported(FILES_LAYER),
      subdirectory: supported(),
      override_subdirectory: supported('followed by the service cluster'),
      base: supportedWhole(STATIC_LAYER),
    },
  },
  'proxy.config.bootstrap.v3.LayeredRuntime': { otherwise: rejected(), fields: { layers: supported() } },
  'proxy.config.bootstrap.v3.RuntimeLayer': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      static_layer: supportedWhole(STATIC_LAYER),
      disk_layer: supported(),
      admin_layer: supportedWhole('what `/runtime_modify` writes'),
      rtds_layer: supported(),
    },
  },
  'proxy.config.bootstrap.v3.RuntimeLayer.DiskLayer': {
    otherwise: rejected(),
    fields: { symlink_root: supported(FILES_LAYER), append_service_cluster: supported(), subdirectory: supported() },
  },
  'proxy.config.bootstrap.v3.RuntimeLayer.RtdsLayer': {
    otherwise: rejected(),
    fields: { name: supported('of the resource'), rtds_config: supported() },
  },
  'proxy.config.bootstrap.v3.Bootstrap.DynamicResources': {
    otherwise: rejected('resources are asked for by type, not by locator'),
    fields: {
      ads_config: supported('the stream of sources that say `ads`'),
      cds_config: supported('what a response has not is removed; what may not be is refused for itself'),
      lds_config: supported('as cds_config; the routes of a listener stand in it'),
    },
  },
  'proxy.config.core.v3.ConfigSource': {
    otherwise: rejected(),
    fields: {
      self: rejected('name the source itself: ads, or api_config_source'),
      authorities: rejected('resources are asked for by name at their source, not by authority'),
      path: supported(DISCOVERY_FILE),
      path_config_source: supported(),
      api_config_source: supported(),
      ads: supportedWhole('the stream of dynamic_resources.ads_config'),
      initial_fetch_timeout: supported('a file that is not there is not waited for'),
      resource_api_version: supported(
        'what is asked for, where AUTO is that of the bootstrap; resources of both are read',
      ),
    },
  },
  'proxy.config.core.v3.ApiConfigSource': {
    otherwise: rejected(),
    fields: {
      api_type: supported('REST, GRPC and DELTA_GRPC; ads_config has a stream'),
      cluster_names: supported('of REST: one'),
      refresh_delay: supported('of REST; up to as much again is added'),
      grpc_services: supported('one, or two of which the second stands in'),
      request_timeout: supported('of REST'),
      rate_limit_settings: supported(),
      set_node_on_first_message_only: supported(),
      transport_api_version: supported('AUTO is that of the bootstrap'),
      config_validators: rejected('resources are held against the rules of their fields, and nothing else'),
    },
  },
  'proxy.config.core.v3.RateLimitSettings': {
    otherwise: rejected(),
    fields: { max_tokens: supported(), fill_rate: supported() },
  },
  'proxy.config.core.v3.PathConfigSource': {
    otherwise: rejected(),
    fields: { path: supported(DISCOVERY_FILE), watched_directory: supported() },
  },
  'proxy.config.core.v3.WatchedDirectory': {
    otherwise: rejected(),
    fields: { path: supported('the file is read again when anything is moved here') },
  },
  'proxy.config.bootstrap.v3.ClusterManager': {
    otherwise: warned(),
    fields: {
      load_stats_config: supported('reports by a stream of gRPC, whatever api_type says'),
      enable_deferred_cluster_creation: warned('workers make a cluster when somebody asks for it, anyway'),
      outlier_detection: supported(),
      local_cluster_name: supported('turns zone aware routing on'),
      upstream_bind_config: supported('of clusters without one'),
    },
  },
  'proxy.config.bootstrap.v3.ClusterManager.OutlierDetection': {
    otherwise: warned(),
    fields: {
      event_service: warned('ejections are logged to event_log_path'),
      event_log_path: supported(),
    },
  },
  'proxy.config.bootstrap.v3.Admin': {
    otherwise: rejected(),
    fields: {
      address: supported(),
      access_log_path: supported(),
      profile_path: supported(),
      socket_options: warned('the socket is as the system makes it'),
      access_log: supported(),
      ignore_global_conn_limit: supported('the admin interface is never limited'),
      allow_paths: supported('of paths without their query; others answer 403'),
    },
  },
  'proxy.config.core.v3.Node': {
    otherwise: supportedWhole('shown by the admin interface'),
    fields: {
      id: supported(),
      cluster: supported(),
      metadata: supported(),
      locality: supportedWhole(),
      dynamic_parameters: warned('metadata tells of this node'),
    },
  },
  'proxy.config.metrics.v3.StatsConfig': {
    otherwise: warned(),
    fields: {
      stats_tags: supported(),
      use_all_default_tags: supported(),
      stats_matcher: supported(),
      histogram_bucket_settings: supported(),
    },
  },
  'proxy.config.metrics.v3.StatsSink': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      config: supported(READ_AS_TYPED),
      typed_config: extensions([]),
    },
  },
  'proxy.config.metrics.v3.StatsMatcher': {
    otherwise: warned(),
    fields: { reject_all: supported(), exclusion_list: supported(), inclusion_list: supported() },
  },
  'proxy.type.matcher.v3.ListStringMatcher': { otherwise: warned(), fields: { patterns: supported() } },
  'proxy.config.metrics.v3.HistogramBucketSettings': {
    otherwise: warned(),
    fields: { match: supported(), buckets: supported(), bins: warned('histograms grow as they need to') },
  },
  'proxy.config.metrics.v3.TagSpecifier': {
    otherwise: warned(),
    fields: { tag_name: supported(), fixed_value: supported(), regex: supported() },
  },
  'proxy.config.core.v3.Address': {
    otherwise: rejected(),
    fields: {
      envoy_internal_address: rejected('proxies on one machine reach each other over a Unix socket or loopback'),
      socket_address: supported(),
      pipe: supported('of a listener, the first worker accepts alone there'),
    },
  },
  'proxy.config.core.v3.SocketAddress': {
    otherwise: rejected(),
    fields: {
      named_port: rejected('use port_value'),
      resolver_name: rejected('names are looked up for clusters of STRICT_DNS and LOGICAL_DNS'),
      network_namespace_filepath: rejected('start the proxy in that namespace, by ip netns exec'),
      protocol: only(['TCP']),
      address: supported(),
      port_value: supported(),
      ipv4_compat: supported('of listeners'),
    },
  },
  'proxy.config.core.v3.Pipe': { otherwise: rejected(), fields: { path: supported(), mode: supported() } },
  'proxy.config.core.v3.DataSource': {
    otherwise: rejected(),
    fields: {
      filename: supported('read once, when the configuration is loaded'),
      inline_bytes: supported(),
      inline_string: supported(),
      environment_variable: supported('read once, when the configuration is loaded'),
      watched_directory: warned('files are read once: only those of TLS come anew'),
    },
  },
};
