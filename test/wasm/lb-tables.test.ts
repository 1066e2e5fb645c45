import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { WeirError } from '../../src/base/errors.ts';
import type { HashedHost, HashRing, HashTable } from '../../src/wasm/lb.ts';
import { addresses, anyHash, anyHosts, hashOf, openLb, refuses } from '../support/lb.ts';
import { buildMaglev } from '../support/reference/maglev.ts';
import { buildRing } from '../support/reference/ring-hash.ts';

const PRIMES = [2, 3, 5, 7, 11, 13, 251, 257, 1009, 4099];
const KEYS = 20_000;
const { kernel, tables } = openLb();

/** Host of each of KEYS keys, by key of the host. */
function assignments(table: HashTable, hosts: readonly HashedHost[]): string[] {
  return Array.from({ length: KEYS }, (_, n) => hosts[table.lookupHash(hashOf(n))]!.key);
}

/** Keys whose host is another one. */
function moved(before: readonly string[], after: readonly string[]): number {
  return before.filter((host, n) => host !== after[n]).length;
}

function countOf(keys: readonly string[], key: string): number {
  return keys.filter((assigned) => assigned === key).length;
}

describe('a Maglev table', () => {
  // Recorded from another implementation's tests: tables of 7 and 17 slots over loopback addresses.
  test('equals tables recorded from another implementation', () => {
    const six = [90, 91, 92, 93, 94, 95].map((port) => ({ key: `127.0.0.1:${port}` }));
    const table = tables.buildMaglev(six, { tableSize: 7 });
    assert.deepEqual(
      Array.from({ length: 21 }, (_, hash) => table.lookup(0, hash, 0)),
      [2, 4, 0, 1, 5, 0, 3, 2, 4, 0, 1, 5, 0, 3, 2, 4, 0, 1, 5, 0, 3],
    );
    assert.deepEqual([table.minEntriesPerHost, table.maxEntriesPerHost], [1, 2]);
    const weighted = tables.buildMaglev(
      [
        { key: '127.0.0.1:90', weight: 1 },
        { key: '127.0.0.1:91', weight: 2 },
      ],
      { tableSize: 17 },
    );
    assert.deepEqual([weighted.minEntriesPerHost, weighted.maxEntriesPerHost], [6, 11]);
  });

  test('equals the plain twin for any hosts, sizes, hashes and attempts', () => {
    const attempt = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2 ** 32 - 1 }));
    fc.assert(
      fc.property(
        anyHosts,
        fc.constantFrom(...PRIMES),
        fc.array(anyHash),
        attempt,
        (hosts, tableSize, hashes, tried) => {
          const table = tables.buildMaglev(hosts, { tableSize });
          const twin = buildMaglev(hosts, tableSize);
          for (const hash of hashes) {
            assert.equal(table.lookupHash(hash, tried), twin.lookup(hash, tried));
            assert.equal(
              table.lookup(Number(hash >> 32n), Number(hash & 0xffff_ffffn), tried),
              table.lookupHash(hash, tried),
            );
          }
          for (let slot = 0; slot < tableSize; slot += 1) assert.equal(table.lookup(0, slot, 0), twin.slots[slot]);
          tables.free(table);
        },
      ),
      { numRuns: 150 },
    );
  });

  test('finds the slot of hashes at the edges of the arithmetic for every kind of size', () => {
    const edges = [0n, 1n, (1n << 32n) - 1n, 1n << 32n, (1n << 63n) - 1n, 1n << 63n, (1n << 64n) - 1n];
    for (const size of [2, 3, 65_537, 4_999_999, 5_000_011]) {
      const hosts = addresses(300);
      const table = tables.buildMaglev(hosts, { tableSize: size });
      const slots = Array.from({ length: 2000 }, (_, n) => hashOf(n)).concat(edges);
      // Multiples of the size and their neighbours are where a quotient that is off by one would show.
      for (const hash of edges) slots.push(hash - (hash % BigInt(size)), (hash / BigInt(size)) * BigInt(size) + 1n);
      for (const hash of slots.filter((each) => each < 1n << 64n)) {
        assert.equal(table.lookupHash(hash), table.lookup(0, Number(hash % BigInt(size)), 0), `${hash} of ${size}`);
      }
      tables.free(table);
    }
  });

  test('gives hosts of weight 1 shares within 1 entry in 100 and each a share of its weight', () => {
    const table = tables.buildMaglev(addresses(100));
    assert.deepEqual([table.minEntriesPerHost, table.maxEntriesPerHost], [655, 656]);
    const weighted = addresses(10).map((host, at) => ({ ...host, weight: at + 1 }));
    const counts = new Array<number>(10).fill(0);
    const shares = tables.buildMaglev(weighted);
    for (let slot = 0; slot < shares.size; slot += 1) counts[shares.lookup(0, slot, 0)]! += 1;
    for (const [at, count] of counts.entries()) {
      assert.ok(Math.abs(count / 65_537 / ((at + 1) / 55) - 1) < 0.01, `weight ${at + 1} has ${count} slots`);
    }
  });

  test('does not depend on the order of the host list', () => {
    const hosts = addresses(30).map((host, at) => ({ ...host, weight: (at % 3) + 1 }));
    const shuffled = hosts.map((_, at) => hosts[(at * 7) % 30]!);
    const ordered = assignments(tables.buildMaglev(hosts), hosts);
    assert.deepEqual(assignments(tables.buildMaglev(shuffled), shuffled), ordered);
  });

  test('moves few keys beside those of the host that leaves', () => {
    const hosts = addresses(100);
    const before = assignments(tables.buildMaglev(hosts), hosts);
    const rest = hosts.slice(1);
    const after = assignments(tables.buildMaglev(rest), rest);
    const lost = countOf(before, hosts[0]!.key);
    // The paper measures a few percent of needless moves at this ratio of slots to hosts.
    assert.ok(moved(before, after) - lost < KEYS * 0.03, `${moved(before, after)} moved, ${lost} had to`);
  });

  test('moves all keys of a host that leaves, and few of others, whichever hosts there are', () => {
    const SLOTS = 4099;
    const count = fc.integer({ min: 2, max: 20 });
    const shares: number[] = [];
    fc.assert(
      fc.property(count, fc.nat(60_000), fc.nat(19), (size, first, chosen) => {
        const hosts = addresses(size, first);
        const leaver = chosen % size;
        const rest = hosts.toSpliced(leaver, 1);
        const [before, after] = [hosts, rest].map((list) => tables.buildMaglev(list, { tableSize: SLOTS }));
        let others = 0;
        for (let slot = 0; slot < SLOTS; slot += 1) {
          const former = hosts[before!.lookup(0, slot, 0)]!;
          const next = rest[after!.lookup(0, slot, 0)]!;
          assert.notEqual(next, hosts[leaver]);
          if (former !== next && former !== hosts[leaver]) others += 1;
        }
        shares.push(others / SLOTS);
        assert.ok(others <= SLOTS * 0.2, `${others} of ${SLOTS}`);
        tables.free(before!);
        tables.free(after!);
      }),
      { numRuns: 60 },
    );
    // Of 20,000 choices the median moved 1.1 % and one in 3,000 more than 6 %; the worst moved 10 %.
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    assert.ok(mean < 0.03, `${mean} on average`);
  });

  test('of one host answers that host, with both gauges at 1, from a few bytes', () => {
    const table = tables.buildMaglev(addresses(1), { tableSize: 5_000_011 });
    assert.deepEqual([table.lookupHash(hashOf(1)), table.lookupHash(hashOf(2), 9)], [0, 0]);
    assert.deepEqual([table.minEntriesPerHost, table.maxEntriesPerHost, table.hostCount], [1, 1, 1]);
    assert.equal(tables.bytesOf(table), 128);
  });

  test('takes as few bytes a slot as the number of hosts needs', () => {
    for (const [count, width] of [
      [256, 1],
      [257, 2],
      [65_537, 4],
    ] as const) {
      const hosts = addresses(count);
      const table = tables.buildMaglev(hosts);
      assert.ok(tables.bytesOf(table) - 65_537 * width < 256);
      assert.equal(new Set(Array.from({ length: 65_537 }, (_, slot) => table.lookup(0, slot, 0))).size, count);
      tables.free(table);
    }
  });
});

