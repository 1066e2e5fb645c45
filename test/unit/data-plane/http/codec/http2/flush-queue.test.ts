import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FlushQueue } from '../../../../../../src/data-plane/http/codec/http2/flush-queue.ts';

test('all that has been added in a turn is flushed once behind it, and what a flush adds in the next', async () => {
  const flushed: string[] = [];
  const queue = new FlushQueue(() => assert.fail());
  const second = { flush: () => void flushed.push('second') };
  queue.add({
    flush() {
      flushed.push('first');
      queue.add({ flush: () => void flushed.push('third') });
    },
  });
  queue.add(second);
  assert.deepEqual(flushed, []);
  await nextTurn();
  assert.deepEqual(flushed, ['first', 'second']);
  await nextTurn();
  assert.deepEqual(flushed, ['first', 'second', 'third']);
  queue.add(second);
  await nextTurn();
  assert.equal(flushed.length, 4);
});

test('what one flush throws is told, and costs the others nothing', async () => {
  const faults: unknown[] = [];
  const flushed: string[] = [];
  const queue = new FlushQueue((error) => faults.push(error));
  const bug = new Error('a bug');
  queue.add({
    flush() {
      throw bug;
    },
  });
  queue.add({ flush: () => void flushed.push('next') });
  await nextTurn();
  assert.deepEqual([faults, flushed], [[bug], ['next']]);
});
