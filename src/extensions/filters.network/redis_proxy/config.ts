// RedisProxy message → settings of the redis_proxy filter.

import {
  type Conversion,
  credentialOf,
  durationMsOr,
  type MessageTypes,
  type NetworkFilterManifest,
  only,
  rejected,
  runtimeFractionOf,
  supported,
} from '../../../config/index.ts';
import type {
  ReadPolicy,
  RedisAuth,
  RedisCounter,
  RedisFault,
  RedisGauge,
  RedisRoute,
  RedisSettings,
} from './settings.ts';

const REDIS_PROXY = 'proxy.extensions.filters.network.redis_proxy.v3.RedisProxy';
const POOL = `${REDIS_PROXY}.ConnPoolSettings` as const;
const ROUTES = `${REDIS_PROXY}.PrefixRoutes` as const;
const ROUTE = `${ROUTES}.Route` as const;
const READS = `${ROUTE}.ReadCommandPolicy` as const;
const FAULT = `${REDIS_PROXY}.RedisFault` as const;
const RATE_LIMIT = `${REDIS_PROXY}.ConnectionRateLimit` as const;
const MIRROR = `${ROUTE}.RequestMirrorPolicy` as const;
const COUNTERS: Readonly<Record<RedisCounter, true>> = {
  connection_rate_limited: true,
  downstream_cx_total: true,
  downstream_cx_protocol_error: true,
  downstream_cx_rx_bytes_total: true,
  downstream_cx_tx_bytes_total: true,
  downstream_rq_total: true,
  'splitter.invalid_request': true,
  'splitter.unsupported_command': true,
};
const GAUGES: Readonly<Record<RedisGauge, true>> = { downstream_cx_active: true, downstream_rq_active: true };
const REDIS_COUNTERS = Object.keys(COUNTERS) as RedisCounter[];
const REDIS_GAUGES = Object.keys(GAUGES) as RedisGauge[];
const DEFAULT_FLUSH_MS = 3;
const NEVER = { numerator: 0, denominator: 100 };
const FAULT_TYPES = { DELAY: 0, ERROR: 1 };

type Message = MessageTypes[typeof REDIS_PROXY];
type FaultMessage = MessageTypes[typeof FAULT];
type RouteMessage = MessageTypes[typeof ROUTE];

const MEMBERS_ONLY = 'redirections lead to members of the cluster, by address or configured name';
const CLUSTERS_ONLY = 'in clusters of the type redis, which know whose copies are where';
/** By the numbers of ReadPolicy. */
const READ_POLICIES: readonly ReadPolicy[] = ['primary', 'prefer-primary', 'replica', 'prefer-replica', 'any'];

export const REDIS_PROXY_MANIFEST: NetworkFilterManifest = {
  isTerminal: true,
  support: {
    [REDIS_PROXY]: {
      otherwise: rejected(),
      fields: {
        stat_prefix: supported(),
        cluster: supported('the older form of prefix_routes.catch_all_route'),
        settings: supported(),
        latency_in_micros: supported(),
        prefix_routes: supported(),
        downstream_auth_password: supported(),
        downstream_auth_passwords: supported(),
        downstream_auth_username: supported(),
        faults: supported(),
        external_auth_provider: rejected('use downstream_auth_passwords'),
        custom_commands: supported('each with one key, its first argument'),
      },
    },
    [POOL]: {
      otherwise: rejected(),
      fields: {
        op_timeout: supported(),
        enable_hashtagging: supported(),
        enable_redirection: supported(MEMBERS_ONLY),
        max_buffer_size_before_flush: supported(),
        buffer_flush_timeout: supported(),
        max_upstream_unknown_connections: supported(`has no effect: ${MEMBERS_ONLY}`),
        read_policy: only(['MASTER', 'PREFER_MASTER', 'REPLICA', 'PREFER_REPLICA', 'ANY'], CLUSTERS_ONLY),
        enable_command_stats: supported(),
        dns_cache_config: rejected(MEMBERS_ONLY),
        connection_rate_limit: supported('of each worker'),
      },
    },
    [ROUTES]: {
      otherwise: rejected(),
      fields: {
        routes: supported(),
        case_insensitive: supported(),
        catch_all_cluster: supported('the older form of catch_all_route'),
        catch_all_route: supported(),
      },
    },
    [ROUTE]: {
      otherwise: rejected(),
      fields: {
        prefix: supported(),
        remove_prefix: supported(),
        cluster: supported(),
        request_mirror_policy: supported(),
        key_formatter: rejected('keys go as they come, or without their prefix'),
        read_command_policy: supported(),
      },
    },
    [READS]: { otherwise: rejected(), fields: { cluster: supported() } },
    [RATE_LIMIT]: { otherwise: rejected(), fields: { connection_rate_limit_per_sec: supported() } },
    [FAULT]: {
      otherwise: rejected(),
      fields: { fault_type: supported(), fault_enabled: supported(), delay: supported(), commands: supported() },
    },
    [MIRROR]: {
      otherwise: rejected(),
      fields: { cluster: supported(), runtime_fraction: supported(), exclude_read_commands: supported() },
    },
  },
  convert(message, at, conversion) {
    const redis = message as Message;
    // Field rules have said so.
    if (redis.settings === null) return undefined;
    const { op_timeout, enable_hashtagging, max_buffer_size_before_flush, buffer_flush_timeout } = redis.settings;
    const settings: RedisSettings = {
      counters: REDIS_COUNTERS,
      gauges: REDIS_GAUGES,
      routes: convertRoutes(redis, at, conversion),
      ignoresCase: redis.prefix_routes?.case_insensitive ?? false,
      pool: {
        opTimeoutMs: durationMsOr(op_timeout, 0),
        usesHashTags: enable_hashtagging,
        flushBytes: max_buffer_size_before_flush,
        flushMs: durationMsOr(buffer_flush_timeout, DEFAULT_FLUSH_MS),
        followsRedirections: redis.settings.enable_redirection,
        readPolicy: READ_POLICIES[redis.settings.read_policy] ?? 'primary',
        maxConnectionsPerSecond: redis.settings.connection_rate_limit?.connection_rate_limit_per_sec ?? 0,
      },
      auth: convertAuth(redis, at, conversion),
      faults: redis.faults.map((fault, index) => convertFault(fault, `${at}.faults[${index}]`, conversion)),
      hasCommandStats: redis.settings.enable_command_stats,
      timesInMicros: redis.latency_in_micros,
      customCommands: redis.custom_commands.map((name) => name.toLowerCase()),
    };
    return {
      name: 'filters.network.redis_proxy',
      settings,
      statScope: `redis.${redis.stat_prefix}.`,
      counters: REDIS_COUNTERS,
      gauges: REDIS_GAUGES,
    };
  },
};