describe('a hash ring', () => {
  // Recorded from another implementation's tests: rings of 12 entries over loopback addresses.
  const ring = (first: number, hashFunction: 'XX_HASH' | 'MURMUR_HASH_2') =>
    tables.buildRing(
      Array.from({ length: 6 }, (_, at) => ({ key: `127.0.0.1:${first + at}` })),
      { minimumRingSize: 12, hashFunction },
    );

  test('equals a ring of MurmurHash2 recorded from another implementation', () => {
    const entries = ring(80, 'MURMUR_HASH_2').entries();
    assert.deepEqual(
      entries.map(({ host, hash }) => `${80 + host} ${hash}`),
      [
        '85 1358027074129602068',
        '83 4361834613929391114',
        '84 7224494972555149682',
        '81 7701421856454313576',
        '82 8649315368077433379',
        '84 8739448859063030639',
        '81 9887544217113020895',
        '82 10150910876324007731',
        '83 15168472011420622455',
        '80 15427156902705414897',
        '85 16375050414328759093',
        '80 17613279263364193813',
      ],
    );
  });

  test('equals a ring of xxHash recorded from another implementation', () => {
    const table = ring(90, 'XX_HASH');
    assert.deepEqual(
      table.entries().map(({ host, hash }) => `${90 + host} ${hash}`),
      [
        '94 833437586790550860',
        '92 928266305478181108',
        '90 1033482794131418490',
        '95 3551244743356806947',
        '93 3851675632748031481',
        '91 5583722120771150861',
        '91 6311230543546372928',
        '93 7700377290971790572',
        '95 13144177310400110813',
        '92 13444792449719432967',
        '94 15516499411664133160',
        '90 16117243373044804889',
      ],
    );
    assert.deepEqual([table.nominalSize, table.minEntriesPerHost, table.maxEntriesPerHost], [12, 2, 2]);
    for (const [hash, host] of [
      [0n, 4],
      [(1n << 64n) - 1n, 4],
      [3551244743356806947n, 5],
      [3551244743356806948n, 3],
    ] as const) {
      assert.equal(table.lookupHash(hash), host);
    }
  });

  test('finds the first entry at or after a hash, wraps, and moves on with each attempt', () => {
    const table = ring(80, 'MURMUR_HASH_2');
    assert.equal(table.lookupHash(0n), 5);
    assert.equal(table.lookupHash((1n << 64n) - 1n), 5);
    assert.equal(table.lookupHash(1358027074129602068n), 5);
    assert.equal(table.lookupHash(1358027074129602069n), 3);
    assert.equal(table.lookupHash(0n, 1), 3);
    assert.equal(table.lookupHash((1n << 64n) - 1n, 12 + 2), 4);
    assert.deepEqual([table.size, table.nominalSize, table.minEntriesPerHost, table.maxEntriesPerHost], [12, 12, 2, 2]);
  });

  test('equals the plain twin for any hosts, sizes, hash functions, hashes and attempts', () => {
    const options = fc
      .record({
        sizes: fc.tuple(fc.integer({ min: 1, max: 1200 }), fc.integer({ min: 1, max: 1200 })),
        hashFunction: fc.constantFrom('XX_HASH' as const, 'MURMUR_HASH_2' as const),
      })
      .map(({ sizes: [a, b], hashFunction }) => ({
        minimumRingSize: Math.min(a, b),
        maximumRingSize: Math.max(a, b),
        hashFunction,
      }));
    const attempt = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2 ** 32 - 1 }));
    fc.assert(
      fc.property(anyHosts, options, fc.array(anyHash), attempt, (hosts, options, hashes, tried) => {
        const table = tables.buildRing(hosts, options);
        const twin = buildRing(hosts, options);
        assert.deepEqual(table.entries(), twin.entries);
        assert.equal(table.nominalSize, twin.nominalSize);
        const edges = twin.entries.flatMap(({ hash }) => [hash, hash - 1n, hash + 1n]);
        for (const hash of [...hashes, ...edges, 0n]) {
          assert.equal(table.lookupHash(hash, tried), twin.lookup(hash, tried), `${hash}`);
        }
        tables.free(table);
      }),
      { numRuns: 60 },
    );
  });

  test('counts its entries of more than nine in the keys that it hashes, up to a million', () => {
    const table = tables.buildRing(addresses(1), { minimumRingSize: 1_000_001 });
    const hashes = table.entries().map(({ hash }) => hash);
    assert.equal(hashes.length, 1_000_001);
    const known = new Set(hashes);
    for (const entry of [0, 9, 10, 99, 100, 999, 100_000, 999_999, 1_000_000]) {
      assert.ok(known.has(kernel.xxHash64(`10.0.0.0:8080_${entry}`)), `${entry}`);
    }
    for (let at = 1; at < hashes.length; at += 1) assert.ok(hashes[at]! >= hashes[at - 1]!);
    tables.free(table);
  });

  test('gives every host a share near its weight', () => {
    const hosts = addresses(10).map((host, at) => ({ ...host, weight: at + 1 }));
    const keys = assignments(tables.buildRing(hosts, { minimumRingSize: 65_536 }), hosts);
    for (const [at, { key }] of hosts.entries()) {
      const share = countOf(keys, key) / KEYS;
      assert.ok(Math.abs(share / ((at + 1) / 55) - 1) < 0.15, `weight ${at + 1} has ${share}`);
    }
  });

  test('moves only the keys of the host that leaves, and takes only its own when it comes', () => {
    const hosts = addresses(50);
    // Sizes that give every host as many entries with and without the one that leaves.
    const before = assignments(tables.buildRing(hosts, { minimumRingSize: 50 * 40 }), hosts);
    const rest = hosts.slice(1);
    const after = assignments(tables.buildRing(rest, { minimumRingSize: 49 * 40 }), rest);
    assert.equal(moved(before, after), countOf(before, hosts[0]!.key));
    assert.ok(countOf(before, hosts[0]!.key) > 0);
  });

  test('moves no key but those of the host that leaves, whichever hosts and keys there are', () => {
    const hostCount = fc.integer({ min: 2, max: 24 });
    const entries = fc.integer({ min: 1, max: 60 });
    const hashFunction = fc.constantFrom('XX_HASH' as const, 'MURMUR_HASH_2' as const);
    fc.assert(
      fc.property(
        fc.tuple(hostCount, entries, hashFunction, fc.nat(60_000), fc.nat(23)),
        fc.array(anyHash, { minLength: 200, maxLength: 200 }),
        ([size, each, hashFunction, first, chosen], hashes) => {
          const hosts = addresses(size, first);
          const leaver = hosts[chosen % size]!;
          const rest = hosts.filter((host) => host !== leaver);
          const [before, after] = [hosts, rest].map((list) => {
            const ringSize = list.length * each;
            return tables.buildRing(list, { minimumRingSize: ringSize, maximumRingSize: ringSize, hashFunction });
          });
          // A host may have one entry more or less where its share of the ring is no exact number.
          const isEven = (ring: HashRing | undefined): boolean =>
            ring!.minEntriesPerHost === each && ring!.maxEntriesPerHost === each;
          if (isEven(before) && isEven(after)) {
            for (const hash of hashes) {
              const former = hosts[before!.lookupHash(hash)]!;
              const next = rest[after!.lookupHash(hash)]!;
              assert.ok(former === leaver || former === next, `${former.key} to ${next.key}`);
            }
          }
          tables.free(before!);
          tables.free(after!);
        },
      ),
      { numRuns: 200 },
    );
  });

  test('of equal weights does not depend on the order of the host list', () => {
    const hosts = addresses(32);
    const shuffled = hosts.map((_, at) => hosts[(at * 7) % 32]!);
    const ordered = assignments(tables.buildRing(hosts), hosts);
    assert.deepEqual(assignments(tables.buildRing(shuffled), shuffled), ordered);
  });

  test('of more hosts than two bytes can name keeps them apart', () => {
    const hosts = addresses(65_537);
    const table = tables.buildRing(hosts);
    assert.equal(new Set(table.entries().map(({ host }) => host)).size, 65_537);
    assert.equal(table.lookupHash(kernel.xxHash64(`${hosts[65_536]!.key}_0`)), 65_536);
    tables.free(table);
  });
});

