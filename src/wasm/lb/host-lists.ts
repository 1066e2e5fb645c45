// Host lists: the source of a cluster's hosts as a block in shared memory. Main writes it whole; each worker reads it
// before it first picks from it. A block never changes; who frees it makes sure that nobody reads it any more
// (Reclaimer).

import {
  BALANCER_CYCLE,
  BALANCER_LEAST_REQUEST,
  BALANCER_MAGLEV,
  BALANCER_RANDOM,
  BALANCER_RING,
  BALANCER_SCHEDULE,
  LISTS_ROOT,
  LISTS_WORDS,
  SHARE_PANIC,
  SOURCE_BOUNDED,
  SOURCE_LIST,
  SOURCE_NONE,
  SOURCE_SHARES,
  SOURCE_SUBSETS,
  SOURCE_TURNS,
  SOURCE_ZONES,
  TABLE_BODY,
  ZONES_DIRECT,
  ZONES_FAIL_IN_PANIC,
  ZONES_PANIC,
} from '../../../assembly/layout/lb.ts';
import type { SharedMemory } from '../shared-memory.ts';
import type { SharedMemoryOwner } from '../shared-memory-owner.ts';
import { allocateFor } from './arguments.ts';
import {
  type BoundedHosts,
  type HostList,
  type HostShares,
  type HostSource,
  type HostSubsets,
  type HostTurns,
  type HostZones,
  NO_HOSTS,
} from './host-source.ts';

const BALANCER_CODES = {
  cycle: BALANCER_CYCLE,
  random: BALANCER_RANDOM,
  'least-request': BALANCER_LEAST_REQUEST,
  schedule: BALANCER_SCHEDULE,
  ring: BALANCER_RING,
  maglev: BALANCER_MAGLEV,
} as const satisfies Record<HostList['plan']['kind'], number>;

const SHARE_WORDS = 5;

/** Main: returns the address of the block. @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing is left behind then. */
export function writeHostLists({ heap, shared }: SharedMemoryOwner, source: HostSource): number {
  const writer = new SourceWriter();
  const root = writer.write(source);
  const { words } = writer;
  const address = allocateFor(heap, TABLE_BODY + words.length * 4, 'host lists');
  const { i32 } = shared;
  i32[(address + LISTS_WORDS) >>> 2] = words.length;
  i32[(address + LISTS_ROOT) >>> 2] = root;
  i32.set(words, (address + TABLE_BODY) >>> 2);
  return address;
}

/** Puts sources one behind the other, those that are named before those that name them. */
class SourceWriter {
  readonly words: number[] = [];

  /** Returns the offset of the source in words. */
  write(source: HostSource): number {
    switch (source.kind) {
      case 'none':
        return this.#put([SOURCE_NONE]);
      case 'list':
        return this.#writeList(source);
      case 'bounded':
        return this.#writeBounded(source);
      case 'shares':
        return this.#writeShares(source);
      case 'turns':
        return this.#writeTurns(source);
      case 'zones':
        return this.#writeZones(source);
      case 'subsets':
        return this.#writeSubsets(source);
    }
  }

  #writeList({ hosts, plan, slot }: HostList): number {
    const address = 'address' in plan ? plan.address : 0;
    const at = this.#put([SOURCE_LIST, BALANCER_CODES[plan.kind], address, slot, hosts.length]);
    for (let index = 0; index < hosts.length; index += 1) this.words.push(hosts[index]!);
    return at;
  }

  #writeBounded({ table, percent, shares }: BoundedHosts): number {
    const list = this.write(table);
    const at = this.#put([SOURCE_BOUNDED, list, percent, shares.length]);
    for (const word of new Uint32Array(Float64Array.from(shares).buffer)) this.words.push(word);
    return at;
  }

  #writeShares({ shares }: HostShares): number {
    const rows = shares.flatMap(({ upTo, source, isPanic, priority, availability }) => [
      upTo,
      this.write(source),
      isPanic ? SHARE_PANIC : 0,
      priority,
      availability,
    ]);
    return this.#put([SOURCE_SHARES, shares.length, ...rows]);
  }

  #writeTurns({ schedule, sources }: HostTurns): number {
    const rows = sources.map((source) => this.write(source));
    return this.#put([SOURCE_TURNS, schedule.address, sources.length, ...rows]);
  }

  #writeZones({ isDirect, isPanic, failsInPanic, localShare, any, zones }: HostZones): number {
    const flags =
      (isDirect ? ZONES_DIRECT : 0) | (isPanic ? ZONES_PANIC : 0) | (failsInPanic ? ZONES_FAIL_IN_PANIC : 0);
    const all = this.write(any);
    const rows = zones.flatMap(({ upTo, source }) => [upTo, this.write(source)]);
    return this.#put([SOURCE_ZONES, flags, localShare, all, zones.length, ...rows]);
  }

  #writeSubsets({ any, defaultSubset, names, sourceOf }: HostSubsets): number {
    const ends = [this.write(any), this.write(defaultSubset)];
    const rows = names.map((_, index) => this.write(sourceOf(index)));
    const text = Buffer.from(names.join('\n'));
    const at = this.#put([SOURCE_SUBSETS, ...ends, text.length, names.length]);
    for (const row of rows) this.words.push(row);
    const padded = Buffer.concat([text, Buffer.alloc(3)]);
    for (let from = 0; from < text.length; from += 4) this.words.push(padded.readUInt32LE(from));
    return at;
  }

  #put(words: readonly number[]): number {
    const at = this.words.length;
    this.words.push(...words);
    return at;
  }
}

