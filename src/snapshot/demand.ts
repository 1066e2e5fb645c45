// What requests may find missing that main can have discovered for them: a worker asks, and is answered when it is there, or is not to be had.

import type { ConfigSourceSettings } from './config-source.ts';

export type Demand =
  /** A virtual host of a table that has some come on demand. */
  | {
      readonly kind: 'virtual-host';
      readonly routeTableId: number;
      /** host[:port] in lower case. */
      readonly host: string;
    }
  /** The table of a scope that asks for it on demand. */
  | { readonly kind: 'scope'; readonly scopeSetId: number; readonly key: readonly string[] }
  | {
      readonly kind: 'cluster';
      readonly name: string;
      readonly source: ConfigSourceSettings;
      readonly timeoutMs: number;
    };

/** Where clusters are asked for that are not known, and for how long whoever wants one waits. */
export interface ClusterDemandSettings {
  readonly source: ConfigSourceSettings;
  /** 0: as long as main waits. */
  readonly timeoutMs: number;
}