describe('what cannot be built', () => {
  const two = addresses(2);
  const weight = (value: number): HashedHost[] => [{ key: 'a' }, { key: 'b', weight: value }];
  for (const build of ['buildMaglev', 'buildRing'] as const) {
    test(`${build} refuses bad hosts, naming argument, value and limit`, () => {
      assert.throws(() => tables[build]([]), refuses('hosts', '0', '1'));
      for (const value of [0, -1, 1.5, Number.NaN, 2 ** 32]) {
        assert.throws(() => tables[build](weight(value)), refuses('hosts[1].weight', `${value}`, '4294967295'));
      }
      assert.throws(() => tables[build](weight(2 ** 32 - 1)), refuses('hosts', '4294967296', '4294967295'));
    });
  }

  test('Maglev tables refuse sizes that are too large or not prime', () => {
    for (const size of [5_000_012, 1, 0, -7, 7.5, Number.NaN]) {
      assert.throws(() => tables.buildMaglev(two, { tableSize: size }), refuses('tableSize', `${size}`, '5000011'));
    }
    for (const size of [4, 9, 65_536, 65_539 * 3]) {
      assert.throws(() => tables.buildMaglev(two, { tableSize: size }), refuses('tableSize', `${size}`, 'prime'));
    }
  });

  test('rings refuse sizes out of range or of the wrong order, and unknown hash functions', () => {
    const refused = (options: Parameters<typeof tables.buildRing>[1], ...parts: string[]): void =>
      assert.throws(() => tables.buildRing(two, options), refuses(...parts));
    refused({ minimumRingSize: 8_388_609 }, 'minimumRingSize', '8388609', '8388608');
    refused({ maximumRingSize: 8_388_609 }, 'maximumRingSize', '8388609', '8388608');
    refused({ minimumRingSize: 0 }, 'minimumRingSize', '0');
    refused({ minimumRingSize: 10, maximumRingSize: 9 }, 'minimumRingSize', '10', '9');
    refused({ hashFunction: 'CRC' as 'XX_HASH' }, 'hashFunction', 'CRC', 'XX_HASH, MURMUR_HASH_2');
  });

  test('a table that finds no memory says what asked for how much, and leaves nothing behind', () => {
    const small = openLb({ workerCount: 1, maxBytes: 4 * 1024 * 1024 });
    const full =
      (...parts: string[]) =>
      (error: unknown) =>
        error instanceof WeirError &&
        error.code === 'WEIR_SHARED_MEMORY_FULL' &&
        parts.every((part) => error.message.includes(part));
    assert.throws(
      () => small.tables.buildMaglev(two, { tableSize: 5_000_011 }),
      full('tableSize: 5000011', '5000075 bytes'),
    );
    // The table finds room here, the work space does not.
    assert.throws(() => small.tables.buildRing(two, { minimumRingSize: 150_000 }), full('minimumRingSize: 150000'));
    assert.equal(small.owner.heap.usedBytes, 0);
    assert.ok(small.tables.buildMaglev(two).lookupHash(1n) < 2);
  });
});

