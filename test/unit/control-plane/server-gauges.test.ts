import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServerGauges } from '../../../src/control-plane/server/server-gauges.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { statsFixture } from '../../support/stats.ts';

test('the time that the start took is recorded when the server is live', async () => {
  const { store } = statsFixture();
  const clock = new ManualClock();
  const deps = { stats: store, clock, concurrency: 1, revisionNumber: 0, faults: { count: 0 } };
  const gauges = new ServerGauges({ ...deps, state: () => 'LIVE', connections: () => 0, droppedLogLines: () => 0 });
  clock.turn(340);
  gauges.recordInitialization();
  await store.mergeHistograms();
  for await (const [time] of store.histograms()) {
    assert.equal(time!.name, 'server.initialization_time_ms');
    const [shown] = time!.quantiles('cumulative', [0.5]);
    // A bucket holds 340 to 350.
    assert.ok(shown! >= 340 && shown! <= 350, String(shown));
  }
});
