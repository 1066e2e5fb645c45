// What the extensions of a build say of themselves to those who read configurations.

import type { AccessLoggerManifests } from './access-log/access-log.ts';
import type { HttpFilterManifests } from './http-filter.ts';
import type { NetworkFilterManifests } from './network-filter.ts';
import type { StatSinkManifests } from './stat-sink.ts';
import type { TracerManifests } from './tracing.ts';

export interface ExtensionManifests {
  readonly statSinks: StatSinkManifests;
  /** Those beside the router. */
  readonly httpFilters: HttpFilterManifests;
  /** Those beside the HTTP connection manager and the TCP proxy. */
  readonly networkFilters: NetworkFilterManifests;
  readonly tracers: TracerManifests;
  readonly accessLoggers: AccessLoggerManifests;
}

export const NO_EXTENSIONS: ExtensionManifests = {
  statSinks: {},
  httpFilters: {},
  networkFilters: {},
  tracers: {},
  accessLoggers: {},
};
