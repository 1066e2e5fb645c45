// The table of admin endpoints. Routing, the method check, /help, the home page and the documentation read it:
// a new endpoint is a row here and a handler in endpoints/.
//
// Sources: spec section 4 (paths, methods, parameters).

import { type AdminResponse, type Endpoint, textResponse } from './endpoint.ts';
import { CLUSTERS_PARAMETERS, handleClusters } from './endpoints/clusters.ts';
import { handleListeners, LISTENERS_PARAMETERS } from './endpoints/listeners.ts';
import { handleLogging, LOGGING_PARAMETERS } from './endpoints/logging.ts';
import {
  handleHealthCheckFail,
  handleHealthCheckOk,
  handleQuit,
  handleReady,
  handleReopenLogs,
  handleResetCounters,
  handleServerInfo,
} from './endpoints/server.ts';
import { handleStats, STATS_PARAMETERS } from './endpoints/stats.ts';
import { helpText } from './render/help-text.ts';
import { homePage } from './render/home-page.ts';

export function adminEndpoints(): readonly Endpoint[] {
  const endpoints: readonly Endpoint[] = [
    {
      path: '/',
      help: 'Home page of the admin interface',
      mutates: false,
      parameters: [],
      handle: (context) => homePage(endpoints, context.server),
    },
    {
      path: '/clusters',
      help: 'Upstream clusters: limits, hosts and their health and statistics',
      mutates: false,
      parameters: CLUSTERS_PARAMETERS,
      handle: handleClusters,
    },
    {
      path: '/healthcheck/fail',
      help: 'Have the health checks of clients fail, to drain this server',
      mutates: true,
      parameters: [],
      handle: handleHealthCheckFail,
    },
    {
      path: '/healthcheck/ok',
      help: 'Have the health checks of clients succeed again',
      mutates: true,
      parameters: [],
      handle: handleHealthCheckOk,
    },
    {
      path: '/help',
      help: 'This list of commands',
      mutates: false,
      parameters: [],
      handle: () => textResponse(helpText(endpoints)),
    },
    {
      path: '/listeners',
      help: 'Names and addresses of the listeners',
      mutates: false,
      parameters: LISTENERS_PARAMETERS,
      handle: handleListeners,
    },
    {
      path: '/logging',
      help: 'Log levels: show or change them',
      mutates: true,
      parameters: LOGGING_PARAMETERS,
      handle: handleLogging,
    },
    {
      path: '/quitquitquit',
      help: 'End the server cleanly',
      mutates: true,
      parameters: [],
      handle: handleQuit,
    },
    {
      path: '/ready',
      help: 'State of the server; 200 when it is LIVE, otherwise 503',
      mutates: false,
      parameters: [],
      handle: handleReady,
    },
    {
      path: '/reopen_logs',
      help: 'Open all log files anew, as SIGUSR1 does',
      mutates: true,
      parameters: [],
      handle: handleReopenLogs,
    },
    {
      path: '/reset_counters',
      help: 'Set all counters to zero',
      mutates: true,
      parameters: [],
      handle: handleResetCounters,
    },
    {
      path: '/server_info',
      help: 'Version, state, uptime, command line options and node',
      mutates: false,
      parameters: [],
      handle: handleServerInfo,
    },
    {
      path: '/stats',
      help: 'Statistics of the server',
      mutates: false,
      parameters: STATS_PARAMETERS,
      handle: handleStats,
    },
  ];
  return endpoints;
}

/** Answer to a path that is not in the table. */
export function unknownPath(endpoints: readonly Endpoint[]): AdminResponse {
  return textResponse(`invalid path. ${helpText(endpoints)}`, 404);
}
