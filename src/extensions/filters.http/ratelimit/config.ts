// RateLimit and RateLimitPerRoute messages → settings of the ratelimit filter.

import {
  type Conversion,
  convertHeaderAdditions,
  convertRateLimits,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  runtimeFractionOf,
  supported,
} from '../../../config/index.ts';
import type { Fraction, RateLimitSettings, RuntimeSetting } from '../../../snapshot/index.ts';
import { convertRateLimitService } from '../../rate-limit-service-config.ts';
import type { HostLimits, RateLimitFilterSettings, RateLimitStatNames, RouteLimitSettings } from './settings.ts';

const LIMIT = 'proxy.extensions.filters.http.ratelimit.v3.RateLimit';
const PER_ROUTE = 'proxy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute';

type LimitMessage = MessageTypes[typeof LIMIT];
type PerRouteMessage = MessageTypes[typeof PER_ROUTE];
type LimitMessages = MessageTypes['proxy.config.route.v3.RateLimit'][];
type FractionMessage = LimitMessage['filter_enabled'];

const TOO_MANY_REQUESTS = 429;
const INTERNAL_ERROR = 500;
const LEAST_ERROR = 400;

/** By the numbers of VhRateLimitsOptions, and of OverrideOptions less its DEFAULT. */
const HOST_LIMITS: readonly HostLimits[] = ['override', 'include', 'ignore'];

export const RATE_LIMIT: HttpFilterManifest = {
  support: {
    [LIMIT]: {
      otherwise: rejected(),
      fields: {
        domain: supported(),
        stage: supported(),
        request_type: supported('by x-envoy-internal'),
        timeout: supported(),
        failure_mode_deny: supported(),
        rate_limited_as_resource_exhausted: supported(),
        rate_limit_service: supported(),
        enable_x_ratelimit_headers: supported(),
        disable_x_envoy_ratelimited_header: supported(),
        rate_limited_status: supported('429 for those below 400'),
        response_headers_to_add: supported('to refusals'),
        status_on_error: supported('500 for those below 400'),
        stat_prefix: supported(),
        filter_enabled: supported(),
        filter_enforced: supported(),
        failure_mode_deny_percent: supported(),
        rate_limits: supported('in place of those of routes'),
      },
    },
    [PER_ROUTE]: {
      otherwise: rejected(),
      fields: {
        vh_rate_limits: supported(),
        override_option: supported('counts more than vh_rate_limits'),
        rate_limits: supported('in place of those of the filter and of routes'),
        domain: supported(),
      },
    },
    'proxy.type.v3.HttpStatus': { otherwise: rejected(), fields: { code: supported() } },
  },
  convert(message, at, conversion) {
    const filter = message as LimitMessage;
    const service = convertRateLimitService(filter, at, conversion);
    if (service === undefined) return undefined;
    const edits = convertHeaderAdditions(filter.response_headers_to_add, `${at}.response_headers_to_add`, conversion);
    const settings: RateLimitFilterSettings = {
      stats: statNames(filter.stat_prefix),
      service,
      domain: filter.domain,
      stage: filter.stage,
      requests: (filter.request_type || 'both') as RateLimitFilterSettings['requests'],
      enabled: shareOr(filter.filter_enabled, all('ratelimit.http_filter_enabled')),
      enforced: shareOr(filter.filter_enforced, all('ratelimit.http_filter_enforcing')),
      deniesFailure: shareOr(filter.failure_mode_deny_percent, filter.failure_mode_deny ? all('') : NONE),
      status: errorOr(filter.rate_limited_status, TOO_MANY_REQUESTS),
      statusOnError: errorOr(filter.status_on_error, INTERNAL_ERROR),
      isResourceExhausted: filter.rate_limited_as_resource_exhausted,
      tellsLimits: filter.enable_x_ratelimit_headers !== 0,
      marksRefusals: !filter.disable_x_envoy_ratelimited_header,
      responseEdits: edits === null ? [] : [edits],
      rateLimits: ownLimits(filter.rate_limits, `${at}.rate_limits`, conversion),
    };
    return { name: 'filters.http.ratelimit', settings };
  },
  ofRoutes: {
    type: PER_ROUTE,
    convert(message, at, conversion) {
      const said = message as PerRouteMessage;
      const settings: RouteLimitSettings = {
        hostLimits: HOST_LIMITS[said.override_option === 0 ? said.vh_rate_limits : said.override_option - 1]!,
        rateLimits: ownLimits(said.rate_limits, `${at}.rate_limits`, conversion),
        domain: said.domain,
      };
      return settings;
    },
  },
};

/** In the scope of a cluster. */
function statNames(prefix: string): RateLimitStatNames {
  const scope = prefix === '' ? 'ratelimit' : `ratelimit.${prefix}`;
  return {
    ok: `${scope}.ok`,
    overLimit: `${scope}.over_limit`,
    error: `${scope}.error`,
    failureModeAllowed: `${scope}.failure_mode_allowed`,
  };
}

const NONE: RuntimeSetting<Fraction> = { key: '', default: { numerator: 0, denominator: 100 } };

function all(key: string): RuntimeSetting<Fraction> {
  return { key, default: { numerator: 100, denominator: 100 } };
}

function shareOr(message: FractionMessage, otherwise: RuntimeSetting<Fraction>): RuntimeSetting<Fraction> {
  return runtimeFractionOf(message) ?? otherwise;
}

function errorOr(status: { readonly code: number } | null, byDefault: number): number {
  return status === null || status.code < LEAST_ERROR ? byDefault : status.code;
}

/** Limits at the filter are all of its stage, and are on where it is. */
function ownLimits(messages: LimitMessages, at: string, conversion: Conversion): readonly RateLimitSettings[] {
  for (const [index, { stage, disable_key: key }] of messages.entries()) {
    const only = 'is for limits of routes and virtual hosts';
    if (stage !== null) conversion.faults.error(`${at}[${index}].stage`, only);
    if (key !== '') conversion.faults.error(`${at}[${index}].disable_key`, only);
  }
  return convertRateLimits(messages, at, conversion);
}