/** Reads the block at an address; lists of hosts are views of it. */
export function readHostLists(shared: SharedMemory, address: number): HostSource {
  shared.reach(address + TABLE_BODY);
  const count = shared.i32[(address + LISTS_WORDS) >>> 2]! >>> 0;
  const root = shared.i32[(address + LISTS_ROOT) >>> 2]! >>> 0;
  shared.reach(address + TABLE_BODY + count * 4);
  return readSource(new Uint32Array(shared.memory.buffer, address + TABLE_BODY, count), root);
}

function readSource(words: Uint32Array<ArrayBufferLike>, at: number): HostSource {
  switch (words[at]) {
    case SOURCE_LIST:
      return readList(words, at);
    case SOURCE_BOUNDED:
      return readBounded(words, at);
    case SOURCE_SHARES:
      return readShares(words, at);
    case SOURCE_TURNS:
      return readTurns(words, at);
    case SOURCE_ZONES:
      return readZones(words, at);
    case SOURCE_SUBSETS:
      return readSubsets(words, at);
    default:
      return NO_HOSTS;
  }
}

function readList(words: Uint32Array<ArrayBufferLike>, at: number): HostList {
  const hostCount = words[at + 4]!;
  const hosts = words.subarray(at + 5, at + 5 + hostCount);
  return { kind: 'list', hosts, plan: readPlan(words[at + 1]!, hostCount, words[at + 2]!), slot: words[at + 3]! };
}

function readBounded(words: Uint32Array<ArrayBufferLike>, at: number): BoundedHosts {
  const end = at + 4 + 2 * words[at + 3]!;
  // A copy, since words need not lie where doubles do.
  const shares = new Float64Array(Uint32Array.from(words.subarray(at + 4, end)).buffer);
  return { kind: 'bounded', table: readList(words, words[at + 1]!), percent: words[at + 2]!, shares };
}

function readPlan(code: number, hostCount: number, address: number): HostList['plan'] {
  switch (code) {
    case BALANCER_LEAST_REQUEST:
      return { kind: 'least-request', hostCount, address };
    case BALANCER_SCHEDULE:
      return { kind: 'schedule', hostCount, address };
    case BALANCER_RING:
      return { kind: 'ring', hostCount, address };
    case BALANCER_MAGLEV:
      return { kind: 'maglev', hostCount, address };
    case BALANCER_RANDOM:
      return { kind: 'random', hostCount };
    default:
      return { kind: 'cycle', hostCount };
  }
}

function readShares(words: Uint32Array<ArrayBufferLike>, at: number): HostShares {
  const shares = Array.from({ length: words[at + 1]! }, (_, index) => {
    const row = at + 2 + SHARE_WORDS * index;
    return {
      upTo: words[row]!,
      source: readSource(words, words[row + 1]!),
      isPanic: (words[row + 2]! & SHARE_PANIC) !== 0,
      priority: words[row + 3]!,
      availability: words[row + 4]!,
    };
  });
  return { kind: 'shares', shares };
}

function readTurns(words: Uint32Array<ArrayBufferLike>, at: number): HostTurns {
  const hostCount = words[at + 2]!;
  const sources = Array.from(words.subarray(at + 3, at + 3 + hostCount), (source) => readSource(words, source));
  return { kind: 'turns', schedule: { kind: 'schedule', hostCount, address: words[at + 1]! }, sources };
}

function readZones(words: Uint32Array<ArrayBufferLike>, at: number): HostZones {
  const flags = words[at + 1]!;
  const zones = Array.from({ length: words[at + 4]! }, (_, index) => {
    const row = at + 5 + 2 * index;
    return { upTo: words[row]!, source: readSource(words, words[row + 1]!) };
  });
  return {
    kind: 'zones',
    isDirect: (flags & ZONES_DIRECT) !== 0,
    isPanic: (flags & ZONES_PANIC) !== 0,
    failsInPanic: (flags & ZONES_FAIL_IN_PANIC) !== 0,
    localShare: words[at + 2]!,
    any: readSource(words, words[at + 3]!),
    zones,
  };
}

function readSubsets(words: Uint32Array<ArrayBufferLike>, at: number): HostSubsets {
  const count = words[at + 4]!;
  const rows = words.subarray(at + 5, at + 5 + count);
  const text = Buffer.from(words.buffer, words.byteOffset + (at + 5 + count) * 4, words[at + 3]!).toString();
  return {
    kind: 'subsets',
    any: readSource(words, words[at + 1]!),
    defaultSubset: readSource(words, words[at + 2]!),
    names: count === 0 ? [] : text.split('\n'),
    sourceOf: (index) => readSource(words, rows[index]!),
  };
}
