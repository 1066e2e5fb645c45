// The extensions that configurations are known to name and that this build does not have, and what whoever wants one may
// do. Names are written as in extension-table.ts, which has those of a category among its rows.

import { quote } from '../source/node.ts';
import type { ExtensionCategory } from './extension-table.ts';
import { envoySpelling, normalizeTypeName } from './message-names.ts';

export interface LackingExtension {
  readonly names: readonly [canonical: string, ...others: string[]];
  /**
   * Types of its settings without the leading `proxy.`, or what they begin with. Those that are called as it is
   * (`extensions.filters.http.lua.v3.Lua`, `config.filter.http.lua.v2.Lua`) are left out.
   */
  readonly types: readonly string[];
  /** What to do; empty where there is nothing to say. */
  readonly instead: string;
}

/** An extension of the names, or one for each of them, without their common beginning. */
function lacking(start: string, instead: string, ...names: readonly (string | [string, ...string[]])[]) {
  return names.map((each): LackingExtension => {
    const [name, ...others] = typeof each === 'string' ? [each] : each;
    return { names: [`${start}${name}`, ...others], types: [], instead };
  });
}

const byType = (name: string, instead: string, ...types: readonly string[]): LackingExtension => ({
  names: [name],
  types,
  instead,
});

/** Of the tracers before those of today, whose types stand side by side. */
const tracer = (name: string, type: string, ...others: readonly string[]): LackingExtension => ({
  names: [`tracers.${name}`, ...others],
  types: ['v3', 'v2', 'v2alpha'].map((version) => `config.trace.${version}.${type}`),
  instead: TRACERS_THERE,
});

const OWN_FILTER = 'a filter of your own can do what it does (docs/filters.md)';
const OWN_CALLS = 'a filter of your own can call a cluster (docs/filters.md)';
const OWN_BODIES = 'a filter of your own can read and change bodies (docs/filters.md)';
const NO_CEL = 'there is no CEL';
const OUTRIGHT = 'tcp_proxy carries it, without statistics of its commands';
const OF_CONNECTIONS =
  'rbac and ext_authz judge connections, and filters of your own are those of HTTP (docs/filters.md)';
const ADDRESS = 'upstreams see the address of this proxy; a PROXY header to them tells that of the client';
const BY_ADDRESS = 'rbac judges addresses, and a filter of your own can call a cluster (docs/filters.md)';
const TUNNELS = 'tunneling_config of tcp_proxy carries connections between two proxies';
const MEMORY = 'cache keeps answers in memory';
const LOGGERS = 'file, stdout, stderr, http_grpc, tcp_grpc and open_telemetry are there';

const TRACERS_THERE = 'opentelemetry, zipkin and datadog are there';

const HTTP = 'filters.http.';
const NETWORK = 'filters.network.';

