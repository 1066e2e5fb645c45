import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { bucketState, TokenBucket } from '../../../src/base/token-bucket.ts';

const MODULE = new URL('../../../src/base/token-bucket.ts', import.meta.url).href;

function bucketOf(maxTokens: number, tokensPerFill: number, fillIntervalMs: number, startMs = 0): TokenBucket {
  return new TokenBucket({ maxTokens, tokensPerFill, fillIntervalMs, state: bucketState(maxTokens, startMs) });
}

describe('a token bucket', () => {
  it('is full at the start, and is filled at the end of each interval, up to its size', () => {
    const bucket = bucketOf(2, 1, 100, 1000);
    assert.deepEqual([bucket.take(1, 1000), bucket.take(1, 1050), bucket.take(1, 1099)], [true, true, false]);
    assert.deepEqual([bucket.msToFill(1099), bucket.msToFill(1100)], [1, 100]);
    assert.deepEqual([bucket.take(1, 1100), bucket.take(1, 1199.9)], [true, false]);
    assert.equal(bucket.remaining(5000), 2);
    assert.deepEqual([bucket.take(3, 5000), bucket.take(2, 5000), bucket.take(1, 5000)], [false, true, false]);
  });

  it('does what one that is written down does', () => {
    const step = fc.record({ waitMs: fc.nat(300), count: fc.integer({ min: 1, max: 4 }) });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 50, max: 200 }),
        fc.array(step, { maxLength: 60 }),
        (maxTokens, tokensPerFill, intervalMs, steps) => {
          const bucket = bucketOf(maxTokens, tokensPerFill, intervalMs);
          let nowMs = 0;
          let tokens = maxTokens;
          for (const { waitMs, count } of steps) {
            for (let ms = 1; ms <= waitMs; ms += 1) {
              if ((nowMs + ms) % intervalMs === 0) tokens = Math.min(maxTokens, tokens + tokensPerFill);
            }
            nowMs += waitMs;
            const expected = tokens >= count;
            if (expected) tokens -= count;
            assert.equal(bucket.take(count, nowMs), expected);
            assert.equal(bucket.remaining(nowMs), tokens);
          }
        },
      ),
    );
  });

  it('gives as many as there are to those who can use less than they ask for', () => {
    const bucket = bucketOf(10, 4, 100);
    assert.deepEqual([bucket.takeUpTo(7, 0), bucket.takeUpTo(7, 0), bucket.takeUpTo(7, 0)], [7, 3, 0]);
    assert.deepEqual([bucket.takeUpTo(7, 100), bucket.takeUpTo(0, 200), bucket.takeUpTo(7, 200)], [4, 0, 4]);
    assert.deepEqual([bucket.fillsBy(0), bucket.fillsBy(99), bucket.fillsBy(100), bucket.fillsBy(250)], [0, 0, 1, 2]);
  });

  it('adds up what is less than a token', () => {
    const bucket = bucketOf(1000, 20.48, 20);
    assert.equal(bucket.take(1000, 0), true);
    const taken = Array.from({ length: 50 }, (_, fill) => bucket.takeUpTo(1000, 20 * (fill + 1)));
    assert.deepEqual([...new Set(taken)].sort(), [20, 21]);
    assert.equal(
      taken.reduce((sum, count) => sum + count, 0),
      1024,
    );
  });

  it('goes on when its fills are more than a counter holds', () => {
    const bucket = bucketOf(1, 1, 50);
    const lateMs = 50 * (2 ** 31 + 5);
    assert.deepEqual(
      [bucket.take(1, 50 * (2 ** 31 - 1)), bucket.take(1, lateMs), bucket.take(1, lateMs)],
      [true, true, false],
    );
  });

  it('loses and doubles nothing when another thread comes between', (t) => {
    const state = bucketState(2, 0);
    const settings = { maxTokens: 2, tokensPerFill: 1, fillIntervalMs: 50, state };
    const [one, other] = [new TokenBucket(settings), new TokenBucket(settings)];
    const load = Atomics.load;
    let between: (() => void) | null = null;
    t.mock.method(Atomics, 'load', (words: Int32Array, at: number) => {
      const seen = load(words, at);
      const act = between;
      // Only the load that is meant; those of the other thread are not.
      if (at === wanted) between = null;
      if (at === wanted) act?.();
      return seen;
    });
    let wanted = 0;
    between = () => assert.equal(other.take(1, 0), true);
    assert.deepEqual([one.take(1, 0), one.take(1, 0)], [true, false]);
    wanted = 1;
    between = () => assert.equal(other.take(1, 60), true);
    assert.equal(one.take(1, 60), false);
    wanted = 0;
    // One has taken on the filling, and not done it yet.
    between = () => assert.equal(other.remaining(110), 0);
    assert.deepEqual([one.take(1, 110), one.take(1, 110)], [true, false]);
  });

  it('gives each token to one thread only', async () => {
    const tokens = 20_000;
    const state = bucketState(tokens, 0) as SharedArrayBuffer;
    const settings = { maxTokens: tokens, tokensPerFill: tokens, fillIntervalMs: 50, state };
    const code = `
      const { parentPort, workerData } = require('node:worker_threads');
      import('${MODULE}').then(({ TokenBucket }) => {
        const bucket = new TokenBucket(workerData);
        let taken = 0;
        // The first is there from the start, the second is filled in by one of them.
        for (let at = 0; at < 30_000; at += 1) if (bucket.take(1, 0)) taken += 1;
        parentPort.postMessage(taken);
        parentPort.once('message', () => {
          taken = 0;
          for (let at = 0; at < 30_000; at += 1) if (bucket.take(1, 70)) taken += 1;
          parentPort.postMessage(taken);
          parentPort.close();
        });
      });`;
    const workers = Array.from({ length: 3 }, () => new Worker(code, { eval: true, workerData: settings }));
    const round = async (): Promise<number> => {
      const counts = workers.map((worker) => new Promise<number>((resolve) => worker.once('message', resolve)));
      return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
    };
    const first = round();
    assert.equal(await first, tokens);
    const second = round();
    for (const worker of workers) worker.postMessage('again');
    assert.equal(await second, tokens);
  });
});
