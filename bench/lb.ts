// Hash tables and balancers: ns per lookup, key and pick, time per build, warm and cold, beside plain typed arrays in
// the same run (a shared machine makes the ratio say more than the figure). Medians of many rounds.
// node bench/lb.ts

import { compileModule } from '../src/wasm/instantiate.ts';
import { LbKernel, LbTables, openPicker } from '../src/wasm/lb.ts';
import { SharedMemoryOwner } from '../src/wasm/shared-memory-owner.ts';

const HOSTS = 100;
const KEYS = 4096;
const CALLS = 200_000;
const ROUNDS = 31;

const owner = new SharedMemoryOwner({ workerCount: 2 });
const kernel = new LbKernel(owner.shared, compileModule('lb'));
const tables = new LbTables(owner, kernel);
const hosts = Array.from({ length: HOSTS }, (_, at) => ({ key: `10.0.0.${at}:8080` }));
const halves = new Uint32Array(2 * KEYS).map((_, at) => Math.imul(at + 1, 0x9e3779b1) ^ Math.imul(at, 0x85ebca6b));
const hashes = new BigUint64Array(halves.buffer);
// Flat one-byte strings, as a codec makes them of a head; strings just put together cost some 30 ns more.
const keys = Array.from(halves.subarray(0, KEYS), (n) =>
  Buffer.from(`user-session-${n.toString(16).padStart(8, '0')}`).toString('latin1'),
);

interface Row {
  readonly name: string;
  readonly limit: string;
  readonly unit: number;
  readonly calls: number;
  run(calls: number): number;
}

const rows: Row[] = [];
/** Kept so that no loop is taken for useless. */
let kept = 0;

/** Each has a loop of its own: through a shared one no call would be inlined, as it is in a worker. */
function each(name: string, limit: string, run: (calls: number) => number): void {
  rows.push({ name, limit, unit: 1, calls: CALLS, run });
}

function build(
  name: string,
  limit: string,
  unit: number,
  calls: number,
  make: () => { readonly address: number },
): void {
  const run = (calls: number): number => {
    let last = 0;
    for (let n = 0; n < calls; n += 1) {
      const table = make();
      tables.free(table);
      last = table.address;
    }
    return last;
  };
  rows.push({ name, limit, unit, calls, run });
}

function timeOf(row: Row): number {
  const start = process.hrtime.bigint();
  kept += row.run(row.calls);
  return Number(process.hrtime.bigint() - start) / row.calls / row.unit;
}

const MASK = KEYS - 1;

