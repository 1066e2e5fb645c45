// LocalRateLimit message → settings of the local rate limit filter.

import {
  convertTokenBucket,
  type MessageTypes,
  type NetworkFilterManifest,
  rejected,
  runtimeFlagOf,
  supported,
} from '../../../config/index.ts';
import type { LocalRateLimitSettings } from './settings.ts';

const LIMIT = 'proxy.extensions.filters.network.local_ratelimit.v3.LocalRateLimit';

export const NETWORK_LOCAL_RATE_LIMIT: NetworkFilterManifest = {
  isTerminal: false,
  support: {
    [LIMIT]: {
      otherwise: rejected(),
      fields: {
        stat_prefix: supported(),
        token_bucket: supported('shared by all workers; filled at the end of each interval'),
        runtime_enabled: supported(),
        share_key: rejected('each filter has a bucket of its own'),
      },
    },
  },
  convert(message, at, { faults }) {
    const { stat_prefix, token_bucket, runtime_enabled } = message as MessageTypes[typeof LIMIT];
    const settings: LocalRateLimitSettings = {
      bucket: convertTokenBucket(token_bucket, `${at}.token_bucket`, faults),
      enabled: runtimeFlagOf(runtime_enabled, true),
    };
    return {
      name: 'filters.network.local_ratelimit',
      settings,
      statScope: `local_rate_limit.${stat_prefix}.`,
      counters: ['rate_limited'],
    };
  },
};
