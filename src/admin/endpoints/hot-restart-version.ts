// GET /hot_restart_version: which other processes this one can take over from.

import { endpoint } from '../endpoint.ts';
import { textResponse } from '../response.ts';

export const HOT_RESTART_VERSION = endpoint({
  path: '/hot_restart_version',
  help: 'Version of hot restart, as --hot-restart-version prints it',
  handle: ({ server }) => textResponse(server.hotRestartVersion),
});
