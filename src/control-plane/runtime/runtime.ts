// The runtime: values that an operator may set beside the resources, in layers of which the last that has a key wins.
// Main thread. Owns the layers and the values that result; workers get those as a whole, each time that they change. One layer,
// where the bootstrap has a place for it, is written while the proxy runs; layers of files are read again when their root, a
// symbolic link, is replaced.

import { errorMessage } from '../../base/errors.ts';
import { type RuntimeTexts, RuntimeValues } from '../../base/runtime.ts';
import { runtimeKey, runtimeValueFault } from '../../base/runtime-values.ts';
import type { RuntimeLayerSettings } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import { RUNTIME_STATS, type StatsStore } from '../../stats/index.ts';
import { LinkWatch } from './link-watch.ts';
import { readValueFiles, type ValueFiles } from './value-files.ts';

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

/** By key in its one spelling. */
type Values = ReadonlyMap<string, Written>;

interface Layer {
  readonly name: string;
  readonly isOfFiles: boolean;
  readonly values: Values;
}

/** Of the text of keys and values in the layer that is written while the proxy runs (I9). */
const MAX_ADMIN_LAYER_CHARACTERS = 1024 * 1024;
/** Lines about values of one layer each time that it is read. */
const MAX_WARNINGS = 10;

export interface RuntimeDependencies {
  readonly stats: StatsStore;
  readonly workers: RuntimePublisher;
  readonly log: Logger;
  /** Looks at the files of a layer. */
  readonly readFiles?: (folder: string) => ValueFiles;
}

export class Runtime {
  /** For the main thread: follows the layers. */
  readonly values = new RuntimeValues();
  readonly #deps: RuntimeDependencies;
  readonly #readFiles: (folder: string) => ValueFiles;
  readonly #stats;
  #settings: readonly RuntimeLayerSettings[] = [];
  #layers: readonly Layer[] = [];
  /** What has been written in the layer for that. */
  #written: Values = new Map();
  #watches: readonly LinkWatch[] = [];
  /** Told each time that values have been replaced. */
  onChanged: () => void = () => {};

  /** Without layers. */
  constructor(deps: RuntimeDependencies) {
    this.#deps = deps;
    this.#readFiles = deps.readFiles ?? readValueFiles;
    this.#stats = deps.stats.scope('runtime.').allocate(RUNTIME_STATS);
  }

  /**
   * Takes over the layers, in their order, for those of before; what has been written stays where there is a layer for it. Layers
   * of files are read again when their roots are replaced.
   */
  load(layers: readonly RuntimeLayerSettings[]): void {
    this.#settings = layers;
    if (!layers.some(({ kind }) => kind === 'admin')) this.#written = new Map();
    this.close();
    const roots = new Set(layers.flatMap(({ files }) => files?.symlinkRoot ?? []));
    this.#watches = [...roots].map((root) => this.#watch(root));
    this.#replace();
  }

  /**
   * Sets values in the layer for that, or takes away those that are empty there, all or none.
   * @returns why nothing has changed; undefined when it has.
   */
  modify(changes: ReadonlyMap<string, string>): 'no-admin-layer' | 'full' | undefined {
    if (!this.#settings.some(({ kind }) => kind === 'admin')) return 'no-admin-layer';
    const values = new Map(this.#written);
    for (const [key, written] of bySpelling(changes)) {
      if (written.value === '') values.delete(key);
      else values.set(key, written);
    }
    if (charactersOf(values) > MAX_ADMIN_LAYER_CHARACTERS) return 'full';
    this.#written = values;
    this.#replace();
    return undefined;
  }

  /** Files are not watched any more. */
  close(): void {
    for (const watch of this.#watches) watch.close();
    this.#watches = [];
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

  /** Builds all values anew, from files, too. */
  #replace(): void {
    const layers = this.#settings.map((settings) => this.#layer(settings));
    this.#layers = layers.filter((layer) => layer !== 'missing' && layer !== 'failed');
    const texts = new Map<string, string>();
    for (const { values } of this.#layers) {
      // An empty text never overrides.
      for (const [key, { value }] of values) if (value !== '') texts.set(key, value);
    }
    this.values.replace(texts);
    this.#deps.workers.publishRuntime(texts);
    this.onChanged();
    this.#stats.add(layers.includes('failed') ? 'load_error' : 'load_success');
    const ofFiles = this.#layers.filter(({ isOfFiles }) => isOfFiles).length;
    this.#stats.add(ofFiles > 1 ? 'override_dir_exists' : 'override_dir_not_exists');
    this.#stats.set('num_layers', this.#layers.length);
    this.#stats.set('num_keys', this.#keys().size);
    this.#stats.set('admin_overrides_active', this.#written.size > 0 ? 1 : 0);
  }

  #layer({ name, kind, values, files }: RuntimeLayerSettings): Layer | 'missing' | 'failed' {
    if (kind === 'admin') return { name, isOfFiles: false, values: this.#written };
    if (files === undefined) return { name, isOfFiles: false, values: bySpelling(values) };
    const { log } = this.#deps;
    const read = this.#readFiles(files.folder);
    switch (read.kind) {
      case 'read':
        this.#warnOf(name, read.values);
        return { name, isOfFiles: true, values: bySpelling(read.values) };
      case 'missing':
        log.debug(`runtime layer ${name}: there is no folder ${files.folder}`);
        return 'missing';
      case 'failed':
        log.warning(`runtime layer ${name} is left out: ${read.reason}`);
        return 'failed';
    }
  }

  #warnOf(name: string, values: ReadonlyMap<string, string>): void {
    let said = 0;
    for (const [key, value] of values) {
      const fault = value === '' ? undefined : runtimeValueFault(key, value);
      if (fault === undefined || said === MAX_WARNINGS) continue;
      said += 1;
      this.#deps.log.warning(`runtime layer ${name}: ${JSON.stringify(key)} has no effect, as its value ${fault}`);
    }
  }

  #watch(root: string): LinkWatch {
    const { log } = this.#deps;
    return new LinkWatch(root, {
      onMoved: () => {
        log.info(`runtime values are read again: ${root} has been replaced`);
        this.#replace();
      },
      onError: (error) => log.warning(`${root} is not watched: ${errorMessage(error)}`),
    });
  }

  #keys(): Set<string> {
    return new Set(this.#layers.flatMap(({ values }) => [...values.keys()]));
  }
}

function bySpelling(values: ReadonlyMap<string, string>): Values {
  return new Map([...values].map(([key, value]) => [runtimeKey(key), { key, value }]));
}

function charactersOf(values: Values): number {
  let sum = 0;
  for (const { key, value } of values.values()) sum += key.length + value.length;
  return sum;
}
