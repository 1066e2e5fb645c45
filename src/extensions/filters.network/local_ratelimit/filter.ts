// Closes connections that come faster than a rate: each takes a token out of a bucket that all workers share, before anything is
// read of it and before its handshake. Worker thread.

import { TokenBucket } from '../../../base/token-bucket.ts';
import type { NetworkFilterKind, Refusal } from '../../../data-plane/index.ts';
import type { LocalRateLimitSettings } from './settings.ts';

const REFUSAL: Refusal = { delayMs: 0, details: 'local_ratelimit_close_over_limit', flag: 'RL' };

export const NETWORK_LOCAL_RATE_LIMIT_FILTER: NetworkFilterKind = {
  isTerminal: false,
  readsData: false,
  compile(settings, context) {
    const { bucket: bucketSettings, enabled } = settings as LocalRateLimitSettings;
    const bucket = new TokenBucket(bucketSettings);
    const isEnabled = context.runtime.derived((values) => values.flag(enabled.key) ?? enabled.default);
    const limited = context.counter('rate_limited');
    return {
      admit() {
        if (!isEnabled.value || bucket.take(1, context.sharedNowMs())) return null;
        limited.add(1);
        return REFUSAL;
      },
    };
  },
};
