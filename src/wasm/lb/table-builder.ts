// Main's side of the lb module: builds tables in the shared heap, from where every worker reads them, and frees them.
// A table is whole when its builder returns; its address (or plan) is what is published. Temporary space comes from
// the same heap and goes back before the builder returns, whatever happens.

import {
  LEAST_CHOICES,
  LEAST_RECORDS,
  LEAST_STATE_SIZE,
  QUEUE_ENTRIES,
  QUEUE_ENTRY_SIZE,
  SCHEDULE_BIAS,
  SCHEDULE_QUEUE_STRIDE,
  SCHEDULE_QUEUES,
  SCHEDULE_RECORDS,
  TABLE_BODY,
  TABLE_HOSTS,
} from '../../../assembly/layout/lb.ts';
import { BLOCK_ALIGNMENT } from '../../../assembly/layout/shared-memory.ts';
import type { SharedMemoryOwner } from '../shared-memory-owner.ts';
import { allocateFor, argumentError, checkHosts, checkWhole, type WeightedHost, weightsOf } from './arguments.ts';
import { HashRing, MaglevTable } from './hash-table.ts';
import type { HashedHost } from './hashed-hosts.ts';
import { writeHostLists } from './host-lists.ts';
import type { PickPlan, SchedulePlan } from './host-picker.ts';
import type { HostSource } from './host-source.ts';
import type { LbKernel } from './kernel.ts';
import { buildMaglev, type MaglevOptions } from './maglev-builder.ts';
import { buildRing, type RingOptions } from './ring-builder.ts';

/** Beyond so many draws per host, the chance that a given host is not among them is below e^-64. */
const MOST_DRAWS_PER_HOST = 64;
const MOST_DRAWS = 0xffff_ffff;

export interface LeastRequestHost extends WeightedHost {
  /** Address of the host's record, where its active requests are counted. */
  readonly record: number;
}

export interface LeastRequestOptions {
  /** Hosts drawn per pick, 2 or more, default 2; more than 64 per host are not told from 64. */
  readonly choiceCount?: number;
  /** `FULL_SCAN`: the least busy of all, any of equals. Default `N_CHOICES`. Equal weights only. */
  readonly selection?: 'N_CHOICES' | 'FULL_SCAN';
  /** Set: always a schedule by weight / (active + 1)^bias; 0 or more. Unset: 1, where weights differ. */
  readonly activeRequestBias?: number;
}

export class LbTables {
  readonly #owner: SharedMemoryOwner;
  readonly #kernel: LbKernel;

  constructor(owner: SharedMemoryOwner, kernel: LbKernel) {
    this.#owner = owner;
    this.#kernel = kernel;
  }

