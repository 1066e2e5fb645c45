// Private read buffers: how large they are, and when they are used again.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SLAB_SIZES, SlabPool, UNKNOWN_LENGTH } from '../../../../src/data-plane/network/slab-pool.ts';

describe('read slabs', () => {
  const MIB = 1024 * 1024;

  test('grow with what is left of the body, within the buffer limit', () => {
    const pool = new SlabPool(64 * MIB);
    assert.equal(pool.take(100_000, MIB).length, SLAB_SIZES[0]);
    assert.equal(pool.take(500_000, MIB).length, SLAB_SIZES[1]);
    assert.equal(pool.take(UNKNOWN_LENGTH, MIB).length, SLAB_SIZES[1]);
    assert.equal(pool.take(5 * MIB, MIB).length, SLAB_SIZES[2]);
    assert.equal(pool.take(5 * MIB, 300_000).length, SLAB_SIZES[1]);
    assert.equal(pool.take(5 * MIB, 10).length, SLAB_SIZES[0]);
  });

  test('come back for the next body, unless the kernel may still hold them', () => {
    const pool = new SlabPool(64 * MIB);
    const slab = pool.take(5 * MIB, MIB);
    pool.give(slab);
    assert.equal(pool.freeBytes, MIB);
    assert.equal(pool.take(5 * MIB, MIB), slab);
    pool.forget(slab);
    assert.notEqual(pool.take(5 * MIB, MIB), slab);
    assert.equal(pool.outstandingBytes, MIB);
  });

  test('stay small beyond the cap, and nothing is kept above it', () => {
    const pool = new SlabPool(2 * MIB);
    const slabs = [pool.take(5 * MIB, MIB), pool.take(5 * MIB, MIB), pool.take(5 * MIB, MIB)];
    assert.deepEqual(
      slabs.map((slab) => slab.length),
      [MIB, MIB, SLAB_SIZES[0]],
    );
    for (const slab of slabs) pool.give(slab);
    assert.ok(pool.freeBytes <= 2 * MIB);
    assert.equal(pool.outstandingBytes, 0);
  });

  test('have the size of what is left, to the byte', () => {
    const pool = new SlabPool(64 * MIB);
    const sizes = new Map([
      [1, SLAB_SIZES[0]],
      [2 * SLAB_SIZES[0] - 1, SLAB_SIZES[0]],
      [2 * SLAB_SIZES[0], SLAB_SIZES[1]],
      [MIB, SLAB_SIZES[1]],
      [MIB + 1, SLAB_SIZES[2]],
    ]);
    for (const [remaining, size] of sizes) assert.equal(pool.take(remaining, MIB).length, size);
    assert.equal(pool.take(5 * MIB, SLAB_SIZES[1]).length, SLAB_SIZES[1]);
    assert.equal(pool.take(5 * MIB, SLAB_SIZES[1] - 1).length, SLAB_SIZES[0]);
  });

  test('are counted together against the cap, free or taken', () => {
    const pool = new SlabPool(2 * MIB);
    const slab = pool.take(5 * MIB, MIB);
    assert.deepEqual([pool.outstandingBytes, pool.freeBytes], [MIB, 0]);
    pool.give(slab);
    assert.deepEqual([pool.outstandingBytes, pool.freeBytes], [0, MIB]);
    const others = Array.from({ length: 5 }, () => pool.take(UNKNOWN_LENGTH, MIB));
    assert.deepEqual(
      others.map(({ length }) => length),
      [...new Array<number>(4).fill(SLAB_SIZES[1]), SLAB_SIZES[0]],
    );
    assert.equal(pool.take(5 * MIB, MIB), slab);
    assert.deepEqual([pool.outstandingBytes, pool.freeBytes], [2 * MIB + SLAB_SIZES[0], 0]);
  });

  test('are kept for the next body as long as the cap has room for them', () => {
    const pool = new SlabPool(MIB);
    const [large, small] = [pool.take(5 * MIB, MIB), pool.take(5 * MIB, MIB)];
    pool.give(small);
    assert.equal(pool.freeBytes, 0);
    pool.give(large);
    assert.equal(pool.freeBytes, MIB);
    assert.notEqual(pool.take(1, MIB), small);
  });

  test('are not kept beyond the cap beside those that are free', () => {
    const pool = new SlabPool(SLAB_SIZES[1] + SLAB_SIZES[0]);
    pool.give(pool.take(UNKNOWN_LENGTH, MIB));
    const [first, second] = [pool.take(1, MIB), pool.take(1, MIB)];
    pool.give(first);
    assert.equal(pool.freeBytes, SLAB_SIZES[1]);
    pool.give(second);
    assert.equal(pool.freeBytes, SLAB_SIZES[1] + SLAB_SIZES[0]);
    assert.equal(pool.take(1, MIB), second);
  });
});
