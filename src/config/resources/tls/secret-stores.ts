// Where secrets are found by name: those of the bootstrap, and those that have come by discovery.

import type { ConfigSourceSettings } from '../../../snapshot/index.ts';
import type { Secret } from '../messages.ts';

export interface FoundSecret {
  readonly message: Secret;
  /** Path of the secret where it stands in the bootstrap; of what asks for it where it comes from elsewhere. */
  readonly at: string;
}

/** Those of the bootstrap, by name. */
export type StaticSecrets = ReadonlyMap<string, FoundSecret>;

/** Those that have come by discovery; undefined for one that has not. */
export type DiscoveredSecrets = (name: string, source: ConfigSourceSettings) => Secret | undefined;
