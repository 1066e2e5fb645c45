// What main tells the workers of a health check filter.

import type { HeaderMatch } from '../../../snapshot/index.ts';

export interface HealthCheckFilterSettings {
  /** A request that passes all is a health check. */
  readonly headers: readonly HeaderMatch[];
  /** Checks go to the upstream; otherwise the proxy answers them. */
  readonly isPassThrough: boolean;
  /** How long an upstream's answer stands for the next ones; 0 for not at all. Only with isPassThrough. */
  readonly cacheTimeMs: number;
  /** Percent of a cluster's hosts, 0 to 100, that must be healthy for a good answer. Only without isPassThrough. */
  readonly clusters: readonly { readonly name: string; readonly minHealthyPercent: number }[];
  /** Told to those who check, so that they see whom they have reached; empty when the node has no cluster. */
  readonly localCluster: string;
}
