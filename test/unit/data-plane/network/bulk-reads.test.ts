// When a connection reads in bulk.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BulkReads } from '../../../../src/data-plane/network/bulk-reads.ts';

const KIB = 1024;
const CAPACITY = 64 * KIB;

/** Whether it is bulk after each of the reads. */
function after(...lengths: readonly number[]): boolean[] {
  const bulk = new BulkReads();
  return lengths.map((length) => {
    bulk.note(length, CAPACITY);
    return bulk.isBulk;
  });
}

test('two full buffers in a row are bulk', () => {
  assert.equal(new BulkReads().isBulk, false);
  assert.deepEqual(after(CAPACITY, CAPACITY, CAPACITY), [false, true, true]);
  assert.deepEqual(after(2 * CAPACITY, CAPACITY), [false, true]);
});

test('a read that fills less says nothing', () => {
  assert.deepEqual(after(CAPACITY - 1, CAPACITY - 1, CAPACITY - 1), [false, false, false]);
  assert.deepEqual(after(CAPACITY, CAPACITY - 1, CAPACITY), [false, false, true]);
  assert.deepEqual(after(CAPACITY, CAPACITY, 16 * KIB, CAPACITY - 1), [false, true, true, true]);
});

test('a small read is the end of it', () => {
  assert.deepEqual(after(CAPACITY, CAPACITY, 16 * KIB - 1, CAPACITY, CAPACITY), [false, true, false, false, true]);
  assert.deepEqual(after(CAPACITY, 1, CAPACITY), [false, false, false]);
});