const HTTP_FILTERS: readonly LackingExtension[] = [
  ...lacking(HTTP, OWN_FILTER, ['lua', 'lua'], 'wasm', 'golang', 'dynamic_modules', 'cdn_loop', 'transform', 'sxg'),
  ...lacking(HTTP, OWN_FILTER, 'aws_lambda', 'aws_request_signing', 'connect_grpc_bridge', 'mcp', 'mcp_router', 'a2a'),
  ...lacking(HTTP, 'request_headers_to_add puts a fixed one in, a filter of your own others', 'credential_injector'),
  ...lacking(HTTP, OWN_CALLS, 'ext_proc', 'gcp_authn'),
  ...lacking(HTTP, OWN_BODIES, 'json_to_metadata', 'sse_to_metadata', 'stream_to_metadata', 'thrift_to_metadata'),
  ...lacking(HTTP, OWN_BODIES, 'grpc_field_extraction', 'proto_message_extraction', 'proto_api_scrubber'),
  ...lacking(HTTP, OWN_BODIES, 'grpc_http1_reverse_bridge', 'grpc_json_reverse_transcoder'),
  ...lacking(HTTP, BY_ADDRESS, 'geoip'),
  ...lacking(HTTP, ADDRESS, 'original_src'),
  ...lacking(HTTP, 'jwt_authn verifies tokens, and ext_authz asks a service that logs users in', 'oauth2'),
  ...lacking(HTTP, 'match_delegate passes single filters over', 'composite'),
  ...lacking(HTTP, 'adaptive_concurrency bounds requests, and outlier detection takes hosts out', 'admission_control'),
  ...lacking(HTTP, 'ratelimit asks a service, local_ratelimit counts in this proxy', 'rate_limit_quota'),
  ...lacking(HTTP, 'buffer keeps bodies in memory', 'file_system_buffer'),
  ...lacking(HTTP, 'buffer bounds bodies by max_request_bytes', 'body_size_limit'),
  ...lacking(HTTP, 'bandwidth_limit bounds each request or route', 'bandwidth_share'),
  ...lacking(HTTP, MEMORY, 'cache_v2'),
  ...lacking(HTTP, 'this build speaks no HTTP/3; leave it out', 'alternate_protocols_cache'),
  ...lacking(HTTP, 'POST /quitquitquit of the admin interface ends the process', 'kill_request'),
  ...lacking(HTTP, 'this build has no filters of upstream requests; leave it out', 'upstream_codec'),
  ...lacking(
    HTTP,
    'requests pass the same without it; leave it out',
    ['squash', 'squash'],
    ['dynamo', 'http_dynamo_filter'],
  ),
];

const NETWORK_FILTERS: readonly LackingExtension[] = [
  ...lacking(NETWORK, OUTRIGHT, ['mongo_proxy', 'mongo_proxy'], 'mysql_proxy', 'postgres_proxy', 'zookeeper_proxy'),
  ...lacking(NETWORK, OUTRIGHT, 'kafka_broker', 'kafka_mesh', 'smtp_proxy'),
  ...lacking(
    NETWORK,
    'tcp_proxy carries it, to one cluster',
    'thrift_proxy',
    'dubbo_proxy',
    'rocketmq_proxy',
    'sip_proxy',
  ),
  ...lacking(NETWORK, 'tcp_proxy carries it, to one cluster', 'generic_proxy', 'meta_protocol_proxy'),
  ...lacking(NETWORK, OF_CONNECTIONS, 'wasm', 'golang', 'dynamic_modules', 'ext_proc'),
  ...lacking(NETWORK, BY_ADDRESS, 'geoip'),
  ...lacking(NETWORK, TUNNELS, 'reverse_tunnel'),
  ...lacking(NETWORK, 'rbac judges by certificates', ['client_ssl_auth', 'client_ssl_auth']),
  ...lacking(NETWORK, 'http_connection_manager takes its place', 'envoy_mobile_http_connection_manager'),
];

const SOCKETS: readonly LackingExtension[] = [
  ...lacking('transport_sockets.', 'tls secures connections by certificates', 'alts'),
  ...lacking('transport_sockets.', 'tls secures connections from their first byte', 'starttls'),
  ...lacking('transport_sockets.', 'this build speaks no HTTP/3', 'quic'),
  ...lacking(
    'transport_sockets.',
    'write the socket inside it alone; there are no statistics of the kernel',
    'tcp_stats',
  ),
];

const UPSTREAM_SOCKETS: readonly LackingExtension[] = [
  ...SOCKETS,
  ...lacking('transport_sockets.', 'tunneling_config of tcp_proxy goes through HTTP proxies', 'http_11_proxy'),
  ...lacking('transport_sockets.', 'this build has no listeners within itself', 'internal_upstream'),
];

const TRACERS: readonly LackingExtension[] = [
  tracer('lightstep', 'LightstepConfig', 'lightstep'),
  tracer('dynamic_ot', 'DynamicOtConfig', 'dynamic.ot'),
  tracer('opencensus', 'OpenCensusConfig'),
  tracer('skywalking', 'SkyWalkingConfig'),
  tracer('xray', 'XRayConfig'),
  ...lacking('tracers.', TRACERS_THERE, 'fluentd', 'dynamic_modules'),
];

