// RouteAction message → ForwardAction: which cluster, how long, and what the upstream sees of host and path.

import type { ForwardAction, GrpcTimeoutSettings, HostRewrite, PathRewrite } from '../../snapshot/index.ts';
import { RouteAction_ClusterNotFoundResponseCode as NotFoundCode, RoutingPriority } from '../proto/generated/enums.ts';
import { criteriaOf } from './balancer-metadata.ts';
import type { Conversion } from './conversion.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertHashPolicies } from './hash-policy.ts';
import { convertInternalRedirects } from './internal-redirect.ts';
import type { RegexMatchAndSubstitute, RouteActionMessage } from './messages.ts';
import type { RouteResilience } from './resilience.ts';
import { convertSubstitution } from './string-match.ts';
import { durationMs, durationMsOr, valueOr } from './units.ts';
import { convertRouteUpgrades } from './upgrades.ts';
import { convertWeightedClusters } from './weighted-clusters.ts';

const DEFAULT_ROUTE_TIMEOUT_MS = 15_000;
const UNKNOWN_CLUSTER = { cluster: '', weightedClusters: null, clusterHeader: '' };

type ClusterChoice = Pick<ForwardAction, 'cluster' | 'weightedClusters' | 'clusterHeader'>;

/** @param validateClusters whether every cluster that is named must exist. */
export function convertForward(
  message: RouteActionMessage,
  at: string,
  validateClusters: boolean,
  resilience: RouteResilience,
  conversion: Conversion,
): ForwardAction | undefined {
  const choice = chooseCluster(message, at, validateClusters, conversion);
  if (choice === undefined) return undefined;
  const { faults } = conversion;
  return {
    kind: 'cluster',
    ...choice,
    criteria: criteriaOf(message.metadata_match),
    hashPolicies: convertHashPolicies(message.hash_policy, `${at}.hash_policy`, faults),
    isHighPriority: message.priority === RoutingPriority.HIGH,
    timeoutMs: durationMsOr(message.timeout, DEFAULT_ROUTE_TIMEOUT_MS),
    grpcTimeout: convertGrpcTimeout(message),
    idleTimeoutMs: message.idle_timeout === null ? null : durationMs(message.idle_timeout),
    maxStreamDurationMs: durationMsOr(message.max_stream_duration?.max_stream_duration ?? null, 0),
    replacesStreamDuration: (message.max_stream_duration?.max_stream_duration ?? null) !== null,
    grpcStreamDuration: convertGrpcStreamDuration(message),
    ...resilience,
    internalRedirects: convertInternalRedirects(message, at, faults),
    pathRewrite: convertPathRewrite(message, at, faults),
    hostRewrite: convertHostRewrite(message, at, faults),
    appendForwardedHost: message.append_x_forwarded_host,
    ...convertRouteUpgrades(message, at, faults),
    clusterNotFoundStatus: clusterNotFoundStatus(message.cluster_not_found_response_code),
  };
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
  validateClusters: boolean,
  conversion: Conversion,
): ClusterChoice | undefined {
  switch (message.cluster_specifier) {
    case 'cluster':
      if (validateClusters) conversion.clusters.checkReference(message.cluster, `${at}.cluster`, conversion.faults);
      return { ...UNKNOWN_CLUSTER, cluster: message.cluster };
    case 'cluster_header':
      return { ...UNKNOWN_CLUSTER, clusterHeader: message.cluster_header.toLowerCase() };
    case 'weighted_clusters': {
      const weighted = message.weighted_clusters;
      if (weighted === null) return undefined;
      const weightedClusters = convertWeightedClusters(
        weighted,
        `${at}.weighted_clusters`,
        validateClusters,
        message.metadata_match,
        conversion,
      );
      return { ...UNKNOWN_CLUSTER, weightedClusters };
    }
    default:
      return undefined;
  }
}

/** The two forms that routes and redirects share. */
export function convertPathRewrite(
  message: { readonly prefix_rewrite: string; readonly regex_rewrite: RegexMatchAndSubstitute | null },
  at: string,
  faults: FaultSink,
): PathRewrite | null {
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

function convertHostRewrite(message: RouteActionMessage, at: string, faults: FaultSink): HostRewrite | null {
  const literal = message.host_rewrite_literal || plainHost(message, at, faults);
  if (literal !== '') return { kind: 'literal', value: literal };
  if (message.host_rewrite_header !== '') return { kind: 'header', name: message.host_rewrite_header.toLowerCase() };
  if (valueOr(message.auto_host_rewrite, false)) return { kind: 'auto' };
  if (message.host_rewrite_path_regex === null) return null;
  const substitution = convertSubstitution(message.host_rewrite_path_regex, `${at}.host_rewrite_path_regex`, faults);
  return substitution === undefined ? null : { kind: 'path-regex', ...substitution };
}

/** The newest v3 form may hold command operators; a text without any is a plain host. */
function plainHost(message: RouteActionMessage, at: string, faults: FaultSink): string {
  if (message.host_rewrite.includes('%')) {
    faults.error(`${at}.host_rewrite`, 'host_rewrite with command operators is not supported by this build');
  }
  return message.host_rewrite;
}

function clusterNotFoundStatus(code: number): ForwardAction['clusterNotFoundStatus'] {
  if (code === NotFoundCode.NOT_FOUND) return 404;
  return code === NotFoundCode.INTERNAL_SERVER_ERROR ? 500 : 503;
}
