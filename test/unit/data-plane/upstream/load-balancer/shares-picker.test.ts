// Shares of requests to the percent: as main has worked them out, and where the hosts of a priority are spent.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { contextOf } from '../../../../../src/data-plane/upstream/load-balancer/pick-context.ts';
import { type PickedShare, SharesPicker } from '../../../../../src/data-plane/upstream/load-balancer/shares-picker.ts';

type Fields = Pick<PickedShare, 'upTo'> & Partial<Pick<PickedShare, 'availability' | 'isPanic'>>;

/** A share for each priority. @returns how many of 100 requests, each of another percent, go to each, and how many panics. */
function outOf100(fields: readonly Fields[], spent: readonly number[] = []) {
  const counts = fields.map(() => 0);
  let panics = 0;
  let percent = 0;
  const shares = fields.map(({ upTo, availability = 0, isPanic = false }, priority) => {
    const picker = {
      pick: () => {
        counts[priority]! += 1;
        return priority;
      },
    };
    return { upTo, availability, isPanic, priority, picker };
  });
  const picker = new SharesPicker(
    shares,
    () => percent,
    () => void panics++,
  );
  for (; percent < 100; percent++) {
    picker.pick(contextOf(null), { draw: 0, spentPriorities: new Set(spent) });
  }
  return { counts, panics };
}

describe('shares', () => {
  test('get just the percents that they end behind', () => {
    assert.deepEqual(outOf100([{ upTo: 0 }, { upTo: 30 }, { upTo: 30 }, { upTo: 99 }, { upTo: 100 }]), {
      counts: [0, 30, 0, 69, 1],
      panics: 0,
    });
    assert.deepEqual(outOf100([{ upTo: 0 }, { upTo: 100 }]).counts, [0, 100]);
  });

  test('count a panic for each request that goes to one that is in panic', () => {
    assert.equal(outOf100([{ upTo: 30 }, { upTo: 100, isPanic: true }]).panics, 70);
    assert.equal(outOf100([{ upTo: 100, isPanic: true }]).panics, 100);
  });

  test('whose priority is spent are divided among the others by what those can take', () => {
    const shares = [
      { upTo: 100, availability: 100 },
      { upTo: 100, availability: 70 },
      { upTo: 100, availability: 46 },
    ];
    assert.deepEqual(outOf100(shares, [0]), { counts: [0, 70, 30], panics: 0 });
    assert.deepEqual(outOf100(shares, [0, 1]).counts, [0, 0, 100]);
  });

  test('of what rounding leaves go to the first that can take anything', () => {
    const shares = [0, 33, 33, 33, 0].map((availability) => ({ upTo: 100, availability }));
    assert.deepEqual(outOf100(shares, [9]).counts, [0, 34, 33, 33, 0]);
  });
});
