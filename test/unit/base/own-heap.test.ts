import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dumpHeap, HeapSampling } from '../../../src/base/own-heap.ts';

const OPTIONS = { sampleInterval: 1000, stackDepth: 2 };

interface Node {
  readonly children: readonly Node[];
}

function depthOf({ children }: Node): number {
  return 1 + Math.max(0, ...children.map(depthOf));
}

test('the heap of a thread is sampled once at a time, by stacks that are as deep as is asked for', () => {
  const sampling = new HeapSampling(OPTIONS);
  assert.throws(() => new HeapSampling(OPTIONS), /sampled already/);
  const kept = Array.from({ length: 10_000 }, (_, index) => ({ index }));
  const { head, samples } = JSON.parse(sampling.stop()) as { head: Node; samples: readonly unknown[] };
  assert.ok(samples.length > 100, `${samples.length} of ${kept.length}`);
  // The foot of all stacks is one more.
  assert.equal(depthOf(head), OPTIONS.stackDepth + 1);
  const second = new HeapSampling(OPTIONS);
  second.end();
  second.end();
  // What the engine refuses leaves nothing behind.
  assert.throws(() => new HeapSampling({ ...OPTIONS, sampleInterval: -1 }));
  new HeapSampling(OPTIONS).end();
});

test('a snapshot comes in pieces, all in one turn', async () => {
  const pieces: string[] = [];
  let turns = 0;
  const turn = setInterval(() => {
    turns += 1;
  });
  let first: number | undefined;
  await dumpHeap((piece) => {
    first ??= turns;
    assert.equal(turns, first);
    pieces.push(piece);
  });
  clearInterval(turn);
  assert.ok(pieces.length > 1, `${pieces.length} pieces`);
  assert.deepEqual(Object.keys(JSON.parse(pieces.join('')) as object).slice(0, 3), ['snapshot', 'nodes', 'edges']);
});
