import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WeirError } from '../../../src/base/errors.ts';
import { PlainMaglev } from '../../../src/bench-cli/twins/maglev.ts';
import { PlainRing } from '../../../src/bench-cli/twins/ring-hash.ts';
import { plainXxHash64 } from '../../../src/bench-cli/twins/xxhash64.ts';
import { type Core, createCore } from '../../../src/core/index.ts';

const core = createCore();
const LOW_HALF = 0xffff_ffffn;
const encoder = new TextEncoder();

function hostsOf(count: number, weightOf: (index: number) => number = () => 1) {
  return Array.from({ length: count }, (_, index) => ({ key: `10.0.0.${index}:80`, weight: weightOf(index) }));
}

function hashes(count: number): bigint[] {
  return Array.from({ length: count }, (_, n) => plainXxHash64(encoder.encode(`key-${n}`)));
}

describe('the hashes of the core', () => {
  it('give the published values', () => {
    assert.equal(core.xxHash64(''), 17241709254077376921n);
    assert.equal(core.xxHash64('foo'), 3728699739546630719n);
    assert.equal(core.xxHash64('bar', core.xxHash64('foo')), 17745830980996999794n);
    assert.equal(core.murmurHash2('foo'), 9631199822919835226n);
  });

  it('take text as its UTF-8, of any length', () => {
    for (const text of ['ä', '…'.repeat(11), 'x'.repeat(31), 'x'.repeat(32), 'ü'.repeat(5000)]) {
      assert.equal(core.xxHash64(text), core.xxHash64(encoder.encode(text)));
      assert.equal(core.xxHash64(text, 7n), plainXxHash64(encoder.encode(text), 7n));
      assert.equal(core.murmurHash2(text), core.murmurHash2(encoder.encode(text)));
    }
  });
});

describe('tables by key', () => {
  const cases = [
    {
      name: 'a Maglev table',
      make: (hosts: ReturnType<typeof hostsOf>) => core.maglev(hosts, { tableSize: 1009 }),
      twin: (hosts: ReturnType<typeof hostsOf>) => new PlainMaglev(hosts, 1009),
    },
    {
      name: 'a ring',
      make: (hosts: ReturnType<typeof hostsOf>) => core.ringHash(hosts, { minimumRingSize: 500 }),
      twin: (hosts: ReturnType<typeof hostsOf>) => new PlainRing(hosts, 500, 8_388_608),
    },
  ];
  for (const { name, make, twin } of cases) {
    it(`${name} answers like its plain twin, with equal and with unequal weights`, () => {
      for (const weightOf of [() => 1, (index: number) => 1 + (index % 4)]) {
        const hosts = hostsOf(13, weightOf);
        const table = make(hosts);
        const plain = twin(hosts);
        for (const hash of hashes(3000)) {
          assert.equal(table.lookup(hash), plain.lookup(Number(hash >> 32n), Number(hash & LOW_HALF)));
        }
        for (const key of ['', 'foo', 'ü'.repeat(600)]) {
          assert.equal(table.lookupKey(key), table.lookup(core.xxHash64(key)));
          assert.equal(table.lookupKey(encoder.encode(key), 2), table.lookup(core.xxHash64(key), 2));
        }
        table.free();
      }
    });

    it(`${name} finds other hosts for retries`, () => {
      const table = make(hostsOf(10));
      const first = hashes(200).map((hash) => table.lookup(hash));
      const second = hashes(200).map((hash) => table.lookup(hash, 1));
      assert.notDeepEqual(first, second);
      table.free();
    });

    it(`${name} is gone once freed, and frees its memory`, () => {
      const table = make(hostsOf(10));
      assert.ok(table.bytes > 500);
      table.free();
      table.free();
      assert.equal(table.bytes, 0);
      assert.throws(() => table.lookup(1n), { code: 'WEIR_CORE_FREED' });
      assert.throws(() => table.lookupKey('a'), { code: 'WEIR_CORE_FREED' });
    });
  }

  it('tell how many entries their hosts have', () => {
    const maglev = core.maglev(hostsOf(10), { tableSize: 101 });
    assert.deepEqual([maglev.tableSize, maglev.minEntriesPerHost, maglev.maxEntriesPerHost], [101, 10, 11]);
    const ring = core.ringHash(hostsOf(4), { minimumRingSize: 64 });
    assert.deepEqual([ring.size, ring.minHashesPerHost, ring.maxHashesPerHost], [64, 16, 16]);
    const entries = ring.ring();
    assert.equal(entries.length, 64);
    assert.ok(entries.every(({ hash }, at) => at === 0 || hash >= entries[at - 1]!.hash));
    assert.equal(ring.lookup(entries[5]!.hash), entries[5]!.host);
    assert.equal(ring.lookup(entries[5]!.hash, 1), entries[6]!.host);
    assert.equal(ring.lookup(2n ** 64n - 1n), entries[0]!.host);
  });

  it('place hosts by MurmurHash2 where asked', () => {
    const [entry] = core.ringHash([{ key: 'a' }], { minimumRingSize: 1, hashFunction: 'MURMUR_HASH_2' }).ring();
    assert.deepEqual(entry, { hash: core.murmurHash2('a_0'), host: 0 });
  });

  it('come and go ten thousand times within the same memory', () => {
    const small = createCore({ maxMemoryMiB: 4 });
    for (let n = 0; n < 10_000; n += 1) {
      small.maglev(hostsOf(1 + (n % 7)), { tableSize: 31 }).free();
      small.ringHash(hostsOf(1 + (n % 5)), { minimumRingSize: 10 + (n % 90) }).free();
      small.leastRequest(hostsOf(2)).free();
      small.roundRobin(hostsOf(3, (index) => index + 1)).free();
    }
  });
});