  /** @throws WeirError WEIR_LB_ARGUMENT or WEIR_SHARED_MEMORY_FULL; nothing is left behind then. */
  buildMaglev(hosts: readonly HashedHost[], options: MaglevOptions = {}): MaglevTable {
    return new MaglevTable(this.#kernel, buildMaglev(this.#owner, this.#kernel, hosts, options));
  }

  /** @throws WeirError WEIR_LB_ARGUMENT or WEIR_SHARED_MEMORY_FULL; nothing is left behind then. */
  buildRing(hosts: readonly HashedHost[], options: RingOptions = {}): HashRing {
    return new HashRing(this.#kernel, buildRing(this.#owner, this.#kernel, hosts, options));
  }

  /** Round robin: plain turns when weights are equal, else by earliest deadline. */
  buildRoundRobin(hosts: readonly WeightedHost[]): PickPlan {
    const weights = weightsOf(hosts);
    if (areEqual(weights)) return { kind: 'cycle', hostCount: hosts.length };
    return this.#buildSchedule(weights, undefined, 0);
  }

  /**
   * Earliest deadline over any finite weights above 0, whole or not, equal or not.
   * @param load where the requests in flight of each entry are counted, and the exponent by which they count against it.
   */
  buildTurns(
    weights: Float64Array,
    load?: { readonly records: readonly number[]; readonly bias: number },
  ): SchedulePlan {
    return this.#buildSchedule(weights, load?.records, load?.bias ?? 0);
  }

  /** Gives an entry of a published schedule another weight, above 0; it counts from the entry's next pick on. */
  setWeight({ address }: SchedulePlan, index: number, weight: number): void {
    this.#owner.shared.f64[(address + TABLE_BODY) / 8 + index] = weight;
  }

  /** Least request: draws or scans when weights are equal and no bias is asked for, else a schedule. */
  buildLeastRequest(hosts: readonly LeastRequestHost[], options: LeastRequestOptions = {}): PickPlan {
    const { choiceCount = 2, selection = 'N_CHOICES', activeRequestBias } = options;
    const weights = weightsOf(hosts);
    checkWhole('choiceCount', choiceCount, 2, MOST_DRAWS);
    checkBias(activeRequestBias);
    const records = hosts.map((host) => host.record);
    if (activeRequestBias !== undefined || !areEqual(weights)) {
      return this.#buildSchedule(weights, records, activeRequestBias ?? 1);
    }
    const draws = selection === 'FULL_SCAN' ? 0 : Math.min(choiceCount, hosts.length * MOST_DRAWS_PER_HOST);
    return this.#buildDraws(records, draws);
  }

  /** Any host, whatever its weight. */
  buildRandom(hosts: readonly unknown[]): PickPlan {
    checkHosts(hosts);
    return { kind: 'random', hostCount: hosts.length };
  }

  /** A source of hosts as workers read it; the balancers that it names are freed by themselves. */
  buildHostLists(source: HostSource): { readonly address: number } {
    return { address: writeHostLists(this.#owner, source) };
  }

  /** Bytes of shared memory that a table or plan takes. */
  bytesOf(table: { readonly address: number } | PickPlan): number {
    return 'address' in table ? this.#owner.heap.sizeOf(table.address) : 0;
  }

  /** Gives a table or plan back. No thread may read it any more. */
  free(table: { readonly address: number } | PickPlan): void {
    if ('address' in table) this.#owner.heap.free(table.address);
  }

  /** Frees a published table or plan once every worker has confirmed a snapshot without it. */
  retire(table: { readonly address: number } | PickPlan): void {
    this.#owner.reclaimer.retire(() => this.free(table));
  }

  #buildDraws(records: readonly number[], draws: number): PickPlan {
    const { shared, heap } = this.#owner;
    const hostCount = records.length;
    const recordsAt = TABLE_BODY + shared.slabCount * LEAST_STATE_SIZE;
    const address = allocateFor(heap, recordsAt + hostCount * 4, `hosts: ${hostCount} hosts`);
    const { i32 } = shared;
    i32[(address + TABLE_HOSTS) >>> 2] = hostCount;
    i32[(address + LEAST_CHOICES) >>> 2] = draws;
    i32[(address + LEAST_RECORDS) >>> 2] = recordsAt;
    i32.set(records, (address + recordsAt) >>> 2);
    return { kind: 'least-request', hostCount, address };
  }

  #buildSchedule(weights: Float64Array, records: readonly number[] | undefined, bias: number): SchedulePlan {
    const { shared, heap } = this.#owner;
    const hostCount = weights.length;
    const recordsAt = TABLE_BODY + hostCount * 8;
    const queuesAt = align(recordsAt + (records === undefined ? 0 : hostCount * 4));
    const stride = align(QUEUE_ENTRIES + hostCount * QUEUE_ENTRY_SIZE);
    const address = allocateFor(heap, queuesAt + shared.slabCount * stride, `hosts: ${hostCount} hosts`);
    const { i32, f64 } = shared;
    i32[(address + TABLE_HOSTS) >>> 2] = hostCount;
    i32[(address + SCHEDULE_RECORDS) >>> 2] = records === undefined ? 0 : recordsAt;
    i32[(address + SCHEDULE_QUEUES) >>> 2] = queuesAt;
    i32[(address + SCHEDULE_QUEUE_STRIDE) >>> 2] = stride;
    f64[(address + SCHEDULE_BIAS) / 8] = bias;
    f64.set(weights, (address + TABLE_BODY) / 8);
    if (records !== undefined) i32.set(records, (address + recordsAt) >>> 2);
    return { kind: 'schedule', hostCount, address };
  }
}

function checkBias(bias: number | undefined): void {
  if (bias === undefined || (bias >= 0 && bias < Number.POSITIVE_INFINITY)) return;
  throw argumentError('activeRequestBias', `${bias} is not a finite number of 0 or more`);
}

function areEqual(weights: Float64Array): boolean {
  return weights.every((weight) => weight === weights[0]);
}

/** Each slab's stretch begins on cache lines of its own. */
function align(size: number): number {
  return Math.ceil(size / BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT;
}
