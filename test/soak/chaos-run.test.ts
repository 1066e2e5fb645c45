// The chaos run in a few seconds; `npm run soak -- --chaos` is the long form.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runChaos } from './chaos-run.ts';

test('over upstreams that fall ill in every way answers are right, errors explained and nothing is left', async () => {
  const { violations, stats, successShare } = await runChaos({
    seconds: 4,
    workers: 2,
    changeMs: 50,
    leastSuccessShare: 0.5,
    checksMemory: false,
  });
  assert.deepEqual(violations, []);
  assert.ok(successShare > 0);
  assert.ok(stats.get('cluster.chaos.membership_change')! > 0);
  assert.ok(stats.get('cluster.chaos.upstream_rq_retry_success')! > 0);
});
