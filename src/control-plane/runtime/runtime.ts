// The runtime: values that an operator may set beside the resources, in layers of which the last that has a key wins.
// Main thread. Owns the values; workers get them as a whole, each time that they change.

import { type RuntimeTexts, RuntimeValues } from '../../base/runtime.ts';
import { runtimeKey } from '../../base/runtime-values.ts';
import type { RuntimeLayerSettings } from '../../config/index.ts';
import { RUNTIME_STATS, type StatsStore } from '../../stats/index.ts';

/** Takes the values to the workers; WorkerPool does. */
export interface RuntimePublisher {
  publishRuntime(texts: RuntimeTexts): void;
}

export class Runtime {
  /** For the main thread: follows the layers. */
  readonly values = new RuntimeValues();
  readonly #workers: RuntimePublisher;
  readonly #stats;
  /** Told each time that values have been replaced. */
  onChanged: () => void = () => {};

  /** Without layers. */
  constructor(stats: StatsStore, workers: RuntimePublisher) {
    this.#workers = workers;
    this.#stats = stats.scope('runtime.').allocate(RUNTIME_STATS);
  }

  /** Takes over the layers, in their order, for those of before. */
  load(layers: readonly RuntimeLayerSettings[]): void {
    const texts = new Map<string, string>();
    for (const { values } of layers) {
      // An empty text never overrides.
      for (const [key, value] of values) if (value !== '') texts.set(runtimeKey(key), value);
    }
    this.values.replace(texts);
    this.#workers.publishRuntime(texts);
    this.onChanged();
    this.#stats.add('load_success');
    this.#stats.set('num_layers', layers.length);
    this.#stats.set('num_keys', new Set(layers.flatMap(({ values }) => [...values.keys()])).size);
  }
}