function convertRoutes({ cluster, prefix_routes }: Message, at: string, conversion: Conversion): RedisRoute[] {
  const { clusters, faults } = conversion;
  const routesAt = `${at}.prefix_routes`;
  const ignoresCase = prefix_routes?.case_insensitive ?? false;
  const seen = new Set<string>();
  const routes = (prefix_routes?.routes ?? []).map((route, index) => {
    const here = `${routesAt}.routes[${index}]`;
    const prefix = ignoresCase ? route.prefix.toLowerCase() : route.prefix;
    if (seen.has(prefix)) faults.error(`${here}.prefix`, `prefix "${route.prefix}" is there twice`);
    seen.add(prefix);
    return convertRoute({ ...route, prefix }, here, conversion);
  });
  const older = prefix_routes?.catch_all_cluster || cluster;
  const catchAll = prefix_routes?.catch_all_route ?? null;
  if (catchAll !== null) {
    if (catchAll.prefix !== '') faults.warning(`${routesAt}.catch_all_route.prefix`, 'ignored: it takes all keys');
    routes.push(
      convertRoute({ ...catchAll, prefix: '', remove_prefix: false }, `${routesAt}.catch_all_route`, conversion),
    );
  } else if (older) {
    clusters.checkReference(
      older,
      prefix_routes?.catch_all_cluster ? `${routesAt}.catch_all_cluster` : `${at}.cluster`,
      faults,
    );
    routes.push({ prefix: '', removesPrefix: false, cluster: older, readCluster: older, mirrors: [] });
  }
  if (routes.length === 0) faults.error(routesAt, 'needs routes or catch_all_route: no key goes anywhere');
  return routes.sort((a, b) => Buffer.byteLength(b.prefix) - Buffer.byteLength(a.prefix));
}

function convertRoute(route: RouteMessage, at: string, { clusters, faults }: Conversion): RedisRoute {
  clusters.checkReference(route.cluster, `${at}.cluster`, faults);
  const reads = route.read_command_policy?.cluster ?? '';
  clusters.checkReference(reads, `${at}.read_command_policy.cluster`, faults);
  return {
    prefix: route.prefix,
    removesPrefix: route.remove_prefix,
    cluster: route.cluster,
    readCluster: reads || route.cluster,
    mirrors: route.request_mirror_policy.map(({ cluster, runtime_fraction, exclude_read_commands }, index) => {
      clusters.checkReference(cluster, `${at}.request_mirror_policy[${index}].cluster`, faults);
      return { cluster, share: runtimeFractionOf(runtime_fraction), leavesReads: exclude_read_commands };
    }),
  };
}

function convertFault(
  { fault_type, fault_enabled, delay, commands }: FaultMessage,
  at: string,
  { faults }: Conversion,
): RedisFault {
  const isError = fault_type === FAULT_TYPES.ERROR;
  const delayMs = durationMsOr(delay, 0);
  if (!isError && delayMs === 0) faults.warning(`${at}.delay`, 'does nothing without a time');
  return {
    isError,
    delayMs,
    // Field rules have said so where it says nothing.
    share: runtimeFractionOf(fault_enabled) ?? { key: '', default: NEVER },
    commands: commands.map((name) => name.toLowerCase()),
  };
}

function convertAuth(message: Message, at: string, conversion: Conversion): RedisAuth | null {
  const { faults } = conversion;
  const { downstream_auth_password: one, downstream_auth_passwords: many, downstream_auth_username: user } = message;
  const sources = [
    ...(one === null ? [] : [{ source: one, at: `${at}.downstream_auth_password` }]),
    ...many.map((source, index) => ({ source, at: `${at}.downstream_auth_passwords[${index}]` })),
  ];
  const passwords = sources.flatMap(({ source, at: here }) => {
    const password = credentialOf(source, here, conversion);
    return password === '' ? [] : password;
  });
  if (passwords.length > 0) {
    const username = credentialOf(user, `${at}.downstream_auth_username`, conversion);
    return { username, passwords };
  }
  if (user !== null) faults.error(`${at}.downstream_auth_username`, 'needs downstream_auth_passwords');
  return null;
}
