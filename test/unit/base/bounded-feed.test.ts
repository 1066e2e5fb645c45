import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BoundedFeed } from '../../../src/base/bounded-feed.ts';

function feedOf(limit: number, onClosed?: () => void): BoundedFeed<string> {
  return new BoundedFeed({ limit, costOf: (item) => item.length, ...(onClosed ? { onClosed } : {}) });
}

async function taken(feed: BoundedFeed<string>): Promise<string[]> {
  const items: string[] = [];
  for await (const item of feed) items.push(item);
  return items;
}

test('a feed hands on what it is offered, in order, until it is ended', async () => {
  const feed = feedOf(100);
  const all = taken(feed);
  assert.equal(feed.offer('a'), true);
  await Promise.resolve();
  assert.equal(feed.offer('b'), true);
  assert.equal(feed.offer('c'), true);
  feed.end();
  assert.equal(feed.offer('late'), false);
  assert.deepEqual(await all, ['a', 'b', 'c']);
});

test('a feed never holds more than its limit, but for one item that is larger alone', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 20 }),
      fc.array(fc.oneof(fc.constant('take' as const), fc.integer({ min: 1, max: 30 })), { maxLength: 60 }),
      async (limit, steps) => {
        const feed = feedOf(limit);
        const held: string[] = [];
        for (const step of steps) {
          const cost = held.join('').length;
          if (step === 'take') {
            if (held.length > 0) assert.deepEqual(await feed.next(), { done: false, value: held.shift() });
            continue;
          }
          const item = 'x'.repeat(step);
          const fits = cost === 0 || cost + step <= limit;
          assert.equal(feed.offer(item), fits);
          if (fits) held.push(item);
        }
        feed.end();
        assert.deepEqual(await taken(feed), held);
      },
    ),
  );
});

test('a consumer that leaves while it waits is told that nothing comes, and the producer that nobody is there', async () => {
  let closed = 0;
  const feed = feedOf(10, () => {
    closed += 1;
  });
  const waiting = feed.next();
  feed.close();
  assert.deepEqual(await waiting, { done: true, value: undefined });
  assert.equal(feed.offer('a'), false);
  await feed.return();
  assert.equal(closed, 1);
});

test('what waits is given up when the consumer leaves', async () => {
  const feed = feedOf(10);
  feed.offer('a');
  feed.close();
  assert.deepEqual(await taken(feed), []);
});

test('a producer that has ended is not told that the consumer left', async () => {
  let closed = 0;
  const feed = feedOf(10, () => {
    closed += 1;
  });
  feed.end();
  feed.close();
  assert.equal(closed, 0);
});
