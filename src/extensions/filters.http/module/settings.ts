// What the main thread and workers share of filters of the user's own.

import type { JsonObject } from '../../../base/json.ts';
import type { BodyUse } from '../../../filter-modules/interface.ts';
import type { FilterSource } from '../../../filter-modules/source.ts';

export interface ModuleSettings {
  /** As http_filters calls it. */
  readonly name: string;
  readonly source: FilterSource;
  readonly config: JsonObject;
  readonly requestBody: BodyUse;
  readonly responseBody: BodyUse;
}
