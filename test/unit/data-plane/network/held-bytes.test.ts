// Bytes that wait for the rest of their message.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { HeldBytes } from '../../../../src/data-plane/network/held-bytes.ts';

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

test('held bytes are those of a range, and can be looked at before they are taken', () => {
  const held = new HeldBytes();
  assert.equal(held.peek().length, 0);
  held.append(Buffer.from('0123456789'), 2, 5);
  held.append(Buffer.from('abc'), 1, 3);
  assert.equal(held.peek().toString(), '234bc');
  assert.equal(held.length, 5);
  assert.equal(held.take().toString(), '234bc');
  assert.equal(held.take().length, 0);
});

test('held bytes that were given away are not written over', () => {
  const held = new HeldBytes();
  held.append(Buffer.from('first'), 0, 5);
  const taken = held.take();
  held.append(Buffer.from('other'), 0, 5);
  assert.equal(taken.toString(), 'first');
});

test('a peer that sends single bytes does not have all copied with each', (t) => {
  const allocate = t.mock.method(Buffer, 'allocUnsafeSlow');
  const held = new HeldBytes();
  const byte = Buffer.from('x');
  for (let n = 0; n < 100_000; n++) held.append(byte, 0, 1);
  assert.equal(held.length, 100_000);
  // From 1 KiB on, twice as much each time.
  assert.equal(allocate.mock.callCount(), 8);
});

test('what is just full is not copied before more comes', (t) => {
  const allocate = t.mock.method(Buffer, 'allocUnsafeSlow');
  const held = new HeldBytes();
  held.append(Buffer.alloc(1023), 0, 1023);
  held.append(Buffer.alloc(1), 0, 1);
  assert.equal(allocate.mock.callCount(), 1);
  held.append(Buffer.alloc(1), 0, 1);
  assert.equal(allocate.mock.callCount(), 2);
});
