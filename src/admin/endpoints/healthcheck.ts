// POST /healthcheck/fail and /healthcheck/ok: what the health checks of clients are told.

import { endpoint } from '../endpoint.ts';
import { textResponse } from '../response.ts';

export const HEALTHCHECK_FAIL = endpoint({
  path: '/healthcheck/fail',
  help: 'Have the health checks of clients fail, to drain this server',
  mutates: true,
  handle({ commands }) {
    commands.failHealthChecks(true);
    return textResponse('OK\n');
  },
});

export const HEALTHCHECK_OK = endpoint({
  path: '/healthcheck/ok',
  help: 'Have the health checks of clients succeed again',
  mutates: true,
  handle({ commands }) {
    commands.failHealthChecks(false);
    return textResponse('OK\n');
  },
});
