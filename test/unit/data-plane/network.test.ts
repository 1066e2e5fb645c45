// Read slabs, held bytes and peer addresses.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HeldBytes } from '../../../src/data-plane/network/held-bytes.ts';
import { isInternalAddress, plainAddress } from '../../../src/data-plane/network/peer-address.ts';
import { chooseReadMode } from '../../../src/data-plane/network/read-mode.ts';
import { SLAB_SIZES, SlabPool, UNKNOWN_LENGTH } from '../../../src/data-plane/network/slab-pool.ts';

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
});

test('held bytes come back whole and in order, whatever the pieces', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 20 }), (pieces) => {
      const held = new HeldBytes();
      for (const piece of pieces) held.append(Buffer.from(piece), 0, piece.length);
      assert.deepEqual(held.take(), Buffer.concat(pieces));
      assert.equal(held.length, 0);
    }),
  );
});

test('private networks are internal, mapped IPv4 addresses are shown as IPv4', () => {
  const internal = ['10.1.2.3', '172.31.0.1', '192.168.1.1', '127.0.0.1', '::1', 'fd12::1'];
  const external = ['8.8.8.8', '172.32.0.1', '2001:db8::1', '', 'nonsense'];
  assert.deepEqual(
    internal.filter((address) => !isInternalAddress(address)),
    [],
  );
  assert.deepEqual(external.filter(isInternalAddress), []);
  assert.equal(plainAddress('::ffff:1.2.3.4'), '1.2.3.4');
  assert.equal(plainAddress('::1'), '::1');
});

test('this Node release can read accepted sockets the lean way', async () => {
  assert.equal(await chooseReadMode(), 'lean');
});
