// The extensions of this build as workers know them: by name, from settings to something that runs. Their other half
// is control-registry.ts.

import type { HttpFilterRegistry } from '../data-plane/index.ts';
import { HEALTH_CHECK_FILTER } from './filters.http/health_check/filter.ts';
import { TAP_FILTER } from './filters.http/tap/filter.ts';

export const HTTP_FILTERS: HttpFilterRegistry = {
  'filters.http.health_check': HEALTH_CHECK_FILTER,
  'filters.http.tap': TAP_FILTER,
};
