// What the set_metadata filter and its configuration share.

import type { JsonObject } from '../../../base/json.ts';

export interface MetadataEntry {
  readonly namespace: string;
  readonly values: JsonObject;
  /** Adds to what there is under this name; otherwise that stays as it is. */
  readonly isMerged: boolean;
}

export interface SetMetadataSettings {
  /** In their order. */
  readonly entries: readonly MetadataEntry[];
  /** Name behind `http.<stat_prefix>.`. */
  readonly deniedCounter: string;
}