// The least that a lookup in JavaScript can cost: one load at an index that is already there.
const plain = new Uint8Array(65_536).map((_, at) => at % HOSTS);
each('plain: typed array at an index', '', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    const at = n & MASK;
    sum = (sum + plain[halves[2 * at]! & 0xffff]!) | 0;
  }
  return sum;
});
each('plain: two draws by Math.random', '', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    const a = (Math.random() * HOSTS) | 0;
    const b = (Math.random() * HOSTS) | 0;
    sum = (sum + (plain[b]! < plain[a]! ? b : a)) | 0;
  }
  return sum;
});
each('plain: characters of a string of 21', '', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    const at = n & MASK;
    const key = keys[at]!;
    for (let index = 0; index < key.length; index += 1) plain[index] = key.charCodeAt(index);
    sum = (sum + plain[20]!) | 0;
  }
  return sum;
});
const maglev = tables.buildMaglev(hosts);
each('Maglev 65537, by halves of a hash', '6', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    const at = n & MASK;
    sum = (sum + maglev.lookup(halves[2 * at + 1]!, halves[2 * at]!, 0)) | 0;
  }
  return sum;
});
each('Maglev 65537, by a bigint', '', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    const at = n & MASK;
    sum = (sum + maglev.lookupHash(hashes[at]!)) | 0;
  }
  return sum;
});
each('Maglev 65537, by a string of 21', '80', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    const at = n & MASK;
    sum = (sum + maglev.hashAndLookup(keys[at]!)) | 0;
  }
  return sum;
});
const ring = tables.buildRing(hosts);
each('ring 1024, by halves of a hash', '15', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    const at = n & MASK;
    sum = (sum + ring.lookup(halves[2 * at + 1]!, halves[2 * at]!, 0)) | 0;
  }
  return sum;
});
each('ring 1024, by a bigint', '', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    const at = n & MASK;
    sum = (sum + ring.lookupHash(hashes[at]!)) | 0;
  }
  return sum;
});
each('ring 1024, by a string of 21', '80', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    const at = n & MASK;
    sum = (sum + ring.hashAndLookup(keys[at]!)) | 0;
  }
  return sum;
});
const largeRing = tables.buildRing(hosts, { minimumRingSize: 1_048_576 });
each('ring 1 Mi, by halves of a hash', '80', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    const at = n & MASK;
    sum = (sum + largeRing.lookup(halves[2 * at + 1]!, halves[2 * at]!, 0)) | 0;
  }
  return sum;
});
each('ring 1 Mi, by a bigint', '', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    const at = n & MASK;
    sum = (sum + largeRing.lookupHash(hashes[at]!)) | 0;
  }
  return sum;
});
each('ring 1 Mi, by a string of 21', '', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    const at = n & MASK;
    sum = (sum + largeRing.hashAndLookup(keys[at]!)) | 0;
  }
  return sum;
});
const records = hosts.map((_, at) => ({ record: owner.recordAllocator.allocateHost(1), weight: at + 1 }));
const equal = records.map(({ record }) => ({ record }));
const draws = openPicker(kernel, tables.buildLeastRequest(equal), 1);
each('pick: least request, two draws', '6', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    sum = (sum + draws.pick()) | 0;
  }
  return sum;
});
const scan = openPicker(kernel, tables.buildLeastRequest(equal, { selection: 'FULL_SCAN' }), 1);
each('pick: least request, full scan', '', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    sum = (sum + scan.pick()) | 0;
  }
  return sum;
});
const weighted = openPicker(kernel, tables.buildLeastRequest(records), 1);
each('pick: least request, weights', '', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    sum = (sum + weighted.pick()) | 0;
  }
  return sum;
});
const turns = openPicker(kernel, tables.buildRoundRobin(records), 1);
each('pick: round robin, weights', '', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    sum = (sum + turns.pick()) | 0;
  }
  return sum;
});
const cycle = openPicker(kernel, tables.buildRoundRobin(equal.map(() => ({}))), 1);
each('pick: round robin, equal', '', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    sum = (sum + cycle.pick()) | 0;
  }
  return sum;
});
const random = openPicker(kernel, tables.buildRandom(hosts), 1);
each('pick: random', '', (calls) => {
  let sum = 0;
  for (let n = 0; n < calls; n += 1) {
    sum = (sum + random.pick()) | 0;
  }
  return sum;
});
build('build: Maglev 65537, us', '1600', 1e3, 4, () => tables.buildMaglev(hosts));
build('build: ring 1024, us', '45', 1e3, 100, () => tables.buildRing(hosts));
build('build: ring 1 Mi, ms', '180', 1e6, 1, () => tables.buildRing(hosts, { minimumRingSize: 1_048_576 }));

const cold = rows.map((row) => timeOf({ ...row, calls: 1 }));
const times = rows.map(() => [] as number[]);
// Row by row within a round, so that a busy moment of the machine falls on all alike.
for (let round = 0; round < ROUNDS; round += 1) for (const [at, row] of rows.entries()) times[at]!.push(timeOf(row));
const sorted = times.map((all) => all.toSorted((a, b) => a - b));
const reference = sorted[0]![ROUNDS >> 1]!;
console.log(`${HOSTS} hosts, ns unless said otherwise (${kept === 0 ? '' : 'medians of'} ${ROUNDS} rounds)`);
console.table(
  Object.fromEntries(
    rows.map((row, at) => [
      row.name,
      {
        median: round1(sorted[at]![ROUNDS >> 1]!),
        best: round1(sorted[at]![0]!),
        'must reach': row.limit,
        'to plain load': row.unit > 1 ? '' : round1(sorted[at]![ROUNDS >> 1]! / reference),
        'first call': round1(cold[at]!),
      },
    ]),
  ),
);

function round1(value: number): number {
  return Math.round(value * 10) / 10;
}
