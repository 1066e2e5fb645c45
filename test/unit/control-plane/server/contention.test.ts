import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { measureContention } from '../../../../src/control-plane/server/contention.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

async function measured(...readings: readonly [preemptions: number, waitedNs: number][]) {
  const clock = new ManualClock();
  const left = [...readings];
  const measuring = measureContention(clock, () => {
    const [preemptions, waitedNs] = left.shift() ?? [];
    return preemptions === undefined || waitedNs === undefined ? undefined : { preemptions, waitedNs };
  });
  clock.turn(1000);
  return await measuring;
}

describe('contention', () => {
  it('is what threads wait for a processor, now and since they started', async () => {
    assert.deepEqual(await measured([5, 1000], [7, 1800]), { count: 7, currentWaitNs: 800, lifetimeWaitNs: 1800 });
  });

  it('is not less than nothing where a thread has ended meanwhile', async () => {
    assert.deepEqual(await measured([5, 1000], [3, 400]), { count: 3, currentWaitNs: 0, lifetimeWaitNs: 400 });
  });

  it('is unknown where the system does not tell', async () => {
    assert.equal(await measured(), undefined);
    assert.equal(await measured([5, 1000]), undefined);
  });
});