/** By the category of the field that they are configured in. */
export const LACKING: Readonly<Partial<Record<ExtensionCategory, readonly LackingExtension[]>>> = {
  access_loggers: lacking('access_loggers.', LOGGERS, 'wasm', 'fluentd', 'stats', 'dynamic_modules'),
  clusters: [
    ...lacking('clusters.', 'aggregate goes through clusters in their order', 'composite'),
    ...lacking('clusters.', TUNNELS, 'reverse_connection'),
  ],
  'filters.http': HTTP_FILTERS,
  'filters.listener': [
    ...lacking('filters.listener.', OF_CONNECTIONS, 'dynamic_modules', 'wasm'),
    ...lacking('filters.udp.', 'a DNS server behind udp_proxy can answer', 'dns_filter'),
  ],
  'filters.network': NETWORK_FILTERS,
  health_checkers: lacking('health_checkers.', 'tcp_health_check asks whether hosts accept connections', 'thrift'),
  'http.cache': [
    byType('extensions.http.cache.file_system_http_cache', MEMORY, 'extensions.http.cache.file_system_http_cache'),
  ],
  resource_monitors: lacking(
    'resource_monitors.',
    'fixed_heap, cgroup_memory, downstream_connections and injected_resource are there',
    'cpu_utilization',
  ),
  stats_sinks: lacking('stat_sinks.', 'statsd, dog_statsd, metrics_service and open_telemetry are there', 'wasm'),
  tracers: TRACERS,
  'transport_sockets.downstream': SOCKETS,
  'transport_sockets.upstream': UPSTREAM_SOCKETS,
};

