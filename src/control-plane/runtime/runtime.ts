// The runtime: values that an operator may set beside the resources, in layers of which the last that has a key wins.
// Main thread. Owns the layers and the values that result; workers get those as a whole, each time that they change. One layer,
// where the bootstrap has a place for it, is written while the proxy runs; layers of files are read again when their root, a
// symbolic link, is replaced, and only then, with rests between; those that come by discovery change when their subscription says.

import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { guardFault } from '../../base/feature-guards.ts';
import { type RuntimeTexts, RuntimeValues } from '../../base/runtime.ts';
import { runtimeKey, runtimeValueFault } from '../../base/runtime-values.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { RUNTIME_TYPE, type RuntimeLayerSettings } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import { RUNTIME_STATS, type StatsStore } from '../../stats/index.ts';
import { FirstAnswer } from '../subscription/first-answer.ts';
import { MoveWatch } from '../subscription/move-watch.ts';
import type { Subscription, Subscriptions } from '../subscription/subscription.ts';
import { SubscriptionStats } from '../subscription/subscription-stats.ts';
import { discoveredValues } from './discovered-values.ts';
import { type InSteps, readValueFiles, type ValueFiles } from './value-files.ts';

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

/** All layers put together. */
interface Merged {
  readonly layers: readonly Layer[];
  readonly texts: RuntimeTexts;
  readonly keys: ReadonlySet<string>;
  readonly hasFailed: boolean;
}

/** What became of a layer when it was read last. */
type ReadLayer = Layer | 'missing' | 'failed';
type ReadLayers = ReadonlyMap<RuntimeLayerSettings, ReadLayer>;

/** What is read before it holds. */
interface Loading {
  readonly layers: Map<RuntimeLayerSettings, ReadLayer>;
  /** They have to be read once more. */
  readonly movedRoots: Set<string>;
}

interface Subscribed {
  readonly subscription: Subscription;
  readonly answer: FirstAnswer;
}

const RUNTIME_PREFIX = 'runtime.';
/** Of the text of keys and values in the layer that is written while the proxy runs (I9). */
const MAX_ADMIN_LAYER_CHARACTERS = 1024 * 1024;
/** Lines about values of one layer each time that it is read. */
const MAX_WARNINGS = 10;

export interface RuntimeDependencies {
  readonly stats: StatsStore;
  readonly workers: RuntimePublisher;
  readonly clock: Clock;
  /** XXH64. */
  readonly hash: (text: string) => bigint;
  readonly faults: FaultBoundary;
  readonly log: Logger;
  /** Of what comes by discovery. */
  readonly subscriptions: Subscriptions;
  /** Looks at the files of a layer. */
  readonly readFiles?: (folder: string) => InSteps<ValueFiles>;
}

export class Runtime {
  /** For the main thread: follows the layers. */
  readonly values = new RuntimeValues();
  readonly #deps: RuntimeDependencies;
  readonly #readFiles: (folder: string) => InSteps<ValueFiles>;
  readonly #stats;
  #settings: readonly RuntimeLayerSettings[] = [];
  #layers: readonly Layer[] = [];
  /** Of the settings whose values come from elsewhere. */
  #readLayers: ReadLayers = new Map();
  /** What is being read again, by root; another thing in its place calls that off. */
  readonly #rereads = new Map<string, object>();
  /** Layers that are being read for the first time; undefined when there are none. */
  #loading: Loading | undefined;
  /** Of all layers, in their one spelling. */
  #keys: ReadonlySet<string> = new Set();
  /** What has been written in the layer for that. */
  #written: Values = new Map();
  #watches: readonly MoveWatch[] = [];
  #subscriptions: readonly Subscribed[] = [];
  #subscriptionStats: SubscriptionStats | undefined;
  /** Told each time that values have been replaced. */
  onChanged: () => void = () => {};

  /** Without layers. */
  constructor(deps: RuntimeDependencies) {
    this.#deps = deps;
    this.#readFiles = deps.readFiles ?? readValueFiles;
    this.#stats = deps.stats.scope(RUNTIME_PREFIX).allocate(RUNTIME_STATS);
  }

