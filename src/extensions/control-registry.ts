// The extensions of this build as the main thread knows them: from a message of the configuration to settings. Their
// other half is data-registry.ts.

import type { HttpFilterConverters } from '../config/index.ts';
import { convertHealthCheckFilter } from './filters.http/health_check/config.ts';

export const HTTP_FILTER_CONVERTERS: HttpFilterConverters = {
  'proxy.extensions.filters.http.health_check.v3.HealthCheck': convertHealthCheckFilter,
};
