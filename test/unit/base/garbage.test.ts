// What is left of a large piece of work goes at once, and nothing is done about little.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectGarbage, settleMemory } from '../../../src/base/garbage.ts';

const MIB = 1024 * 1024;

/** @returns the bytes of the heap when all of it is still there. */
function workMuch(): number {
  const lists = Array.from({ length: 1024 }, (_, n) => new Array<number>(16 * 1024).fill(n));
  const { heapTotal } = process.memoryUsage();
  assert.equal(lists.length, 1024);
  return heapTotal;
}

test('what a large piece of work has left goes back to the system, once', () => {
  assert.equal(collectGarbage(), false, 'there is hardly anything on the heap');
  assert.ok(workMuch() > 128 * MIB);
  assert.equal(collectGarbage(), true);
  assert.ok(process.memoryUsage().heapTotal < 64 * MIB);
  assert.equal(collectGarbage(), false);
});

test('what a start has left goes back, also when it is little', () => {
  const left = Array.from({ length: 64 }, (_, n) => new Array<number>(16 * 1024).fill(n)).length;
  const { heapTotal } = process.memoryUsage();
  assert.ok(left === 64 && heapTotal < 64 * MIB);
  assert.ok(settleMemory() > 4 * MIB);
  assert.ok(process.memoryUsage().heapTotal < heapTotal - 4 * MIB);
});
