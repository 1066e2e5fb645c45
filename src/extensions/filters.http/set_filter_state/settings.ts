// What the HTTP filter set_filter_state and its configuration share.

import type { FilterStateValue } from '../../filter-state/settings.ts';

/** Of the filter itself, and of each level of a route. */
export interface SetFilterStateSettings {
  /** In their order. */
  readonly values: readonly FilterStateValue[];
  /** The route is chosen again by what has been said. */
  readonly choosesRouteAgain: boolean;
}
