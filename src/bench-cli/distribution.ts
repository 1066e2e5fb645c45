// How balancers spread: keys over hosts, and how many keys find another host when one leaves or joins. Nothing is timed,
// so the figures are the same on every machine.

import type { Core, Host } from '../core/index.ts';

export interface DistributionOptions {
  readonly hosts: readonly number[];
  /** Keys that are looked up, or picks that are made where there are no keys. */
  readonly keys: number;
  /** Weights of the hosts, repeated in turn. */
  readonly weights: readonly number[];
  readonly tableSizes: readonly number[];
  readonly ringSizes: readonly number[];
}

/** Load by host relative to its fair share: 1 is what its weight asks for. */
export interface Spread {
  readonly balancer: string;
  readonly hosts: number;
  readonly min: number;
  readonly max: number;
  readonly stddev: number;
  readonly loads: Float64Array;
  /** Only of balancers that know keys. */
  readonly moved: { readonly whenOneLeaves: Movement; readonly whenOneJoins: Movement } | undefined;
}

/** Whole numbers: Node 26.10 now and then gave the fractions of one object to the one made before it, on a busy machine. */
export interface Movement {
  readonly keys: number;
  /** Keys that found another host. */
  readonly moved: number;
  /** Those that had to: of the host that left, or that went to the new one. */
  readonly needed: number;
}

interface KeyBalancer {
  readonly name: string;
  /** Host index by key. */
  assign(hosts: readonly Host[], keys: number): Uint32Array;
}

interface TurnBalancer {
  readonly name: string;
  /** Host indexes by pick. */
  pickMany(hosts: readonly Host[], picks: number): Uint32Array;
}

/** A new port at the end, as when a deployment grows. */
function hostsOf(count: number, weights: readonly number[]): Host[] {
  return Array.from({ length: count }, (_, index) => ({
    key: `10.0.${index >> 8}.${index & 255}:8080`,
    weight: weights[index % weights.length]!,
  }));
}

export function* spreads(core: Core, options: DistributionOptions): Generator<Spread> {
  for (const count of options.hosts) {
    const hosts = hostsOf(count, options.weights);
    for (const balancer of keyBalancers(core, options)) yield keySpread(balancer, hosts, options);
    for (const balancer of turnBalancers(core)) {
      yield { ...spreadOf(balancer.name, hosts, balancer.pickMany(hosts, options.keys)), moved: undefined };
    }
  }
}

function keySpread(balancer: KeyBalancer, hosts: readonly Host[], options: DistributionOptions): Spread {
  const { keys, weights } = options;
  const before = balancer.assign(hosts, keys);
  const gone = hosts.length >> 1;
  const fewer = hosts.toSpliced(gone, 1);
  const whenOneLeaves =
    fewer.length === 0
      ? { keys, moved: keys, needed: keys }
      : movement(before, balancer.assign(fewer, keys), hosts, fewer, hosts[gone]!.key);
  const more = hostsOf(hosts.length + 1, weights);
  const whenOneJoins = movement(before, balancer.assign(more, keys), hosts, more, more.at(-1)!.key);
  return { ...spreadOf(balancer.name, hosts, before), moved: { whenOneLeaves, whenOneJoins } };
}

/** @param changed  key of the host that is in only one of the lists. */
function movement(
  before: Uint32Array,
  after: Uint32Array,
  hostsBefore: readonly Host[],
  hostsAfter: readonly Host[],
  changed: string,
): Movement {
  let moved = 0;
  let needed = 0;
  for (let key = 0; key < before.length; key += 1) {
    const from = hostsBefore[before[key]!]!.key;
    const to = hostsAfter[after[key]!]!.key;
    if (from !== to) moved += 1;
    if (from === changed || to === changed) needed += 1;
  }
  return { keys: before.length, moved, needed };
}

function spreadOf(balancer: string, hosts: readonly Host[], assigned: Uint32Array): Omit<Spread, 'moved'> {
  const counts = new Float64Array(hosts.length);
  for (const host of assigned) counts[host]! += 1;
  const totalWeight = hosts.reduce((sum, { weight = 1 }) => sum + weight, 0);
  const loads = counts.map((count, at) => count / ((assigned.length * (hosts[at]!.weight ?? 1)) / totalWeight));
  const variance = loads.reduce((sum, load) => sum + (load - 1) ** 2, 0) / loads.length;
  return {
    balancer,
    hosts: hosts.length,
    min: loads.reduce((a, b) => Math.min(a, b)),
    max: loads.reduce((a, b) => Math.max(a, b)),
    stddev: Math.sqrt(variance),
    loads,
  };
}

function keyBalancers(core: Core, { tableSizes, ringSizes }: DistributionOptions): KeyBalancer[] {
  const maglevs = tableSizes.map((tableSize) => ({
    name: `maglev ${tableSize}`,
    assign: (hosts: readonly Host[], keys: number) => assignKeys(core.maglev(hosts, { tableSize }), keys),
  }));
  const rings = ringSizes.map((minimumRingSize) => ({
    name: `ring-hash ${minimumRingSize}`,
    assign: (hosts: readonly Host[], keys: number) => assignKeys(core.ringHash(hosts, { minimumRingSize }), keys),
  }));
  return [...maglevs, ...rings];
}

interface KeyTable {
  lookupKey(key: string): number;
  free(): void;
}

function assignKeys(table: KeyTable, keys: number): Uint32Array {
  try {
    return Uint32Array.from({ length: keys }, (_, key) => table.lookupKey(`key-${key}`));
  } finally {
    table.free();
  }
}

/** Seeded, so that two runs give the same text. */
const SEED = 1;

function turnBalancers(core: Core): TurnBalancer[] {
  return [
    {
      name: 'round robin',
      pickMany(hosts, picks) {
        const balancer = core.roundRobin(hosts, { seed: SEED });
        const picked = Uint32Array.from({ length: picks }, () => balancer.pick());
        balancer.free();
        return picked;
      },
    },
    { name: 'least request', pickMany: (hosts, picks) => pickByLoad(core, hosts, picks) },
  ];
}

/** Requests that stay active for as many picks as there are hosts: one each on average. */
function pickByLoad(core: Core, hosts: readonly Host[], picks: number): Uint32Array {
  const balancer = core.leastRequest(hosts, { seed: SEED });
  const picked = new Uint32Array(picks);
  for (let at = 0; at < picks; at += 1) {
    if (at >= hosts.length) balancer.finish(picked[at - hosts.length]!);
    picked[at] = balancer.pick();
    balancer.start(picked[at]!);
  }
  balancer.free();
  return picked;
}
