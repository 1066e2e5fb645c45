// GET /stats/recentlookups: which stats were looked up by their names; and the three POSTs below it.

import { endpoint } from '../endpoint.ts';

export const RECENT_LOOKUPS = endpoint({
  path: '/stats/recentlookups',
  help: 'Names of stats that were looked up as text',
});

export const RECENT_LOOKUPS_CLEAR = endpoint({
  path: '/stats/recentlookups/clear',
  help: 'Forget the names and their number',
  mutates: true,
});

export const RECENT_LOOKUPS_DISABLE = endpoint({
  path: '/stats/recentlookups/disable',
  help: 'Collect no names',
  mutates: true,
});

export const RECENT_LOOKUPS_ENABLE = endpoint({
  path: '/stats/recentlookups/enable',
  help: 'Collect names',
  mutates: true,
});