describe('balancers in turn', () => {
  it('round robin takes equal hosts one after the other, from where the seed says', () => {
    const balancer = core.roundRobin(hostsOf(3), { seed: 4 });
    assert.deepEqual(
      Array.from({ length: 5 }, () => balancer.pick()),
      [1, 2, 0, 1, 2],
    );
  });

  it('round robin keeps to the weights within one pick, wherever it starts', () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const balancer = core.roundRobin(
        hostsOf(3, (index) => index + 1),
        { seed },
      );
      const picked = [0, 0, 0];
      for (let n = 0; n < 600; n += 1) picked[balancer.pick()]! += 1;
      for (const [index, count] of picked.entries()) {
        assert.ok(Math.abs(count - (index + 1) * 100) <= 1, `${picked} from seed ${seed}`);
      }
      balancer.free();
    }
  });

  it('round robin is over once it is freed', () => {
    const balancer = core.roundRobin(hostsOf(1));
    balancer.free();
    assert.equal(balancer.bytes, 0);
    assert.throws(() => balancer.pick(), { code: 'WEIR_CORE_FREED' });
  });

  it('least request avoids the busy host, and counts what it is told', () => {
    const balancer = core.leastRequest(hostsOf(2), { seed: 1, choiceCount: 100 });
    balancer.start(0);
    assert.deepEqual([balancer.active(0), balancer.active(1)], [1, 0]);
    for (let n = 0; n < 100; n += 1) assert.equal(balancer.pick(), 1);
    balancer.finish(0);
    assert.equal(balancer.active(0), 0);
    assert.throws(() => balancer.finish(0), {
      code: 'WEIR_CORE_ARGUMENT',
      message: 'index: host 0 has no request active',
    });
    balancer.free();
    balancer.free();
    assert.equal(balancer.bytes, 0);
    assert.throws(() => balancer.start(0), { code: 'WEIR_CORE_FREED' });
  });

  it('least request gives the same picks from the same seed', () => {
    const picks = (seed: number): number[] => {
      const balancer = core.leastRequest(hostsOf(50), { seed });
      return Array.from({ length: 100 }, () => balancer.pick());
    };
    assert.deepEqual(picks(7), picks(7));
    assert.notDeepEqual(picks(7), picks(8));
  });

  it('least request divides by weight and load where weights differ', () => {
    const balancer = core.leastRequest(hostsOf(2, (index) => 1 + 2 * index));
    const picked = [0, 0];
    for (let n = 0; n < 400; n += 1) picked[balancer.pick()]! += 1;
    assert.deepEqual(picked, [100, 300]);
  });
});

