// BandwidthLimit message → settings of the bandwidth_limit filter, and the same of routes.

import { systemMonotonicMs } from '../../../base/clock.ts';
import { bucketState, MAX_TOKENS } from '../../../base/token-bucket.ts';
import {
  type Conversion,
  durationMsOr,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  runtimeFlagOf,
  supported,
  toNumber,
} from '../../../config/index.ts';
import type { WholeStats } from '../../../snapshot/index.ts';
import type { BandwidthLimitSettings, BandwidthStatNames, BandwidthTrailers, ByteBucketSettings } from './settings.ts';

const LIMIT = 'proxy.extensions.filters.http.bandwidth_limit.v3.BandwidthLimit';
const KIB = 1024;
/** A second's bytes are the most that a bucket holds. */
const MAX_KIB_PER_SECOND = Math.floor(MAX_TOKENS / KIB);
const DEFAULT_FILL_MS = 50;
const SECOND_MS = 1000;
/** Bits of EnableMode. */
const MODE = { request: 1, response: 2 } as const;

type LimitMessage = MessageTypes[typeof LIMIT];

export const BANDWIDTH_LIMIT: HttpFilterManifest = {
  support: {
    [LIMIT]: {
      otherwise: rejected(),
      fields: {
        stat_prefix: supported(),
        enable_mode: supported('one rate for requests and responses together'),
        limit_kbps: supported(`KiB a second over all workers, ${MAX_KIB_PER_SECOND} at most`),
        fill_interval: supported(),
        runtime_enabled: supported(),
        enable_response_trailers: supported(),
        response_trailer_prefix: supported(),
        named_bucket_selector: rejected('each configuration has a bucket of its own'),
        named_bucket_configurations: rejected('each configuration has a bucket of its own'),
      },
    },
  },
  convert(message, at, conversion) {
    const settings = convertLimit(message as LimitMessage, at, conversion);
    return { name: 'filters.http.bandwidth_limit', settings, ...statsOf(settings) };
  },
  ofRoutes: {
    type: LIMIT,
    convert(message, at, conversion) {
      const limit = message as LimitMessage;
      if (limit.limit_kbps === null) conversion.faults.error(`${at}.limit_kbps`, 'is required at routes');
      return convertLimit(limit, at, conversion);
    },
    wholeStats: (settings) => statsOf(settings as BandwidthLimitSettings),
  },
};

function convertLimit(message: LimitMessage, at: string, { faults }: Conversion): BandwidthLimitSettings {
  const { enable_mode: mode, limit_kbps, fill_interval, stat_prefix, runtime_enabled } = message;
  const kibPerSecond = limit_kbps === null ? null : toNumber(limit_kbps.value);
  if (kibPerSecond === null && mode !== 0) {
    faults.error(`${at}.limit_kbps`, 'is required where enable_mode is not DISABLED');
  }
  if (kibPerSecond !== null && kibPerSecond > MAX_KIB_PER_SECOND) {
    faults.error(`${at}.limit_kbps`, `${kibPerSecond} exceeds the limit ${MAX_KIB_PER_SECOND}`);
  }
  const scope = `${stat_prefix}.http_bandwidth_limit`;
  return {
    request: statNames(`${scope}.request`),
    response: statNames(`${scope}.response`),
    limitsRequests: (mode & MODE.request) !== 0,
    limitsResponses: (mode & MODE.response) !== 0,
    bucket: kibPerSecond === null ? null : bucketOf(kibPerSecond, durationMsOr(fill_interval, DEFAULT_FILL_MS)),
    enabled: runtimeFlagOf(runtime_enabled, true),
    trailers: message.enable_response_trailers ? trailersOf(message.response_trailer_prefix) : null,
  };
}

/** It begins with what one fill brings, so that nothing is sent faster than later on. */
function bucketOf(kibPerSecond: number, fillIntervalMs: number): ByteBucketSettings {
  const maxTokens = kibPerSecond * KIB;
  const tokensPerFill = (maxTokens * fillIntervalMs) / SECOND_MS;
  const state = bucketState(Math.ceil(tokensPerFill), systemMonotonicMs());
  return {
    tokens: { maxTokens, tokensPerFill, fillIntervalMs, state },
    waiting: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
  };
}

function statNames(prefix: string): BandwidthStatNames {
  return {
    enabled: `${prefix}_enabled`,
    enforced: `${prefix}_enforced`,
    incomingTotal: `${prefix}_incoming_total_size`,
    allowedTotal: `${prefix}_allowed_total_size`,
    pending: `${prefix}_pending`,
    incoming: `${prefix}_incoming_size`,
    allowed: `${prefix}_allowed_size`,
    duration: `${prefix}_transfer_duration`,
  };
}

function statsOf({ request, response }: BandwidthLimitSettings): WholeStats {
  const names = [request, response];
  return {
    wholeCounters: names.flatMap((of) => [of.enabled, of.enforced, of.incomingTotal, of.allowedTotal]),
    wholeGauges: names.flatMap((of) => [of.pending, of.incoming, of.allowed]),
    wholeTimes: names.map((of) => of.duration),
  };
}

function trailersOf(prefix: string): BandwidthTrailers {
  const start = prefix === '' ? '' : `${prefix.toLowerCase()}-`;
  return {
    requestMs: `${start}bandwidth-request-delay-ms`,
    responseMs: `${start}bandwidth-response-delay-ms`,
    requestHeldMs: `${start}bandwidth-request-filter-delay-ms`,
    responseHeldMs: `${start}bandwidth-response-filter-delay-ms`,
  };
}