/** In fields that tell no category. */
const PARTS: readonly LackingExtension[] = [
  byType(
    'grpc_credentials',
    'tokens of the cloud are not fetched: say ssl_credentials and access_token, or name a cluster in envoy_grpc whose server does that',
    'config.grpc_credential',
    'extensions.grpc_credentials',
  ),
  byType(
    'access_loggers.extension_filters.cel',
    `${NO_CEL}; the other filters ask for statuses, flags, headers, durations and metadata`,
    'extensions.access_loggers.filters.cel',
  ),
  byType(
    'access_loggers.extension_filters.process_ratelimit',
    'runtime_filter logs a share of requests',
    'extensions.access_loggers.filters.process_ratelimit',
  ),
  byType('formatter.cel', `${NO_CEL}; docs/command-operators.md has the operators`, 'extensions.formatter.cel'),
  byType(
    'rate_limit_descriptors.expr',
    `${NO_CEL}; header_value_match and query_parameter_value_match name requests`,
    'extensions.rate_limit_descriptors.expr',
  ),
  byType(
    'matching.matchers.cel_matcher',
    `${NO_CEL}; inputs of headers, query parameters, addresses and metadata are there`,
    'xds.type.matcher.v3.CelMatcher',
    'xds.type.matcher.v3.HttpAttributesCelMatchInput',
  ),
  byType(
    'tracers.opentelemetry.samplers',
    'always_on, trace_id_ratio_based and parent_based are there',
    'extensions.tracers.opentelemetry.samplers',
  ),
  byType(
    'tracers.opentelemetry.resource_detectors',
    'the static and the environment detector are there',
    'extensions.tracers.opentelemetry.resource_detectors',
  ),
  byType('string_matcher.lua', 'safe_regex is there', 'extensions.string_matcher.lua'),
  byType('route.early_data_policy', 'TLS in this build takes no early data; leave it out', 'extensions.early_data'),
  byType('http.header_validators', 'every head is validated; leave it out', 'extensions.http.header_validators'),
  byType(
    'router.cluster_specifier_plugin',
    'cluster_header leaves the choice to a filter',
    'extensions.router.cluster_specifiers',
  ),
  byType('rbac.matchers.upstream_ip_port', '', 'extensions.rbac.matchers.upstream_ip_port'),
  byType(
    'rbac.principals.mtls_authenticated',
    'authenticated asks for the same',
    'extensions.rbac.principals.mtls_authenticated',
  ),
  byType(
    'compression',
    'gzip, brotli and zstd are there',
    'extensions.compression.qatzip.compressor',
    'extensions.compression.qatzstd.compressor',
  ),
  byType(
    'network.dns_resolver',
    'without it names are asked of the servers in /etc/resolv.conf, and cares may name others',
    'extensions.network.dns_resolver.getaddrinfo',
    'extensions.network.dns_resolver.apple',
    'extensions.network.dns_resolver.hickory',
  ),
  byType(
    'regex_engines.google_re2',
    'expressions are those of RE2 without it; leave it out',
    'extensions.regex_engines',
  ),
  byType(
    'tls.cert_validator.spiffe',
    'trusted_ca with match_typed_subject_alt_names of type URI asks for names of one trust domain',
    'extensions.transport_sockets.tls.v3.SPIFFECertValidatorConfig',
  ),
  byType(
    'upstreams',
    'requests go to the cluster as it says itself; leave it out',
    'extensions.upstreams.http.generic',
    'extensions.upstreams.http.http',
    'extensions.upstreams.http.tcp',
    'extensions.upstreams.http.udp',
    'extensions.upstreams.tcp.generic',
  ),
  byType('udp_packet_writer', 'datagrams go out one by one; leave it out', 'extensions.udp_packet_writer'),
  byType(
    'bootstrap.internal_listener',
    'this build has no listeners within itself',
    'extensions.bootstrap.internal_listener',
  ),
  byType('bootstrap.reverse_tunnel', TUNNELS, 'extensions.bootstrap.reverse_tunnel'),
  byType('wasm', 'filters of your own are modules (docs/filters.md)', 'extensions.wasm'),
  byType(
    'watchdog.profile_action',
    '/cpuprofiler of the admin interface makes profiles',
    'extensions.watchdog.profile_action',
  ),
];

/** All, by category and then those in fields that tell none. */
export function lackingExtensions(): LackingExtension[] {
  return [...new Set([...Object.values(LACKING).flat(), ...PARTS])];
}

/** By the beginnings of types that lead to them. */
const BY_TYPE: ReadonlyMap<string, LackingExtension> = new Map(
  lackingExtensions().flatMap((each) =>
    (each.types.length === 0 ? typesOf(each.names[0]) : each.types).map((type) => [type, each] as const),
  ),
);

/** `extensions.filters.http.lua` and, as older configurations have it, `config.filter.http.lua`. */
function typesOf(name: string): string[] {
  return [`extensions.${name}`, `config.${name.replace(/^(filter|transport_socket)s\./, '$1.')}`];
}

/** @param typeUrl of its settings, in any spelling. */
export function findLacking(typeUrl: string): LackingExtension | undefined {
  let type = normalizeTypeName(typeUrl).replace(/^proxy\./, '');
  let found = BY_TYPE.get(type);
  while (found === undefined && type.includes('.')) {
    type = type.slice(0, type.lastIndexOf('.'));
    found = BY_TYPE.get(type);
  }
  return found;
}

export const IS_LACKING = 'is not supported by this build';

/** @param name that it is given where it stands. */
export function describeLacking({ names, instead }: LackingExtension, typeUrl: string, name = ''): string {
  const given = normalizeTypeName(name);
  const isNamed = names.some((each) => given === `proxy.${each}` || given.startsWith(`proxy.${each}.`));
  const type = envoySpelling(normalizeTypeName(typeUrl));
  const shown = name === '' ? quote(type) : quote(name) + (isNamed ? '' : ` (${type})`);
  return `${shown} ${IS_LACKING}${instead && `: ${instead}`}`;
}
