import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { KeyedTokenBuckets, keyedBucketState } from '../../../src/base/keyed-token-buckets.ts';

const MODULE = new URL('../../../src/base/keyed-token-buckets.ts', import.meta.url).href;

/** What several threads have of the same buckets. */
function views(count: number, maxKeys: number, maxTokens = 3, fillIntervalMs = 1e9): KeyedTokenBuckets[] {
  const settings = { maxTokens, tokensPerFill: 1, fillIntervalMs, maxKeys, state: keyedBucketState(maxKeys, 0) };
  return Array.from({ length: count }, () => new KeyedTokenBuckets(settings));
}

describe('token buckets by key', () => {
  it('are one for each key, whichever thread asks', () => {
    const [here, there] = views(2, 4) as [KeyedTokenBuckets, KeyedTokenBuckets];
    assert.equal(here.bucketOf('a', 0).take(2, 0), true);
    assert.equal(there.bucketOf('a', 0).remaining(0), 1);
    assert.equal(there.bucketOf('b', 0).remaining(0), 3);
    assert.equal(here.bucketOf('b', 0).take(3, 0), true);
    assert.equal(there.bucketOf('b', 0).take(1, 0), false);
  });

  it('are filled as time goes by, from when they begin', () => {
    const [buckets] = views(1, 2, 3, 100) as [KeyedTokenBuckets];
    const bucket = buckets.bucketOf('late', 1050);
    assert.equal(bucket.take(3, 1050), true);
    assert.deepEqual([bucket.remaining(1099), bucket.remaining(1100)], [0, 1]);
  });

  it('do as a list does in which the key that was not asked for longest makes room', () => {
    const step = fc.record({ thread: fc.nat(2), key: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'é') });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 80 }), (maxKeys, steps) => {
        const threads = views(3, maxKeys);
        /** From the key that was not asked for longest to the last one. */
        const model = new Map<string, number>();
        for (const { thread, key } of steps) {
          const tokens = model.get(key) ?? 3;
          model.delete(key);
          if (model.size === maxKeys) model.delete(model.keys().next().value!);
          model.set(key, Math.max(0, tokens - 1));
          assert.equal(threads[thread]!.bucketOf(key, 0).take(1, 0), tokens > 0);
        }
      }),
    );
  });

  it('keep their order when the count of uses passes what their memory keeps of it', () => {
    const state = keyedBucketState(2, 0);
    new Int32Array(state)[4] = 2 ** 31 - 2;
    const buckets = new KeyedTokenBuckets({ maxTokens: 3, tokensPerFill: 1, fillIntervalMs: 1e9, maxKeys: 2, state });
    for (const key of ['old', 'newer', 'third']) assert.equal(buckets.bucketOf(key, 0).take(1, 0), true);
    assert.deepEqual([buckets.bucketOf('newer', 0).remaining(0), buckets.bucketOf('old', 0).remaining(0)], [2, 3]);
  });

  it('lie where nobody who does not know their secret can foresee', () => {
    const orders = Array.from({ length: 20 }, () => {
      const state = keyedBucketState(1, 0);
      new KeyedTokenBuckets({ maxTokens: 1, tokensPerFill: 1, fillIntervalMs: 50, maxKeys: 1, state }).bucketOf('k', 0);
      return new BigInt64Array(state, 24, 1)[0];
    });
    assert.equal(new Set(orders).size, orders.length);
  });

  it('give no key two buckets when threads ask for it at the same time', async () => {
    const [threads, keys, maxTokens] = [4, 40, 30];
    const state = keyedBucketState(keys, 0);
    const settings = { maxTokens, tokensPerFill: 1, fillIntervalMs: 1e9, maxKeys: keys, state };
    const gate = new SharedArrayBuffer(4);
    const code = `
      const { parentPort, workerData: { settings, gate, keys } } = require('node:worker_threads');
      import(${JSON.stringify(MODULE)}).then(({ KeyedTokenBuckets }) => {
        const buckets = new KeyedTokenBuckets(settings);
        parentPort.postMessage('ready');
        Atomics.wait(new Int32Array(gate), 0, 0);
        const taken = Array.from({ length: keys }, () => 0);
        for (let round = 0; round < 40; round += 1) {
          for (let key = 0; key < keys; key += 1) if (buckets.bucketOf('k' + key, 1).take(1, 1)) taken[key] += 1;
        }
        parentPort.postMessage(taken);
      });`;
    const workers = Array.from(
      { length: threads },
      () => new Worker(code, { eval: true, workerData: { settings, gate, keys } }),
    );
    const answers = workers.map(
      (worker) =>
        new Promise<number[]>((resolve, reject) => {
          worker.once('error', reject);
          worker.on('message', (message: 'ready' | number[]) => message !== 'ready' && resolve(message));
        }),
    );
    await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('message', resolve))));
    Atomics.store(new Int32Array(gate), 0, 1);
    Atomics.notify(new Int32Array(gate), 0);
    const taken = await Promise.all(answers);
    const sums = Array.from({ length: keys }, (_, key) => taken.reduce((sum, of) => sum + of[key]!, 0));
    // A thread that has a place and steps back may have let a few through before.
    for (const [key, sum] of sums.entries()) {
      assert.ok(sum >= maxTokens && sum < 2 * maxTokens, `${sum} tokens of ${maxTokens} for key ${key}`);
    }
    await Promise.all(workers.map((worker) => worker.terminate()));
  });
});
