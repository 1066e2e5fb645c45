// POST /reopen_logs: opens all log files anew.

import { endpoint } from '../endpoint.ts';
import { textResponse } from '../response.ts';

export const REOPEN_LOGS = endpoint({
  path: '/reopen_logs',
  help: 'Open all log files anew, as SIGUSR1 does',
  mutates: true,
  handle({ commands }) {
    commands.reopenLogs();
    return textResponse('OK\n');
  },
});