  /**
   * Takes over the layers, in their order, for those of before; what has been written stays where there is a layer for it.
   * Resolves when their values are in force: at once where all of them are in the bootstrap, and else when all have been read,
   * with rests between, or asked for; until then those of before hold. Another call, or `close`, calls it off.
   */
  load(layers: readonly RuntimeLayerSettings[]): Promise<void> {
    this.close();
    const loading: Loading = { layers: new Map(), movedRoots: new Set() };
    this.#loading = loading;
    const roots = new Set(layers.flatMap(({ files }) => files?.symlinkRoot ?? []));
    this.#watches = [...roots].map((root) => this.#watch(root));
    const ofFiles = layers.filter(({ files }) => files !== undefined);
    const discovered = layers.filter(({ discovery }) => discovery !== undefined);
    if (ofFiles.length === 0 && discovered.length === 0) {
      this.#begin(layers, loading);
      return Promise.resolve();
    }
    const answers = discovered.map((settings) => this.#subscribe(settings));
    return this.#loadFrom(layers, ofFiles, answers, loading);
  }

  /**
   * Sets values in the layer for that, or takes away those that are empty there, all or none.
   * @returns why nothing has changed; undefined when it has.
   */
  modify(changes: ReadonlyMap<string, string>): 'no-admin-layer' | 'full' | undefined {
    const layer = this.#settings.find(({ kind }) => kind === 'admin');
    if (layer === undefined) return 'no-admin-layer';
    const values = new Map(this.#written);
    for (const [key, written] of bySpelling(changes)) {
      if (written.value === '') values.delete(key);
      else values.set(key, written);
    }
    if (charactersOf(values) > MAX_ADMIN_LAYER_CHARACTERS) return 'full';
    this.#written = values;
    atOnce(this.#warnOf(layer.name, changes));
    this.#replace();
    return undefined;
  }

  /** Nothing is watched, asked for or read any more. */
  close(): void {
    for (const watch of this.#watches) watch.close();
    for (const { subscription, answer } of this.#subscriptions) {
      subscription.close();
      answer.close();
    }
    this.#watches = [];
    this.#subscriptions = [];
    this.#rereads.clear();
    this.#loading = undefined;
  }

  /** Names of the layers, in their order. */
  layers(): readonly string[] {
    return this.#layers.map(({ name }) => name);
  }

  /** All keys, in the order of their spelling. */
  entries(): readonly RuntimeEntry[] {
    const entries = [...this.#keys].map((key): RuntimeEntry => {
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

  async #loadFrom(
    layers: readonly RuntimeLayerSettings[],
    ofFiles: readonly RuntimeLayerSettings[],
    answers: readonly Promise<void>[],
    loading: Loading,
  ): Promise<void> {
    const isCalledOff = (): boolean => this.#loading !== loading;
    for (const settings of ofFiles) {
      const layer = await inSlices(this.#read(settings), isCalledOff);
      if (layer === undefined || isCalledOff()) return;
      loading.layers.set(settings, layer);
    }
    await Promise.all(answers);
    if (isCalledOff()) return;
    this.#begin(layers, loading);
    for (const root of loading.movedRoots) this.#beginReread(root);
  }

  /** The layers of before are replaced. */
  #begin(layers: readonly RuntimeLayerSettings[], { layers: read }: Loading): void {
    this.#loading = undefined;
    this.#settings = layers;
    if (!layers.some(({ kind }) => kind === 'admin')) this.#written = new Map();
    this.#readLayers = read;
    this.#replace();
  }

  /** Resolves when there has been an answer, if only that there is none, or it has taken too long. */
  #subscribe(settings: RuntimeLayerSettings): Promise<void> {
    const { stats, clock, hash, log } = this.#deps;
    const { resource, source } = settings.discovery!;
    this.#subscriptionStats ??= SubscriptionStats.under(stats, RUNTIME_PREFIX, clock, hash);
    const subscriptionStats = this.#subscriptionStats;
    const answer = new FirstAnswer(`runtime layer ${settings.name}`, source.initialFetchTimeoutMs, {
      clock,
      log,
      stats: subscriptionStats,
    });
    const owner = discoveredValues(
      resource,
      (values) => this.#discovered(settings, values),
      () => answer.came(),
    );
    const subscription = this.#deps.subscriptions.subscribe({
      source,
      names: new Set([resource]),
      type: () => RUNTIME_TYPE,
      stats: subscriptionStats,
      owner,
    });
    this.#subscriptions = [...this.#subscriptions, { subscription, answer }];
    subscription.start();
    return answer.promise;
  }

  #discovered(settings: RuntimeLayerSettings, values: ReadonlyMap<string, string>): void {
    const { name } = settings;
    atOnce(this.#warnOf(name, values));
    const layer: Layer = { name, isOfFiles: false, values: bySpelling(values) };
    if (this.#loading !== undefined) {
      this.#loading.layers.set(settings, layer);
      return;
    }
    this.#readLayers = new Map([...this.#readLayers, [settings, layer]]);
    this.#replace();
  }

  /** Puts the layers together and has the result take effect. */
  #replace(): void {
    this.#takeOver(atOnce(this.#merge()));
  }

  /** The values in force, from what has been read of files. */
  *#merge(): InSteps<Merged> {
    const all = this.#settings.map((settings) => this.#layer(settings));
    const layers = all.filter((layer) => layer !== 'missing' && layer !== 'failed');
    const texts = new Map<string, string>();
    const keys = new Set<string>();
    for (const { values } of layers) {
      for (const [key, { value }] of values) {
        keys.add(key);
        // An empty text never overrides.
        if (value !== '') texts.set(key, value);
        yield;
      }
    }
    return { layers, texts, keys, hasFailed: all.includes('failed') };
  }

