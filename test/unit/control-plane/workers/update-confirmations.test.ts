// Which updates wait for which workers, against a plain list of what each worker still owes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { UpdateConfirmations } from '../../../../src/control-plane/workers/update-confirmations.ts';

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

test('an update is confirmed once, when each worker that was sent it has confirmed it or has ended', () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const confirmations = new UpdateConfirmations();
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
