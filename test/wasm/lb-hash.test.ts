import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { SCRATCH_KEY_SIZE } from '../../assembly/layout/shared-memory.ts';
import { buildOutput } from '../../src/base/package-root.ts';
import type { LbExports } from '../../src/wasm/lb/exports.ts';
import { openLb } from '../support/lb.ts';
import * as reference from '../support/reference/hash.ts';
import { readWasm } from '../support/wasm-binary.ts';

const binary = readWasm(readFileSync(buildOutput('wasm/lb.wasm')));
const { kernel, tables } = openLb();

test('the lb module owns nothing that threads could overwrite for each other', () => {
  assert.equal(binary.hasDataSection, false);
  assert.equal(binary.mutableGlobals, 0);
  assert.deepEqual(binary.imports, ['env.memory']);
});

test('the lb module exports exactly what its facade declares, without 64-bit integers', () => {
  const declared: Record<keyof LbExports, string> = {
    layoutVersion: '() -> i32',
    xxHash64: '(i32, i32, i32, i32, i32) -> ',
    xxHash64Begin: '(i32, i32, i32) -> ',
    xxHash64Stripes: '(i32, i32, i32) -> ',
    xxHash64End: '(i32, i32, i32, i32, i32) -> ',
    murmurHash2: '(i32, i32, i32, i32, i32) -> ',
    murmurHash2Begin: '(i32, i32, i32, i32) -> ',
    murmurHash2Words: '(i32, i32, i32) -> ',
    murmurHash2End: '(i32, i32, i32, i32) -> ',
    buildMaglev: '(i32, i32, i32) -> ',
    maglevLookupKey: '(i32, i32, i32, i32) -> i32',
    buildRing: '(i32, i32, i32, i32) -> ',
    ringLookup: '(i32, i32, i32, i32) -> i32',
    ringLookupKey: '(i32, i32, i32, i32) -> i32',
    seedRandom: '(i32, i32, i32) -> ',
    drawPairs: '(i32, i32) -> ',
    leastRequestPick: '(i32, i32) -> i32',
    startQueue: '(i32, i32, f64) -> ',
    schedulePick: '(i32, i32) -> i32',
  };
  assert.deepEqual({ ...binary.exports }, declared);
});

test('hashes equal published check values', () => {
  assert.equal(kernel.xxHash64(''), 17241709254077376921n);
  assert.equal(kernel.xxHash64('foo'), 3728699739546630719n);
  assert.equal(kernel.xxHash64('bar', kernel.xxHash64('foo')), 17745830980996999794n);
  assert.equal(kernel.murmurHash2('foo'), 9631199822919835226n);
});

test('hashes of any bytes and seeds equal those of the plain twins', () => {
  const seed = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), seed, (bytes, seed) => {
      assert.equal(kernel.xxHash64(bytes, seed), reference.xxHash64(bytes, seed));
      assert.equal(kernel.murmurHash2(bytes, seed), reference.murmurHash2(bytes, seed));
    }),
    { numRuns: 300 },
  );
});

test('a string is hashed by its UTF-8, whatever it holds', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
      assert.equal(kernel.xxHash64(text), reference.xxHash64(Buffer.from(text)));
      assert.equal(kernel.murmurHash2(text), reference.murmurHash2(Buffer.from(text)));
    }),
  );
});

test('keys longer than the scratch are hashed in parts, with the same result and the same host', () => {
  const ring = tables.buildRing([{ key: 'a' }, { key: 'b' }]);
  const maglev = tables.buildMaglev([{ key: 'a' }, { key: 'b' }]);
  for (const parts of [1, 2, 3]) {
    for (const extra of [-33, -32, -1, 0, 1, 7, 8, 31, 32, 45]) {
      const bytes = Uint8Array.from({ length: parts * SCRATCH_KEY_SIZE + extra }, (_, at) => (at * 31) & 255);
      const hash = reference.xxHash64(bytes, 5n);
      assert.equal(kernel.xxHash64(bytes, 5n), hash, `${bytes.length} bytes`);
      assert.equal(kernel.murmurHash2(bytes, 5n), reference.murmurHash2(bytes, 5n), `${bytes.length} bytes`);
      const text = 'é'.repeat(bytes.length >> 1);
      assert.equal(kernel.xxHash64(text), reference.xxHash64(Buffer.from(text)));
      for (const table of [ring, maglev]) {
        assert.equal(table.hashAndLookup(text), table.lookupHash(kernel.xxHash64(text)));
        assert.equal(table.hashAndLookup(bytes, 3), table.lookupHash(reference.xxHash64(bytes), 3));
      }
    }
  }
});
