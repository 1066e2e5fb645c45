// What the on_demand filter and its configuration share.

import type { ClusterDemandSettings } from '../../../snapshot/index.ts';

export interface OnDemandSettings {
  /** Where clusters are asked for that requests lack; null for nowhere. */
  readonly clusters: ClusterDemandSettings | null;
}
