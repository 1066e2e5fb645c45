// What it costs a route that nothing goes wrong on to be ready for it: small requests through weir with health checks,
// outlier detection and circuit breakers, and with a retry policy, beside weir without.
// Bar: 0.97 of the requests without.
// `npm run bench -- resilience --starts 5 --turns 6`

import type { WeirExtras } from './proxy/contenders/weir.ts';
import { measureBesidePlain } from './support/beside-plain.ts';

const BAR = 0.97;

const EXTRAS: Readonly<Record<string, WeirExtras>> = {
  guarded: {
    cluster: () => ({
      health_checks: [
        {
          timeout: '1s',
          interval: '1s',
          unhealthy_threshold: 2,
          healthy_threshold: 2,
          http_health_check: { path: '/small' },
        },
      ],
      outlier_detection: { interval: '1s' },
      circuit_breakers: {
        thresholds: [{ max_connections: 1000, max_requests: 1000, max_retries: 10, track_remaining: true }],
      },
    }),
  },
  retrying: {
    route: { retry_policy: { retry_on: '5xx,connect-failure,reset', num_retries: 3, per_try_timeout: '5s' } },
  },
};

await measureBesidePlain(
  'resilience',
  Object.entries(EXTRAS).map(([name, extras]) => ({ name, extras, bar: BAR })),
);
