// The runtime: values that an operator may set beside the resources, in layers of which the last that has a key wins.
// Main thread. Owns the layers and the values that result; workers get those as a whole, each time that they change. One layer,
// where the bootstrap has a place for it, is written while the proxy runs.

import { type RuntimeTexts, RuntimeValues } from '../../base/runtime.ts';
import { runtimeKey } from '../../base/runtime-values.ts';
import type { RuntimeLayerSettings } from '../../config/index.ts';
import { RUNTIME_STATS, type StatsStore } from '../../stats/index.ts';

/** Takes the values to the workers; WorkerPool does. */
export interface RuntimePublisher {
  publishRuntime(texts: RuntimeTexts): void;
}

/** A key in all layers. */
export interface RuntimeEntry {
  /** As the first layer spells it that has it. */
  readonly key: string;
  /** By layer; empty where it has none. */
  readonly values: readonly string[];
  /** The one in force; empty when no layer has a value. */
  readonly final: string;
}

/** A value with its key as written. */
interface Written {
  readonly key: string;
  readonly value: string;
}

interface Layer {
  readonly name: string;
  readonly isAdmin: boolean;
  /** By key in its one spelling. */
  readonly values: ReadonlyMap<string, Written>;
}

/** Of the text of keys and values in the layer that is written while the proxy runs (I9). */
const MAX_ADMIN_LAYER_CHARACTERS = 1024 * 1024;

export class Runtime {
  /** For the main thread: follows the layers. */
  readonly values = new RuntimeValues();
  readonly #workers: RuntimePublisher;
  readonly #stats;
  #layers: readonly Layer[] = [];
  /** Told each time that values have been replaced. */
  onChanged: () => void = () => {};

  /** Without layers. */
  constructor(stats: StatsStore, workers: RuntimePublisher) {
    this.#workers = workers;
    this.#stats = stats.scope('runtime.').allocate(RUNTIME_STATS);
  }

  /** Takes over the layers, in their order, for those of before. */
  load(layers: readonly RuntimeLayerSettings[]): void {
    this.#use(
      layers.map(({ name, kind, values }) => ({ name, isAdmin: kind === 'admin', values: bySpelling(values) })),
    );
  }

  /**
   * Sets values in the layer for that, or takes away those that are empty there, all or none.
   * @returns why nothing has changed; undefined when it has.
   */
  modify(changes: ReadonlyMap<string, string>): 'no-admin-layer' | 'full' | undefined {
    const admin = this.#layers.find(({ isAdmin }) => isAdmin);
    if (admin === undefined) return 'no-admin-layer';
    const values = new Map(admin.values);
    for (const [key, written] of bySpelling(changes)) {
      if (written.value === '') values.delete(key);
      else values.set(key, written);
    }
    if (charactersOf(values) > MAX_ADMIN_LAYER_CHARACTERS) return 'full';
    this.#use(this.#layers.map((layer) => (layer === admin ? { ...admin, values } : layer)));
    return undefined;
  }

  /** Names of the layers, in their order. */
  layers(): readonly string[] {
    return this.#layers.map(({ name }) => name);
  }

  /** All keys, in the order of their spelling. */
  entries(): readonly RuntimeEntry[] {
    const entries = [...this.#keys()].map((key): RuntimeEntry => {
      const written = this.#layers.map(({ values }) => values.get(key));
      const spelled = written.find((each) => each !== undefined);
      return {
        key: spelled?.key ?? key,
        values: written.map((each) => each?.value ?? ''),
        final: this.values.text(key) ?? '',
      };
    });
    return entries.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  }

  #use(layers: readonly Layer[]): void {
    this.#layers = layers;
    const texts = new Map<string, string>();
    for (const { values } of layers) {
      // An empty text never overrides.
      for (const [key, { value }] of values) if (value !== '') texts.set(key, value);
    }
    this.values.replace(texts);
    this.#workers.publishRuntime(texts);
    this.onChanged();
    this.#stats.add('load_success');
    // Layers of files are not read, so no two of them make a directory of overrides.
    this.#stats.add('override_dir_not_exists');
    this.#stats.set('num_layers', layers.length);
    this.#stats.set('num_keys', this.#keys().size);
    this.#stats.set('admin_overrides_active', layers.some(({ isAdmin, values }) => isAdmin && values.size > 0) ? 1 : 0);
  }

  #keys(): Set<string> {
    return new Set(this.#layers.flatMap(({ values }) => [...values.keys()]));
  }
}

function bySpelling(values: ReadonlyMap<string, string>): ReadonlyMap<string, Written> {
  return new Map([...values].map(([key, value]) => [runtimeKey(key), { key, value }]));
}

function charactersOf(values: ReadonlyMap<string, Written>): number {
  let sum = 0;
  for (const { key, value } of values.values()) sum += key.length + value.length;
  return sum;
}
