// CacheConfig messages → settings of the cache filter.

import {
  type Conversion,
  convertQueryMatchers,
  convertStringMatcher,
  extensions,
  type HttpFilterManifest,
  type MessageTypes,
  openExtension,
  rejected,
  supported,
  valueOr,
} from '../../../config/index.ts';
import type { CacheCounters, CacheKeySettings, CacheSettings } from './settings.ts';

const PACKAGE = 'proxy.extensions.filters.http.cache.v3';
const CONFIG = `${PACKAGE}.CacheConfig`;
const KEY = `${PACKAGE}.CacheConfig.KeyCreatorParams`;
const SIMPLE = 'proxy.extensions.http.cache.simple_http_cache.v3.SimpleHttpCacheConfig';

type ConfigMessage = MessageTypes[typeof CONFIG];

const COUNTERS: CacheCounters = {
  hit: 'cache.hit',
  validated: 'cache.validated',
  staleWhileRevalidating: 'cache.stale_while_revalidate',
  staleIfError: 'cache.stale_if_error',
  failedValidation: 'cache.failed_validation',
  miss: 'cache.miss',
  uncacheable: 'cache.uncacheable',
  inserted: 'cache.inserted',
  evicted: 'cache.evicted',
  invalidated: 'cache.invalidated',
};

/** Of one response; more would leave no room for others. */
const MOST_BODY_BYTES = 4 * 1024 * 1024;

export const CACHE: HttpFilterManifest = {
  support: {
    [CONFIG]: {
      otherwise: rejected(),
      fields: {
        typed_config: { ...extensions([SIMPLE]), isOptional: true, note: '32 MiB and 10,000 responses a worker' },
        allowed_vary_headers: supported(),
        key_creator_params: supported(),
        max_body_bytes: supported('4 MiB at most'),
        disabled: supported(),
        ignore_request_cache_control_header: supported(),
        override_upstream_cluster: rejected('requests go where their routes say'),
      },
    },
    [KEY]: {
      otherwise: rejected(),
      fields: {
        exclude_scheme: supported(),
        exclude_host: supported(),
        query_parameters_included: supported(),
        query_parameters_excluded: supported(),
      },
    },
    [SIMPLE]: { otherwise: rejected(), fields: {} },
  },
  convert(message, at, conversion) {
    const config = message as ConfigMessage;
    const isDisabled = valueOr(config.disabled, false);
    if (!isDisabled && config.typed_config === null) {
      conversion.faults.error(`${at}.typed_config`, 'is required');
      return undefined;
    }
    // What it is that has been refused the support table has said.
    if (!isDisabled && openExtension(config.typed_config)?.typeName !== SIMPLE) return undefined;
    const vary = config.allowed_vary_headers.map((matcher, index) =>
      convertStringMatcher(matcher, `${at}.allowed_vary_headers[${index}]`, conversion.faults),
    );
    const settings: CacheSettings = {
      counters: COUNTERS,
      key: convertKey(config.key_creator_params, `${at}.key_creator_params`, conversion),
      allowedVary: vary.filter((matcher) => matcher !== undefined),
      maxBodyBytes: config.max_body_bytes === 0 ? MOST_BODY_BYTES : Math.min(config.max_body_bytes, MOST_BODY_BYTES),
      ignoresRequestDirectives: config.ignore_request_cache_control_header,
    };
    return {
      name: 'filters.http.cache',
      settings,
      counters: Object.values(COUNTERS),
      ...(isDisabled ? { isDisabled } : {}),
    };
  },
};

function convertKey(
  message: ConfigMessage['key_creator_params'],
  at: string,
  { faults }: Conversion,
): CacheKeySettings {
  if (message === null) return { hasScheme: true, hasHost: true, included: [], excluded: [] };
  const { query_parameters_included: included, query_parameters_excluded: excluded } = message;
  return {
    hasScheme: !message.exclude_scheme,
    hasHost: !message.exclude_host,
    included: convertQueryMatchers(included, `${at}.query_parameters_included`, faults),
    excluded: convertQueryMatchers(excluded, `${at}.query_parameters_excluded`, faults),
  };
}
