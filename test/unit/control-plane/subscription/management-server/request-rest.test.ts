import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestRest } from '../../../../../src/control-plane/subscription/management-server/request-rest.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';

test('what can wait rests for ten milliseconds behind a long request, and behind a short one not at all', () => {
  const clock = new ManualClock();
  const rest = new RequestRest(clock);
  assert.equal(rest.remainingMs, 0);
  rest.noteSent(65_535);
  assert.equal(rest.remainingMs, 0);
  rest.noteSent(65_536);
  assert.equal(rest.remainingMs, 10);
  clock.turn(4);
  // A short one behind it changes nothing.
  rest.noteSent(100);
  assert.equal(rest.remainingMs, 6);
  clock.turn(6);
  assert.equal(rest.remainingMs, 0);
});
