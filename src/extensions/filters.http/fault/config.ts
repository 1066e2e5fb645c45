// HTTPFault message → settings of the fault filter, and the same of routes.

import {
  type Conversion,
  convertHeaderMatchers,
  durationMsOr,
  fractionOf,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  structToJson,
  supported,
  supportedWhole,
  toNumber,
  valueOr,
} from '../../../config/index.ts';
import type { Fraction } from '../../../snapshot/index.ts';
import type {
  AbortSettings,
  DelaySettings,
  FaultFilterSettings,
  FaultSettings,
  FaultStatNames,
  RateLimitSettings,
} from './settings.ts';

type HttpFaultMessage = MessageTypes['proxy.extensions.filters.http.fault.v3.HTTPFault'];
type FaultAbortMessage = MessageTypes['proxy.extensions.filters.http.fault.v3.FaultAbort'];
type FaultDelayMessage = MessageTypes['proxy.extensions.filters.common.fault.v3.FaultDelay'];
type FaultRateLimitMessage = MessageTypes['proxy.extensions.filters.common.fault.v3.FaultRateLimit'];
type FractionalPercentMessage = MessageTypes['proxy.type.v3.FractionalPercent'];

const FAULT = 'proxy.extensions.filters.http.fault.v3.HTTPFault';
const COMMON = 'proxy.extensions.filters.common.fault.v3';
const KIB = 1024;

const STATS: FaultStatNames = {
  delays: 'fault.delays_injected',
  aborts: 'fault.aborts_injected',
  slowed: 'fault.response_rl_injected',
  overflow: 'fault.faults_overflow',
  active: 'fault.active_faults',
};
/** One for all filters of a chain, as the gauge is. */
const ACTIVE_COUNT = 'requests with a fault';

const KEYS = {
  delayPercent: 'fault.http.delay.fixed_delay_percent',
  abortPercent: 'fault.http.abort.abort_percent',
  delayMs: 'fault.http.delay.fixed_duration_ms',
  httpStatus: 'fault.http.abort.http_status',
  grpcStatus: 'fault.http.abort.grpc_status',
  maxActive: 'fault.http.max_active_faults',
  ratePercent: 'fault.http.rate_limit.response_percent',
} as const;

export const FAULT_MANIFEST: HttpFilterManifest = {
  support: {
    [FAULT]: {
      otherwise: rejected(),
      fields: {
        delay: supported(),
        abort: supported(),
        upstream_cluster: supported('not where the cluster is one of weighted_clusters or named by a header'),
        headers: supported(),
        downstream_nodes: supported(),
        max_active_faults: supported('over all workers'),
        response_rate_limit: supported(),
        delay_percent_runtime: supported(),
        abort_percent_runtime: supported(),
        delay_duration_runtime: supported(),
        abort_http_status_runtime: supported(),
        max_active_faults_runtime: supported(),
        response_rate_limit_percent_runtime: supported(),
        abort_grpc_status_runtime: supported(),
        disable_downstream_cluster_stats: supported(
          'those stats are of 1,000 clusters at most, which each worker chooses for itself',
        ),
        filter_metadata: supportedWhole(),
      },
    },
    'proxy.extensions.filters.http.fault.v3.FaultAbort': {
      otherwise: rejected(),
      fields: {
        percent: supported(),
        http_status: supported(),
        header_abort: supported(),
        grpc_status: supported(),
        percentage: supported(),
      },
    },
    [`${COMMON}.FaultDelay`]: {
      otherwise: rejected(),
      fields: {
        type: supported(),
        percent: supported(),
        fixed_delay: supported(),
        header_delay: supported(),
        percentage: supported(),
      },
    },
    [`${COMMON}.FaultRateLimit`]: {
      otherwise: rejected(),
      fields: { fixed_limit: supported(), header_limit: supported(), percentage: supported() },
    },
    [`${COMMON}.FaultRateLimit.FixedLimit`]: { otherwise: rejected(), fields: { limit_kbps: supported() } },
    'proxy.extensions.filters.http.fault.v3.FaultAbort.HeaderAbort': { otherwise: rejected(), fields: {} },
    [`${COMMON}.FaultDelay.HeaderDelay`]: { otherwise: rejected(), fields: {} },
    [`${COMMON}.FaultRateLimit.HeaderLimit`]: { otherwise: rejected(), fields: {} },
  },
  convert: (message, at, conversion) => {
    const fault = convertFault(message as HttpFaultMessage, at, conversion);
    const settings: FaultFilterSettings = { stats: STATS, activeCount: ACTIVE_COUNT, fault };
    const { active, ...counters } = STATS;
    return {
      name: 'filters.http.fault',
      settings,
      counters: Object.values(counters),
      gauges: [active],
      sharedCounts: [ACTIVE_COUNT],
    };
  },
  ofRoutes: {
    type: FAULT,
    convert: (message, at, conversion) => convertFault(message as HttpFaultMessage, at, conversion),
  },
};

