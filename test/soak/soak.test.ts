// The soak in a few seconds: too short to show a leak of memory, long enough for everything else that must hold.
// `npm run soak` is the long form.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSoak } from './soak.ts';

test('mixed traffic over upstreams that come and go leaves right answers, balanced books and nothing open', async () => {
  const { violations, stats, outcomes } = await runSoak({
    seconds: 3,
    warmUpSeconds: 1,
    workers: 2,
    churnMs: 1000,
    // On a crowded machine nothing says how long a failure stays explainable.
    excuseMs: 600_000,
    checksMemory: false,
  });
  assert.deepEqual(violations, []);
  assert.ok(stats.get('http.soak.downstream_rq_2xx')! > 0);
  assert.ok(outcomes.some(([outcome]) => outcome === 'tcp: whole'));
});
