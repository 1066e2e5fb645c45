import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type BufferKeeper, KeptBuffers } from '../../../../../src/data-plane/network/tls/kept-buffers.ts';

const KB = 1024;
/** Of a record with what frames it, as Node counts. */
const RECORD = 16 * KB + 37;

class Keeper implements BufferKeeper {
  keptBytes = 0;

  charge(keptBytes: number): void {
    this.keptBytes = keptBytes;
  }
}

test('what is below 16 KiB is written at once, and nothing is kept of it', () => {
  const buffers = new KeptBuffers();
  const keeper = new Keeper();
  const before = buffers.leftBytes;
  for (const length of [0, 1, 16 * KB - 1]) assert.equal(buffers.pieceOf(length, keeper), length);
  assert.equal(keeper.keptBytes, 0);
  assert.equal(buffers.leftBytes, before);
});

test('a larger write is charged with what Node keeps of it, once for all that are no larger', () => {
  const buffers = new KeptBuffers(10 * RECORD);
  const keeper = new Keeper();
  assert.equal(buffers.pieceOf(16 * KB, keeper), 16 * KB);
  assert.equal(keeper.keptBytes, 2 * RECORD);
  assert.equal(buffers.pieceOf(32 * KB - 1, keeper), 32 * KB - 1);
  assert.equal(buffers.leftBytes, 8 * RECORD);
  assert.equal(buffers.pieceOf(32 * KB, keeper), 32 * KB);
  assert.equal(keeper.keptBytes, 3 * RECORD);
  assert.equal(buffers.leftBytes, 7 * RECORD);
  buffers.release(keeper.keptBytes);
  assert.equal(buffers.leftBytes, 10 * RECORD);
});

test('no piece is larger than 256 KiB of a body with its head', () => {
  assert.equal(new KeptBuffers().pieceOf(1024 * KB, new Keeper()), 272 * KB - 1);
});

test('where too much is kept already, a connection writes what fits into the buffers that it has', () => {
  const buffers = new KeptBuffers(4 * RECORD);
  const [first, second] = [new Keeper(), new Keeper()];
  assert.equal(buffers.pieceOf(40 * KB, first), 40 * KB);
  assert.equal(buffers.pieceOf(16 * KB, second), 16 * KB - 1);
  assert.equal(second.keptBytes, 0);
  assert.equal(buffers.pieceOf(100 * KB, first), 48 * KB - 1);
  assert.equal(buffers.pieceOf(50 * KB, first), 50 * KB);
  buffers.release(first.keptBytes);
  assert.equal(buffers.pieceOf(16 * KB, second), 16 * KB);
});

test('whoever writes whatever and leaves, no more is kept than may be, and every write goes on', () => {
  const step = fc.record({
    keeper: fc.nat({ max: 5 }),
    length: fc.integer({ min: 1, max: 1024 * KB }),
    isLeaving: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1024 * KB }), fc.array(step, { maxLength: 60 }), (most, steps) => {
      const buffers = new KeptBuffers(most);
      const keepers = Array.from({ length: 6 }, () => new Keeper());
      for (const { keeper: index, length, isLeaving } of steps) {
        const keeper = keepers[index]!;
        const piece = buffers.pieceOf(length, keeper);
        assert.ok(piece > 0 && piece <= length);
        // Node's own rule.
        if (piece >= 16 * KB) assert.ok((Math.floor(piece / (16 * KB)) + 1) * RECORD <= keeper.keptBytes);
        if (isLeaving) {
          buffers.release(keeper.keptBytes);
          keepers[index] = new Keeper();
        }
        const kept = keepers.reduce((sum, { keptBytes }) => sum + keptBytes, 0);
        assert.equal(buffers.leftBytes, most - kept);
        assert.ok(kept <= most);
      }
    }),
  );
});
