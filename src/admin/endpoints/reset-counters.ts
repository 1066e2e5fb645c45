// POST /reset_counters: all counters read 0 from here on.

import { endpoint } from '../endpoint.ts';
import { textResponse } from '../response.ts';

export const RESET_COUNTERS = endpoint({
  path: '/reset_counters',
  help: 'Set all counters to zero',
  mutates: true,
  handle({ commands }) {
    commands.resetCounters();
    return textResponse('OK\n');
  },
});
