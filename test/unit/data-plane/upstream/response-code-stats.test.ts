// The counters of response codes, which come into being with the first response of each.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ResponseCodeStats } from '../../../../src/data-plane/upstream/response-code-stats.ts';
import { listing, statsFixture } from '../../../support/stats.ts';

/** Counts the codes in one worker. @returns what main shows of it, and how often it was asked for a counter. */
async function count(prefix: string, codes: readonly number[]): Promise<{ shown: string[]; asked: number }> {
  const { workers, store } = statsFixture({ workerCount: 1 });
  const [worker] = workers;
  store.scope('web.');
  const stats = new ResponseCodeStats(worker!.stats, 'web.', prefix);
  for (const code of codes) stats.count(code);
  const asked = worker!.asked.length;
  worker!.answer(store);
  return { shown: await listing(store, true), asked };
}

test('each code counts for itself and for its class, by counters that are asked for once', async () => {
  const { shown, asked } = await count('', [200, 200, 201, 404, 100, 599, 599]);
  assert.deepEqual(shown.toSorted(), [
    'web.upstream_rq_100: 1',
    'web.upstream_rq_1xx: 1',
    'web.upstream_rq_200: 2',
    'web.upstream_rq_201: 1',
    'web.upstream_rq_2xx: 3',
    'web.upstream_rq_404: 1',
    'web.upstream_rq_4xx: 1',
    'web.upstream_rq_599: 2',
    'web.upstream_rq_5xx: 2',
  ]);
  assert.equal(asked, shown.length);
});

test('of responses under a prefix all are counted as completed, also those of no class', async () => {
  const { shown, asked } = await count('external.', [204, 99, 600, 0]);
  assert.deepEqual(shown.toSorted(), [
    'web.external.upstream_rq_204: 1',
    'web.external.upstream_rq_2xx: 1',
    'web.external.upstream_rq_completed: 4',
  ]);
  assert.equal(asked, shown.length);
});

test('what is of no class counts nowhere without a prefix', async () => {
  assert.deepEqual(await count('', [99, 600, 0]), { shown: [], asked: 0 });
});

test('the times of responses under a prefix go into one histogram, which is asked for once', (t) => {
  const { workers, store } = statsFixture({ workerCount: 1 });
  const [worker] = workers;
  store.scope('web.');
  const stats = new ResponseCodeStats(worker!.stats, 'web.', 'canary.');
  stats.recordTime(12);
  assert.deepEqual(
    worker!.asked.map(({ scope, name }) => scope + name),
    ['web.canary.upstream_rq_time'],
  );
  worker!.answer(store);
  const record = t.mock.method(worker!.stats, 'record');
  stats.recordTime(34);
  assert.equal(record.mock.callCount(), 1);
  assert.equal(record.mock.calls[0]!.arguments[1], 34);
  assert.deepEqual(worker!.asked, []);
});
