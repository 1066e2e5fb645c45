// The part of requests that stays in this proxy's own zone, to the ten-thousandth.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contextOf } from '../../../../../src/data-plane/upstream/load-balancer/pick-context.ts';
import { ZonesPicker } from '../../../../../src/data-plane/upstream/load-balancer/zones-picker.ts';

const LOCAL = 0;
const OTHER = 1;

/** @param drawn of 10,000: decides whether the request stays. */
function zoneOf(localShare: number, drawn: number): number {
  const picker = new ZonesPicker({
    routes: { isDirect: false, isPanic: false, failsInPanic: false, localShare },
    any: { pick: () => assert.fail('goes by zone') },
    zones: [
      { upTo: 0, picker: { pick: () => LOCAL } },
      { upTo: 1, picker: { pick: () => OTHER } },
    ],
    enabled: { value: { numerator: 100, denominator: 100 } },
    random: { u32: () => drawn },
    count: () => {},
  });
  return picker.pick(contextOf(null), null);
}

test('as many of ten thousand requests stay in the zone as its share says', () => {
  for (const share of [0, 1, 2500, 9999]) {
    if (share > 0) assert.equal(zoneOf(share, share - 1), LOCAL);
    assert.equal(zoneOf(share, share), OTHER);
    assert.equal(zoneOf(share, 10_000 + share), OTHER);
  }
});