test('freeing and building ten thousand times leaks nothing and cuts nothing up', () => {
  const { owner, tables: many } = openLb();
  const hosts = Array.from({ length: 12 }, (_, at) => addresses(at + 1, at * 20));
  const build = (n: number): { readonly address: number } => {
    const list = hosts[n % hosts.length]!;
    return n % 2 === 0
      ? many.buildMaglev(list, { tableSize: [251, 1009, 4099][n % 3]! })
      : many.buildRing(list, { minimumRingSize: 100 + (n % 700) });
  };
  const live = Array.from({ length: 20 }, (_, n) => build(n));
  let mostInUse = 0;
  for (let n = 0; n < 10_000; n += 1) {
    many.free(live[n % 20]!);
    live[n % 20] = build(n * 7 + 3);
    mostInUse = Math.max(mostInUse, owner.heap.usedBytes);
  }
  // Work space comes and goes beside the tables, so the span is somewhat more than what lives.
  assert.ok(owner.heap.spannedBytes < mostInUse * 2, `${owner.heap.spannedBytes} bytes for ${mostInUse}`);
  assert.ok(owner.heap.freeRangeCount <= 21, `${owner.heap.freeRangeCount} holes`);
  for (const table of live) many.free(table);
  assert.equal(owner.heap.usedBytes, 0);
  assert.equal(owner.heap.freeRangeCount, 1);
});
