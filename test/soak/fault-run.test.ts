// The fault run in a few seconds; `npm run soak -- --faults` is the long form.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runFaults } from './fault-run.ts';

test('with descriptors, disk, logs, upstreams and clients failing at once nothing is wrong, lost or left', async () => {
  const { violations, stats, outcomes } = await runFaults({ seconds: 5, workers: 2 });
  assert.deepEqual(violations, []);
  assert.ok(stats.get('http.faults.downstream_rq_2xx')! > 0);
  assert.ok(outcomes.some(([outcome]) => outcome === 'in peace: 200'));
});
