// RouteAction message → ForwardAction: which cluster, how long, and what the upstream sees of host and path.

import type {
  FormatSegments,
  ForwardAction,
  GrpcTimeoutSettings,
  HostRewrite,
  PathRewrite,
} from '../../snapshot/index.ts';
import { RouteAction_ClusterNotFoundResponseCode as NotFoundCode, RoutingPriority } from '../proto/generated/enums.ts';
import { criteriaOf } from './balancer-metadata.ts';
import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import { parseFormat } from './format/format-string.ts';
import { convertHashPolicies } from './hash-policy.ts';
import { convertInternalRedirects } from './internal-redirect.ts';
import type { RegexMatchAndSubstitute, RouteActionMessage, RouteMatch, UriTemplateRewrite } from './messages.ts';
import { convertTemplateRewrite } from './path-template.ts';
import type { RouteResilience } from './resilience.ts';
import { convertMatchTemplate } from './route-match.ts';
import { convertSubstitution } from './string-match.ts';
import { durationMs, durationMsOr, valueOr } from './units.ts';
import { convertRouteUpgrades } from './upgrades.ts';
import { type AroundClusters, convertWeightedClusters } from './weighted-clusters.ts';

const DEFAULT_ROUTE_TIMEOUT_MS = 15_000;
const TEMPLATE_REWRITE = 'proxy.extensions.path.rewrite.uri_template.v3.UriTemplateRewriteConfig';
const NO_FAULTS: FaultSink = { error() {}, warning() {} };
const UNKNOWN_CLUSTER = { cluster: '', weightedClusters: null, clusterHeader: '' };

type ClusterChoice = Pick<ForwardAction, 'cluster' | 'weightedClusters' | 'clusterHeader'>;

/**
 * @param at path of the route. @param around what its clusters add to.
 * @returns undefined when it names no cluster in a way that this build knows; a fault exists for it.
 */
export function convertForward(
  message: RouteActionMessage,
  match: RouteMatch | null,
  routeAt: string,
  around: Pick<AroundClusters, 'validateClusters' | 'filters'>,
  resilience: RouteResilience,
  conversion: Conversion,
): ForwardAction | undefined {
  const at = `${routeAt}.route`;
  const choice = chooseCluster(message, at, around, conversion);
  if (choice === undefined) return undefined;
  const { faults } = conversion;
  return {
    kind: 'cluster',
    ...choice,
    criteria: criteriaOf(message.metadata_match),
    hashPolicies: convertHashPolicies(message.hash_policy, `${at}.hash_policy`, faults),
    isHighPriority: message.priority === RoutingPriority.HIGH,
    ...convertResponseTimes(message, at, faults),
    idleTimeoutMs: message.idle_timeout === null ? null : durationMs(message.idle_timeout),
    flushTimeoutMs: message.flush_timeout === null ? null : durationMs(message.flush_timeout),
    maxStreamDurationMs: durationMsOr(message.max_stream_duration?.max_stream_duration ?? null, 0),
    replacesStreamDuration: (message.max_stream_duration?.max_stream_duration ?? null) !== null,
    limitsStreamDuration: message.max_stream_duration !== null,
    grpcStreamDuration: convertGrpcStreamDuration(message),
    ...resilience,
    internalRedirects: convertInternalRedirects(message, at, faults),
    pathRewrite: convertAnyPathRewrite(message, match, at, routeAt, conversion),
    hostRewrite: convertHostRewrite(message, at, conversion),
    appendForwardedHost: message.append_x_forwarded_host,
    ...convertRouteUpgrades(message, at, faults),
    clusterNotFoundStatus: clusterNotFoundStatus(message.cluster_not_found_response_code),
  };
}

/** Limits of the response alone. Where a route limits whole streams there are none, not even the usual one. */
function convertResponseTimes(
  message: RouteActionMessage,
  at: string,
  faults: FaultSink,
): Pick<ForwardAction, 'timeoutMs' | 'grpcTimeout'> {
  if (message.max_stream_duration === null) {
    const timeoutMs = durationMsOr(message.timeout, DEFAULT_ROUTE_TIMEOUT_MS);
    return { timeoutMs, grpcTimeout: convertGrpcTimeout(message) };
  }
  for (const field of ['timeout', 'max_grpc_timeout'] as const) {
    const isSet = durationMsOr(message[field], 0) > 0;
    if (isSet) faults.warning(`${at}.${field}`, 'has no effect: max_stream_duration takes its place');
  }
  return { timeoutMs: 0, grpcTimeout: null };
}

function convertGrpcTimeout(message: RouteActionMessage): GrpcTimeoutSettings | null {
  if (message.max_grpc_timeout === null) return null;
  return { maxMs: durationMs(message.max_grpc_timeout), offsetMs: durationMsOr(message.grpc_timeout_offset, 0) };
}

function convertGrpcStreamDuration({ max_stream_duration: limits }: RouteActionMessage): GrpcTimeoutSettings | null {
  const max = limits?.grpc_timeout_header_max ?? null;
  if (max === null) return null;
  return { maxMs: durationMs(max), offsetMs: durationMsOr(limits?.grpc_timeout_header_offset ?? null, 0) };
}

