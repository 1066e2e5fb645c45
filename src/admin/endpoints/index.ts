// The table of admin endpoints: rows stand with their handlers, one file for each path or family of paths.

import type { Endpoint } from '../endpoint.ts';
import { CERTS } from './certs.ts';
import { CLUSTERS } from './clusters.ts';
import { CONFIG_DUMP } from './config-dump.ts';
import { CONTENTION } from './contention.ts';
import { DRAIN_LISTENERS } from './drain-listeners.ts';
import { HEALTHCHECK_FAIL, HEALTHCHECK_OK } from './healthcheck.ts';
import { HELP } from './help.ts';
import { HOME } from './home.ts';
import { HOT_RESTART_VERSION } from './hot-restart-version.ts';
import { HYSTRIX_EVENT_STREAM } from './hystrix-event-stream.ts';
import { INIT_DUMP } from './init-dump.ts';
import { LISTENERS } from './listeners.ts';
import { LOGGING } from './logging.ts';
import { MEMORY } from './memory.ts';
import { CPU_PROFILER, HEAP_DUMP, HEAP_PROFILER } from './profilers.ts';
import { QUIT } from './quit.ts';
import { READY } from './ready.ts';
import {
  RECENT_LOOKUPS,
  RECENT_LOOKUPS_CLEAR,
  RECENT_LOOKUPS_DISABLE,
  RECENT_LOOKUPS_ENABLE,
} from './recent-lookups.ts';
import { REOPEN_LOGS } from './reopen-logs.ts';
import { RESET_COUNTERS } from './reset-counters.ts';
import { RUNTIME, RUNTIME_MODIFY } from './runtime.ts';
import { SERVER_INFO } from './server-info.ts';
import { STATS, STATS_PROMETHEUS } from './stats.ts';
import { TAP } from './tap.ts';

/** In the order of their paths. */
export const ENDPOINTS: readonly Endpoint[] = [
  HOME,
  CERTS,
  CLUSTERS,
  CONFIG_DUMP,
  CONTENTION,
  CPU_PROFILER,
  DRAIN_LISTENERS,
  HEALTHCHECK_FAIL,
  HEALTHCHECK_OK,
  HEAP_DUMP,
  HEAP_PROFILER,
  HELP,
  HOT_RESTART_VERSION,
  HYSTRIX_EVENT_STREAM,
  INIT_DUMP,
  LISTENERS,
  LOGGING,
  MEMORY,
  QUIT,
  READY,
  REOPEN_LOGS,
  RESET_COUNTERS,
  RUNTIME,
  RUNTIME_MODIFY,
  SERVER_INFO,
  STATS,
  STATS_PROMETHEUS,
  RECENT_LOOKUPS,
  RECENT_LOOKUPS_CLEAR,
  RECENT_LOOKUPS_DISABLE,
  RECENT_LOOKUPS_ENABLE,
  TAP,
];