describe('bad input', () => {
  const hosts = hostsOf(3);
  const untyped = core as unknown as Record<keyof Core, (...args: unknown[]) => unknown>;
  const least = core.leastRequest(hosts);
  const cases: { does: () => unknown; says: string }[] = [
    { does: () => core.maglev([]), says: 'hosts: 0 hosts are below the limit 1' },
    { does: () => core.ringHash([]), says: 'hosts: 0 hosts are below the limit 1' },
    { does: () => core.leastRequest([]), says: 'hosts: 0 hosts are below the limit 1' },
    { does: () => core.roundRobin([]), says: 'hosts: 0 hosts are below the limit 1' },
    { does: () => untyped.maglev('a'), says: 'hosts: "a" is not a list' },
    { does: () => untyped.maglev([7]), says: 'hosts[0]: 7 is not an object' },
    { does: () => core.maglev([{ key: '' }]), says: 'hosts[0].key: "" is not a string of 1 character or more' },
    { does: () => untyped.roundRobin([{ key: 'a', weight: '2' }]), says: 'hosts[0].weight: "2" is not a number' },
    {
      does: () => core.ringHash([...hosts, { key: 'a', weight: 0 }]),
      says: 'hosts[3].weight: 0 is not a whole number from 1 to 4294967295',
    },
    {
      does: () => core.leastRequest([{ key: 'a', weight: 2 ** 32 }]),
      says: 'hosts[0].weight: 4294967296 is not a whole number from 1 to 4294967295',
    },
    { does: () => core.maglev(hosts, { tableSize: 65_536 }), says: 'tableSize: 65536 is not a prime number' },
    {
      does: () => core.maglev(hosts, { tableSize: 5_000_077 }),
      says: 'tableSize: 5000077 is not a whole number from 2 to 5000011',
    },
    {
      does: () => core.ringHash(hosts, { minimumRingSize: 9_000_000 }),
      says: 'minimumRingSize: 9000000 is not a whole number from 1 to 8388608',
    },
    {
      does: () => core.ringHash(hosts, { minimumRingSize: 100, maximumRingSize: 50 }),
      says: 'minimumRingSize: 100 exceeds the maximumRingSize 50',
    },
    {
      does: () => core.leastRequest(hosts, { choiceCount: 0 }),
      says: 'choiceCount: 0 is not a whole number from 2 to 4294967295',
    },
    {
      does: () => core.roundRobin(hosts, { seed: -1 }),
      says: 'seed: -1 is not a whole number from 0 to 9007199254740991',
    },
    { does: () => least.active(3), says: 'index: 3 is not a whole number from 0 to 2' },
    { does: () => least.start(0.5), says: 'index: 0.5 is not a whole number from 0 to 2' },
    { does: () => untyped.xxHash64(5), says: 'data: 5 is neither a string nor a Uint8Array' },
    { does: () => untyped.murmurHash2('a', 5), says: 'seed: 5 is not a bigint' },
    { does: () => core.maglev(hosts).lookup(5 as unknown as bigint), says: 'hash: 5 is not a bigint' },
    { does: () => core.maglev(hosts).lookup(5n, -1), says: 'attempt: -1 is not a whole number from 0 to 4294967295' },
    {
      does: () => createCore({ maxMemoryMiB: 0 }),
      says: 'maxMemoryMiB: 0 is not a whole number from 1 to 4096',
    },
    {
      does: () => createCore({ maxMemoryMiB: 5000 }),
      says: 'maxMemoryMiB: 5000 is not a whole number from 1 to 4096',
    },
  ];
  for (const { does, says } of cases) {
    it(`is refused: ${says}`, () => {
      assert.throws(does, (error) => {
        assert.ok(error instanceof WeirError);
        assert.deepEqual([error.code, error.message], ['WEIR_CORE_ARGUMENT', says]);
        return true;
      });
    });
  }

  it('says what needed the memory when it is full, and goes on', () => {
    const small = createCore({ maxMemoryMiB: 1 });
    assert.throws(() => small.ringHash(hosts, { minimumRingSize: 100_000 }), {
      code: 'WEIR_CORE_MEMORY',
      message: /^maxMemoryMiB: 1 is not enough: minimumRingSize: 100000 needs \d+ bytes/,
    });
    assert.throws(() => small.leastRequest(hostsOf(20_000)), { code: 'WEIR_CORE_MEMORY' });
    assert.equal(small.ringHash(hosts).size, 1026);
  });
});
