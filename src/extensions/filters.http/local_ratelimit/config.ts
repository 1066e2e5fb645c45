// LocalRateLimit message → settings of the local_ratelimit filter, and the same of routes.

import { utf8Bytes } from '../../../base/byte-text.ts';
import { systemMonotonicMs } from '../../../base/clock.ts';
import { keyedBucketState, MAX_KEYED_BUCKETS } from '../../../base/keyed-token-buckets.ts';
import {
  type Conversion,
  convertHeaderAdditions,
  convertRateLimits,
  convertTokenBucket,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  runtimeFractionOf,
  supported,
  valueOr,
} from '../../../config/index.ts';
import type {
  DescriptorSettings,
  LocalRateLimitCounters,
  LocalRateLimitSettings,
  OpenDescriptorSettings,
} from './settings.ts';

const LIMIT = 'proxy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit';
const DESCRIPTOR = 'proxy.extensions.common.ratelimit.v3.LocalRateLimitDescriptor';
const TOO_MANY_REQUESTS = 429;
const LEAST_ERROR = 400;
const DEFAULT_OPEN_BUCKETS = 20;

type LimitMessage = MessageTypes[typeof LIMIT];
type DescriptorMessage = MessageTypes[typeof DESCRIPTOR];

/** By the numbers of VhRateLimitsOptions. */
const HOST_LIMITS: readonly LocalRateLimitSettings['hostLimits'][] = ['override', 'include', 'ignore'];

export const LOCAL_RATE_LIMIT: HttpFilterManifest = {
  support: {
    [LIMIT]: {
      otherwise: rejected(),
      fields: {
        stat_prefix: supported(),
        status: supported('429 for those below 400'),
        token_bucket: supported('shared by all workers; filled at the end of each interval'),
        filter_enabled: supported(),
        filter_enforced: supported(),
        response_headers_to_add: supported('to refusals'),
        descriptors: supported(),
        stage: supported(),
        request_headers_to_add_when_not_enforced: supported(),
        local_rate_limit_per_downstream_connection: supported(),
        enable_x_ratelimit_headers: supported(),
        vh_rate_limits: supported(),
        always_consume_default_token_bucket: supported(),
        rate_limited_as_resource_exhausted: supported(),
        rate_limits: supported('in place of those of routes'),
        local_cluster_rate_limit: rejected('say the share of this process in token_bucket, or use ratelimit'),
        max_dynamic_descriptors: supported(`of each descriptor with an empty value; ${MAX_KEYED_BUCKETS} at most`),
      },
    },
    [DESCRIPTOR]: {
      otherwise: rejected(),
      fields: {
        entries: supported('all of them, in this order'),
        token_bucket: supported(),
        shadow_mode: supported('counted in rate_limited, and let through'),
      },
    },
    'proxy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry': {
      otherwise: rejected(),
      fields: { key: supported(), value: supported('empty for any, each with a bucket of its own') },
    },
    'proxy.type.v3.HttpStatus': { otherwise: rejected(), fields: { code: supported() } },
  },
  convert(message, at, conversion) {
    const settings = convertLimit(message as LimitMessage, at, conversion);
    return { name: 'filters.http.local_ratelimit', settings, wholeCounters: Object.values(settings.counters) };
  },
  ofRoutes: {
    type: LIMIT,
    convert(message, at, conversion) {
      const limit = message as LimitMessage;
      if (limit.token_bucket === null) conversion.faults.error(`${at}.token_bucket`, 'is required at routes');
      return convertLimit(limit, at, conversion);
    },
    wholeStats: (settings) => ({ wholeCounters: Object.values((settings as LocalRateLimitSettings).counters) }),
  },
};

function convertLimit(message: LimitMessage, at: string, conversion: Conversion): LocalRateLimitSettings {
  const edits = (name: 'response_headers_to_add' | 'request_headers_to_add_when_not_enforced') =>
    convertHeaderAdditions(message[name], `${at}.${name}`, conversion);
  const responseEdits = edits('response_headers_to_add');
  const requestEdits = edits('request_headers_to_add_when_not_enforced');
  const code = message.status?.code ?? TOO_MANY_REQUESTS;
  const descriptors = convertDescriptors(message, at, conversion);
  return {
    counters: countersOf(message.stat_prefix),
    status: code < LEAST_ERROR ? TOO_MANY_REQUESTS : code,
    bucket: message.token_bucket && convertTokenBucket(message.token_bucket, `${at}.token_bucket`, conversion.faults),
    descriptors: descriptors.filter((descriptor) => 'bucket' in descriptor),
    openDescriptors: descriptors.filter((descriptor) => 'buckets' in descriptor),
    enabled: runtimeFractionOf(message.filter_enabled),
    enforced: runtimeFractionOf(message.filter_enforced),
    stage: message.stage,
    rateLimits: convertRateLimits(message.rate_limits, `${at}.rate_limits`, conversion),
    hostLimits: HOST_LIMITS[message.vh_rate_limits] ?? 'override',
    alwaysTakesDefault: valueOr(message.always_consume_default_token_bucket, true),
    isPerConnection: message.local_rate_limit_per_downstream_connection,
    tellsLimits: message.enable_x_ratelimit_headers !== 0,
    isResourceExhausted: message.rate_limited_as_resource_exhausted,
    responseEdits: responseEdits === null ? [] : [responseEdits],
    requestEdits: requestEdits === null ? [] : [requestEdits],
  };
}

function countersOf(prefix: string): LocalRateLimitCounters {
  const scope = `${prefix}.http_local_rate_limit`;
  return {
    enabled: `${scope}.enabled`,
    enforced: `${scope}.enforced`,
    limited: `${scope}.rate_limited`,
    ok: `${scope}.ok`,
  };
}

function convertDescriptors(
  { descriptors, max_dynamic_descriptors: limit }: LimitMessage,
  at: string,
  conversion: Conversion,
): readonly (DescriptorSettings | OpenDescriptorSettings)[] {
  const maxKeys = valueOr(limit, DEFAULT_OPEN_BUCKETS);
  if (maxKeys > MAX_KEYED_BUCKETS) {
    conversion.faults.error(`${at}.max_dynamic_descriptors`, `${maxKeys} exceeds the limit ${MAX_KEYED_BUCKETS}`);
    return [];
  }
  return descriptors.map((descriptor, index) =>
    convertDescriptor(descriptor, maxKeys, `${at}.descriptors[${index}]`, conversion),
  );
}

function convertDescriptor(
  { entries: said, token_bucket, shadow_mode: isShadow }: DescriptorMessage,
  maxKeys: number,
  at: string,
  conversion: Conversion,
): DescriptorSettings | OpenDescriptorSettings {
  const entries = said.map(({ key, value }) => [utf8Bytes(key), utf8Bytes(value)] as const);
  const bucket = convertTokenBucket(token_bucket, `${at}.token_bucket`, conversion.faults);
  if (said.every(({ value }) => value !== '')) return { entries, isShadow, bucket };
  const state = keyedBucketState(maxKeys, systemMonotonicMs());
  return { entries, isShadow, buckets: { ...bucket, maxKeys, state } };
}
