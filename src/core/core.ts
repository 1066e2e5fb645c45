// Joins the parts of a core over one shared memory that it alone uses. It needs src/base and src/wasm only, so that a
// program that wants a histogram does not load a proxy.

import { SYSTEM_RANDOM } from '../base/random.ts';
import { HistogramMerger } from '../wasm/histogram-merger.ts';
import { HistogramRecorder } from '../wasm/histogram-recorder.ts';
import { compileModule } from '../wasm/instantiate.ts';
import { openPicker, type PickPlan } from '../wasm/lb/host-picker.ts';
import { LbKernel, STD_HASH_SEED } from '../wasm/lb/kernel.ts';
import { LbTables } from '../wasm/lb/table-builder.ts';
import { SharedMemoryOwner } from '../wasm/shared-memory-owner.ts';
import { argumentError, checkBigint, checkHosts, checkName, checkWhole, inCoreTerms } from './arguments.ts';
import { PlainCounter } from './counter.ts';
import { CoreMaglev, CoreRing, checkData } from './hash-tables.ts';
import { checkUnit, type HistogramTools, RecordedHistogram } from './histogram.ts';
import { CoreLeastRequest, CoreRoundRobin, HostRecords } from './pickers.ts';
import type {
  Core,
  CoreOptions,
  Counter,
  Histogram,
  Host,
  LeastRequest,
  LeastRequestOptions,
  Maglev,
  MaglevOptions,
  RingHash,
  RingHashOptions,
  RoundRobin,
  SeedOptions,
  Unit,
} from './types.ts';

const DEFAULT_MEMORY_MIB = 1024;
const LARGEST_MEMORY_MIB = 4096;
const MIB = 1024 * 1024;

/**
 * Makes a core: compiles the WASM modules (some milliseconds) and reserves address space. One is enough for a program.
 * Its memory goes when the core is no longer referred to.
 * @throws WeirError WEIR_CORE_ARGUMENT, WEIR_CORE_MEMORY when the system has not so much address space, or
 * WEIR_WASM_MISSING in a clone that was never built.
 */
export function createCore(options: CoreOptions = {}): Core {
  const { maxMemoryMiB = DEFAULT_MEMORY_MIB } = options;
  checkWhole('maxMemoryMiB', maxMemoryMiB, 1, LARGEST_MEMORY_MIB);
  return inCoreTerms(maxMemoryMiB, () => new SharedMemoryCore(maxMemoryMiB));
}

class SharedMemoryCore implements Core {
  readonly #maxMemoryMiB: number;
  readonly #owner: SharedMemoryOwner;
  readonly #histogramTools: HistogramTools;
  readonly #kernel: LbKernel;
  readonly #tables: LbTables;
  readonly #counters = new Map<string, Counter>();
  readonly #histograms = new Map<string, Histogram>();

  constructor(maxMemoryMiB: number) {
    this.#maxMemoryMiB = maxMemoryMiB;
    // One worker's slab is the least there can be; here it stays empty.
    this.#owner = new SharedMemoryOwner({ workerCount: 1, maxBytes: maxMemoryMiB * MIB });
    const memory = this.#owner.shared;
    const stats = compileModule('stats');
    this.#histogramTools = {
      memory,
      recorder: new HistogramRecorder(memory, stats),
      merger: new HistogramMerger(this.#owner, stats),
      maxMemoryMiB,
    };
    this.#kernel = new LbKernel(memory, compileModule('lb'));
    this.#tables = new LbTables(this.#owner, this.#kernel);
  }

  counter(name: string): Counter {
    const known = this.#counters.get(name);
    if (known) return known;
    checkName(name);
    const counter = new PlainCounter();
    this.#counters.set(name, counter);
    return counter;
  }

  histogram(name: string, { unit }: { readonly unit?: Unit } = {}): Histogram {
    const known = this.#histograms.get(name);
    if (known) {
      if (unit === undefined || unit === known.unit) return known;
      throw argumentError('unit', `${unit} is not the unit that ${JSON.stringify(name)} was made with, ${known.unit}`);
    }
    checkName(name);
    if (unit !== undefined) checkUnit(unit);
    const histogram = new RecordedHistogram(this.#histogramTools, this.#allocateCell(), unit ?? 'count');
    this.#histograms.set(name, histogram);
    return histogram;
  }

  maglev(hosts: readonly Host[], options: MaglevOptions = {}): Maglev {
    checkHosts(hosts);
    return this.#make(() => new CoreMaglev(this.#tables, this.#tables.buildMaglev(hosts, options)));
  }

  ringHash(hosts: readonly Host[], options: RingHashOptions = {}): RingHash {
    checkHosts(hosts);
    return this.#make(() => new CoreRing(this.#tables, this.#tables.buildRing(hosts, options)));
  }

  leastRequest(hosts: readonly Host[], { choiceCount = 2, seed }: LeastRequestOptions = {}): LeastRequest {
    checkHosts(hosts);
    const start = readSeed(seed);
    return this.#make(() => {
      const records = new HostRecords(this.#owner, hosts);
      try {
        const members = hosts.map((host, at) => ({ weight: host.weight ?? 1, record: records.addresses[at]! }));
        const plan = this.#tables.buildLeastRequest(members, { choiceCount });
        return new CoreLeastRequest(this.#tables, plan, this.#open(plan, start), records);
      } catch (error) {
        records.free();
        throw error;
      }
    });
  }

  roundRobin(hosts: readonly Host[], { seed }: SeedOptions = {}): RoundRobin {
    checkHosts(hosts);
    const start = readSeed(seed);
    return this.#make(() => {
      const plan = this.#tables.buildRoundRobin(hosts);
      return new CoreRoundRobin(this.#tables, plan, this.#open(plan, start));
    });
  }

  xxHash64(data: string | Uint8Array, seed = 0n): bigint {
    checkData('data', data);
    checkBigint('seed', seed);
    return this.#kernel.xxHash64(data, seed);
  }

  murmurHash2(data: string | Uint8Array, seed: bigint = STD_HASH_SEED): bigint {
    checkData('data', data);
    checkBigint('seed', seed);
    return this.#kernel.murmurHash2(data, seed);
  }

  #open(plan: PickPlan, seed: number) {
    return openPicker(this.#kernel, plan, seed);
  }

  #allocateCell(): number {
    return this.#make(() => this.#owner.cells.allocate(1));
  }

  #make<Made>(make: () => Made): Made {
    return inCoreTerms(this.#maxMemoryMiB, make);
  }
}

function readSeed(seed: number | undefined): number {
  if (seed === undefined) return SYSTEM_RANDOM.u32();
  checkWhole('seed', seed, 0, Number.MAX_SAFE_INTEGER);
  return seed;
}