function chooseCluster(
  message: RouteActionMessage,
  at: string,
  around: Pick<AroundClusters, 'validateClusters' | 'filters'>,
  conversion: Conversion,
): ClusterChoice | undefined {
  switch (message.cluster_specifier) {
    case 'cluster':
      if (around.validateClusters)
        conversion.clusters.checkPresence(message.cluster, `${at}.cluster`, conversion.faults);
      return { ...UNKNOWN_CLUSTER, cluster: message.cluster };
    case 'cluster_header':
      return { ...UNKNOWN_CLUSTER, clusterHeader: message.cluster_header.toLowerCase() };
    case 'weighted_clusters': {
      const weighted = message.weighted_clusters;
      if (weighted === null) return undefined;
      const route = { ...around, metadata: message.metadata_match, hasHashPolicy: message.hash_policy.length > 0 };
      const weightedClusters = convertWeightedClusters(weighted, `${at}.weighted_clusters`, route, conversion);
      return { ...UNKNOWN_CLUSTER, weightedClusters };
    }
    default:
      return undefined;
  }
}

const PATH_REWRITES = ['prefix_rewrite', 'regex_rewrite', 'path_rewrite_policy', 'path_rewrite'] as const;

function convertAnyPathRewrite(
  message: RouteActionMessage,
  match: RouteMatch | null,
  at: string,
  routeAt: string,
  conversion: Conversion,
): PathRewrite | null {
  const { faults } = conversion;
  const given = PATH_REWRITES.filter((field) => message[field] !== null && message[field] !== '');
  if (given.length > 1 && given[1] !== 'regex_rewrite') {
    faults.error(`${at}.${given[1]}`, `cannot be given together with ${given[0]}`);
  }
  if (message.path_rewrite !== '') {
    const segments = formatOf(message.path_rewrite, `${at}.path_rewrite`, conversion);
    return segments && { kind: 'format', segments };
  }
  if (message.path_rewrite_policy !== null) {
    return convertTemplatePolicy(message.path_rewrite_policy, match, at, routeAt, faults);
  }
  return convertPathRewrite(message, at, faults);
}

function convertTemplatePolicy(
  policy: NonNullable<RouteActionMessage['path_rewrite_policy']>,
  match: RouteMatch | null,
  at: string,
  routeAt: string,
  faults: FaultSink,
): PathRewrite | null {
  const opened = openExtension(policy.typed_config);
  if (opened?.typeName !== TEMPLATE_REWRITE) return null;
  if (match !== null && match.path_specifier !== 'path_match_policy') {
    faults.error(`${at}.path_rewrite_policy`, 'needs a path_match_policy, which names what it is made of');
    return null;
  }
  // What is wrong with the template has been reported where it stands.
  const template =
    match === null
      ? undefined
      : convertMatchTemplate(match.path_match_policy, `${routeAt}.match.path_match_policy`, NO_FAULTS);
  if (template === undefined) return null;
  const { path_template_rewrite: rewrite } = opened.message as UriTemplateRewrite;
  const here = `${at}.path_rewrite_policy.typed_config.path_template_rewrite`;
  const substitution = convertTemplateRewrite(rewrite, template, here, faults);
  return substitution === undefined ? null : { kind: 'regex', ...substitution };
}

/** @returns null for a format with a fault. */
function formatOf(text: string, at: string, { faults, environment }: Conversion): FormatSegments | null {
  const format = parseFormat(Buffer.from(text).toString('latin1'), environment);
  if (format.error === undefined) return format.segments;
  faults.error(at, format.error);
  return null;
}

/** The two forms that routes and redirects share. */
export function convertPathRewrite(
  message: { readonly prefix_rewrite: string; readonly regex_rewrite: RegexMatchAndSubstitute | null },
  at: string,
  faults: FaultSink,
): Exclude<PathRewrite, { kind: 'format' }> | null {
  if (message.prefix_rewrite !== '') {
    if (message.regex_rewrite !== null) {
      faults.error(`${at}.regex_rewrite`, 'cannot be given together with prefix_rewrite');
    }
    return { kind: 'prefix', value: message.prefix_rewrite };
  }
  if (message.regex_rewrite === null) return null;
  const substitution = convertSubstitution(message.regex_rewrite, `${at}.regex_rewrite`, faults);
  return substitution === undefined ? null : { kind: 'regex', ...substitution };
}

function convertHostRewrite(message: RouteActionMessage, at: string, conversion: Conversion): HostRewrite | null {
  const { faults } = conversion;
  if (message.host_rewrite_literal !== '') return { kind: 'literal', value: message.host_rewrite_literal };
  if (message.host_rewrite !== '') return convertHostFormat(message.host_rewrite, `${at}.host_rewrite`, conversion);
  if (message.host_rewrite_header !== '') return { kind: 'header', name: message.host_rewrite_header.toLowerCase() };
  if (valueOr(message.auto_host_rewrite, false)) return { kind: 'auto' };
  if (message.host_rewrite_path_regex === null) return null;
  const substitution = convertSubstitution(message.host_rewrite_path_regex, `${at}.host_rewrite_path_regex`, faults);
  return substitution === undefined ? null : { kind: 'path-regex', ...substitution };
}

/** The newest v3 form may hold command operators; a text without any is a plain host. */
function convertHostFormat(text: string, at: string, conversion: Conversion): HostRewrite | null {
  if (!text.includes('%')) return { kind: 'literal', value: text };
  const segments = formatOf(text, at, conversion);
  return segments && { kind: 'format', segments };
}

function clusterNotFoundStatus(code: number): ForwardAction['clusterNotFoundStatus'] {
  if (code === NotFoundCode.NOT_FOUND) return 404;
  return code === NotFoundCode.INTERNAL_SERVER_ERROR ? 500 : 503;
}