  #takeOver({ layers, texts, keys, hasFailed }: Merged): void {
    this.#layers = layers;
    this.#keys = keys;
    this.values.replace(texts);
    this.#deps.workers.publishRuntime(texts);
    this.onChanged();
    this.#stats.add(hasFailed ? 'load_error' : 'load_success');
    const ofFiles = layers.filter(({ isOfFiles }) => isOfFiles).length;
    this.#stats.add(ofFiles > 1 ? 'override_dir_exists' : 'override_dir_not_exists');
    this.#stats.set('num_layers', layers.length);
    this.#stats.set('num_keys', keys.size);
    this.#stats.set('admin_overrides_active', this.#written.size > 0 ? 1 : 0);
  }

  #layer(settings: RuntimeLayerSettings): ReadLayer {
    const { name, kind, values } = settings;
    if (kind === 'admin') return { name, isOfFiles: false, values: this.#written };
    return this.#readLayers.get(settings) ?? { name, isOfFiles: false, values: bySpelling(values) };
  }

  *#read({ name, files }: RuntimeLayerSettings): InSteps<ReadLayer> {
    const { log } = this.#deps;
    const { folder } = files!;
    const read = yield* this.#readFiles(folder);
    switch (read.kind) {
      case 'read':
        yield* this.#warnOf(name, read.values);
        return { name, isOfFiles: true, values: yield* spelled(read.values) };
      case 'missing':
        log.ofFile('src/control-plane/runtime/runtime.ts').debug(`runtime layer ${name}: there is no folder ${folder}`);
        return 'missing';
      case 'failed':
        log.warning(`runtime layer ${name} is left out: ${read.reason}`);
        return 'failed';
    }
  }

  #beginReread(root: string): void {
    this.#deps.faults.run(`reading ${root} again`, () => this.#reread(root));
  }

  /** Reads the layers below a root that has been replaced, unless it is replaced once more. */
  async #reread(root: string): Promise<void> {
    const token = {};
    this.#rereads.set(root, token);
    const isOverdue = (): boolean => this.#rereads.get(root) !== token;
    const read = new Map<RuntimeLayerSettings, ReadLayer>();
    for (const settings of this.#settings.filter(({ files }) => files?.symlinkRoot === root)) {
      const layer = await inSlices(this.#read(settings), isOverdue);
      if (layer === undefined || isOverdue()) return;
      read.set(settings, layer);
    }
    // Another root may have been read meanwhile.
    this.#readLayers = new Map([...this.#readLayers, ...read]);
    const readLayers = this.#readLayers;
    const written = this.#written;
    const isOutdated = (): boolean => isOverdue() || this.#readLayers !== readLayers || this.#written !== written;
    const merged = await inSlices(this.#merge(), isOutdated);
    // Whoever has changed something meanwhile has put all of it together.
    if (merged !== undefined && !isOutdated()) this.#takeOver(merged);
    if (!isOverdue()) this.#rereads.delete(root);
  }

  *#warnOf(name: string, values: ReadonlyMap<string, string>): InSteps<void> {
    let said = 0;
    for (const [key, value] of values) {
      yield;
      const reason = value === '' ? undefined : reasonWithoutEffect(key, value);
      if (reason === undefined || said === MAX_WARNINGS) continue;
      said += 1;
      this.#deps.log.warning(`runtime layer ${name}: ${JSON.stringify(key)} has no effect, as ${reason}`);
    }
  }

  #watch(root: string): MoveWatch {
    const { log } = this.#deps;
    return MoveWatch.ofPlace(root, this.#deps.faults, {
      onMoved: () => {
        log.info(`runtime values are read again: ${root} has been replaced`);
        // What has been read of it until now may be of either.
        if (this.#loading !== undefined) this.#loading.movedRoots.add(root);
        else this.#beginReread(root);
      },
      onError: (error) => log.warning(`${root} is not watched: ${errorMessage(error)}`),
    });
  }
}

function bySpelling(values: ReadonlyMap<string, string>): Values {
  return atOnce(spelled(values));
}

function* spelled(values: ReadonlyMap<string, string>): InSteps<Values> {
  const result = new Map<string, Written>();
  for (const [key, value] of values) {
    result.set(runtimeKey(key), { key, value });
    yield;
  }
  return result;
}

/** @returns undefined as soon as the result is of no use any more. */
async function inSlices<Result>(steps: InSteps<Result>, isUseless: () => boolean): Promise<Result | undefined> {
  const slice = new TimeSlice();
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (!slice.isOverNow()) continue;
    await slice.rest();
    if (isUseless()) return undefined;
  }
}

function atOnce<Result>(steps: InSteps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Of a value that does not stand in the bootstrap. */
function reasonWithoutEffect(key: string, value: string): string | undefined {
  const guard = guardFault(key);
  if (guard !== undefined) return `it ${guard}`;
  const fault = runtimeValueFault(key, value);
  return fault === undefined ? undefined : `its value ${fault}`;
}

function charactersOf(values: Values): number {
  let sum = 0;
  for (const { key, value } of values.values()) sum += key.length + value.length;
  return sum;
}
