// The churn run in a few seconds; `npm run soak -- --churn` is the long form.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runChurn } from './churn-run.ts';

test('clusters, members and listeners come and go without a trace, and unnoticed by those who do not use them', async () => {
  const { violations, outcomes } = await runChurn({ rounds: 200, warmUpRounds: 100, workers: 2 });
  assert.deepEqual(violations, []);
  const seen = new Map(outcomes);
  for (const outcome of ['steady: 200', 'cluster: 200', 'listener: 200', 'tunnel: echo']) {
    assert.ok(seen.get(outcome)! > 0, outcome);
  }
});
