// The runtime, as the admin interface reads it.

/** A key in all layers. */
export interface RuntimeEntryView {
  readonly key: string;
  /** By layer; empty where it has none. */
  readonly values: readonly string[];
  /** The one in force; empty when no layer has a value. */
  readonly final: string;
}

export interface RuntimeView {
  /** Names of the layers, in their order: the last that has a key wins. */
  layers(): readonly string[];
  /** In the order of the keys. */
  entries(): readonly RuntimeEntryView[];
}