function convertFault(fault: HttpFaultMessage, at: string, conversion: Conversion): FaultSettings {
  const { upstream_cluster: upstreamCluster, filter_metadata: metadata } = fault;
  return {
    delay: fault.delay && delayOf(fault.delay, fault),
    abort: fault.abort && abortOf(fault.abort, fault),
    rateLimit: fault.response_rate_limit && rateLimitOf(fault.response_rate_limit, fault),
    upstreamCluster,
    headers: convertHeaderMatchers(fault.headers, `${at}.headers`, conversion.faults),
    nodes: fault.downstream_nodes,
    maxActive: {
      key: fault.max_active_faults_runtime || KEYS.maxActive,
      default: valueOr(fault.max_active_faults, Number.POSITIVE_INFINITY),
    },
    countsByClient: !fault.disable_downstream_cluster_stats,
    metadata: metadata && structToJson(metadata),
  };
}

function delayOf(message: FaultDelayMessage, fault: HttpFaultMessage): DelaySettings {
  const isFixed = message.fault_delay_secifier === 'fixed_delay';
  const key = fault.delay_duration_runtime || KEYS.delayMs;
  return {
    share: { key: fault.delay_percent_runtime || KEYS.delayPercent, default: shareOf(message) },
    fixedMs: isFixed ? { key, default: durationMsOr(message.fixed_delay, 0) } : null,
  };
}

function abortOf(message: FaultAbortMessage, fault: HttpFaultMessage): AbortSettings {
  const share = { key: fault.abort_percent_runtime || KEYS.abortPercent, default: shareOf(message) };
  switch (message.error_type) {
    case 'http_status': {
      const key = fault.abort_http_status_runtime || KEYS.httpStatus;
      return { share, status: { kind: 'http', code: { key, default: message.http_status } } };
    }
    case 'grpc_status': {
      const key = fault.abort_grpc_status_runtime || KEYS.grpcStatus;
      return { share, status: { kind: 'grpc', code: { key, default: message.grpc_status } } };
    }
    default:
      return { share, status: null };
  }
}

function rateLimitOf(message: FaultRateLimitMessage, fault: HttpFaultMessage): RateLimitSettings {
  const key = fault.response_rate_limit_percent_runtime || KEYS.ratePercent;
  return {
    share: { key, default: shareOf({ percentage: message.percentage, percent: 0 }) },
    bytesPerSecond: message.fixed_limit === null ? null : toNumber(message.fixed_limit.limit_kbps) * KIB,
  };
}

/** The older form, a whole number, counts where there is no newer one. */
function shareOf({
  percentage,
  percent,
}: {
  readonly percentage: FractionalPercentMessage | null;
  readonly percent: number;
}): Fraction {
  return percentage === null ? { numerator: percent, denominator: 100 } : fractionOf(percentage);
}
