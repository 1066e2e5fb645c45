// The runtime: values that an operator may set beside the resources, in layers of which the last that has a key wins.
// Main thread; what workers need of it travels in snapshots.

import { runtimeInteger, runtimeKey } from '../../base/runtime-values.ts';
import type { RuntimeLayerSettings } from '../../config/index.ts';
import { RUNTIME_STATS, type StatsStore } from '../../stats/index.ts';

export class Runtime {
  /** The value in force of each key, in the one spelling of runtimeKey. */
  readonly #values = new Map<string, string>();

  constructor(layers: readonly RuntimeLayerSettings[], stats: StatsStore) {
    for (const { values } of layers) {
      // An empty text never overrides.
      for (const [key, value] of values) if (value !== '') this.#values.set(runtimeKey(key), value);
    }
    const block = stats.scope('runtime.').allocate(RUNTIME_STATS);
    block.add('load_success');
    block.set('num_layers', layers.length);
    block.set('num_keys', new Set(layers.flatMap(({ values }) => [...values.keys()])).size);
  }

  /** Undefined when there is no such key, or something else than a whole number of 0 or more is set. */
  integer(key: string): number | undefined {
    const value = this.#values.get(key);
    return value === undefined ? undefined : runtimeInteger(value);
  }
}
