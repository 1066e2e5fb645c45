// Which updates wait for which workers, against a plain list of what each worker still owes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { UpdateConfirmations } from '../../../../src/control-plane/workers/update-confirmations.ts';
import { NO_FAULTS, notedFaults } from '../../../support/faults.ts';

const WORKERS = 3;

type Step =
  | { readonly kind: 'begin'; readonly workers: readonly number[] }
  | { readonly kind: 'confirm'; readonly generation: number; readonly worker: number }
  | { readonly kind: 'drop'; readonly worker: number };

const worker = fc.nat(WORKERS);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('begin' as const), workers: fc.uniqueArray(worker) }) },
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('confirm' as const), generation: fc.nat(8), worker }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const), worker }) },
  ),
  { maxLength: 40 },
);

test('an update is confirmed once, when each worker that was sent it has confirmed it or has ended', (t) => {
  // No slice is ever over.
  t.mock.method(performance, 'now', () => 0);
  fc.assert(
    fc.property(steps, (taken) => {
      const confirmations = new UpdateConfirmations(NO_FAULTS);
      const owed = new Map<number, number[]>();
      const confirmed: number[] = [];
      const expected: number[] = [];
      let generation = 0;
      const settle = (done: (entry: number, who: number) => boolean): void => {
        for (const [entry, workers] of owed) {
          const left = workers.filter((who) => !done(entry, who));
          if (left.length > 0) owed.set(entry, left);
          else if (owed.delete(entry)) expected.push(entry);
        }
      };
      for (const step of taken) {
        if (step.kind === 'begin') {
          const wanted = ++generation;
          owed.set(wanted, [...step.workers]);
          assert.equal(
            confirmations.begin(step.workers, () => confirmed.push(wanted)),
            wanted,
          );
          settle(() => false);
        } else if (step.kind === 'confirm') {
          confirmations.confirm(step.generation, step.worker);
          settle((entry, who) => entry === step.generation && who === step.worker);
        } else {
          confirmations.drop(step.worker);
          settle((_, who) => who === step.worker);
        }
        assert.deepEqual(confirmed, expected);
        assert.equal(confirmations.size, owed.size);
      }
    }),
    { numRuns: 300 },
  );
});

test('what follows from thousands of confirmations at once leaves others their turns, in its order and whatever fails of it', async (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const { faults, reports } = notedFaults();
  const confirmations = new UpdateConfirmations(faults);
  const confirmed: number[] = [];
  const generations = Array.from({ length: 1000 }, () => {
    const generation: number = confirmations.begin([0, 1], () => {
      // A hundred of them fill a slice.
      nowMs += 0.06;
      confirmed.push(generation);
      if (generation === 10) throw new Error('odd');
    });
    return generation;
  });
  confirmations.confirmAll(generations, 0);
  assert.equal(confirmed.length, 0);
  confirmations.confirmAll(generations, 1);
  assert.ok(confirmed.length >= 90 && confirmed.length <= 110, `${confirmed.length} in the first slice`);
  const last: number = confirmations.begin([1], () => confirmed.push(last));
  confirmations.confirm(last, 1);
  let turns = 0;
  for (; confirmed.length <= generations.length; turns += 1) await nextTurn();
  assert.deepEqual(confirmed, [...generations, last]);
  assert.ok(turns >= 8 && turns <= 12, `${turns} turns`);
  assert.deepEqual(reports, ['what follows from an update that is in force: Error: odd']);
  // At once again.
  const next: number = confirmations.begin([0], () => confirmed.push(next));
  await nextTurn();
  confirmations.confirm(next, 0);
  assert.equal(confirmed.at(-1), next);
});
