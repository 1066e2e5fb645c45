// GET /stats/recentlookups: which stats were looked up by their names; and the three POSTs below it.

import { endpoint } from '../endpoint.ts';
import { textResponse } from '../response.ts';

const COUNT_WIDTH = 8;
const NOT_ENABLED = 'Lookup tracking is not enabled. Use /stats/recentlookups/enable to enable.\n';

export const RECENT_LOOKUPS = endpoint({
  path: '/stats/recentlookups',
  help: 'Names of stats that were looked up as text',
  handle({ lookups }) {
    const lines = lookups.names.map(([name, count]) => `${String(count).padStart(COUNT_WIDTH)} ${name}\n`);
    const list = lookups.isCollecting ? `   Count Lookup\n${lines.join('')}` : NOT_ENABLED;
    return textResponse(`${list}\ntotal: ${lookups.total}\n`);
  },
});

export const RECENT_LOOKUPS_CLEAR = endpoint({
  path: '/stats/recentlookups/clear',
  help: 'Forget the names and their number',
  mutates: true,
  handle({ lookups }) {
    lookups.clear();
    return textResponse('OK\n');
  },
});

export const RECENT_LOOKUPS_DISABLE = endpoint({
  path: '/stats/recentlookups/disable',
  help: 'Collect no names',
  mutates: true,
  handle({ lookups }) {
    lookups.collect(false);
    return textResponse('OK\n');
  },
});

export const RECENT_LOOKUPS_ENABLE = endpoint({
  path: '/stats/recentlookups/enable',
  help: 'Collect names',
  mutates: true,
  handle({ lookups }) {
    lookups.collect(true);
    return textResponse('OK\n');
  },
});
