// When an update is confirmed: as soon as nothing uses any more what it has made superfluous.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RetiredHosts } from '../../../../src/data-plane/upstream/retired-hosts.ts';

function bench(leaving: number) {
  const told = { count: 0 };
  const retired = new RetiredHosts(() => void told.count++);
  const ends: (() => void)[] = [];
  for (let n = 0; n < leaving; n++) retired.add({ retire: (onUnused) => void ends.push(onUnused) });
  return { told, retired, ends };
}

test('an update that retires nothing is confirmed at its end', () => {
  const { told, retired } = bench(0);
  assert.equal(told.count, 0);
  retired.seal();
  assert.equal(told.count, 1);
});

test('an update is confirmed once, with the last of those that it has retired', () => {
  const { told, retired, ends } = bench(3);
  retired.seal();
  for (const [index, end] of ends.entries()) {
    assert.equal(told.count, 0, `after ${index}`);
    end();
  }
  assert.equal(told.count, 1);
});
