// The connection pools of a cluster under anything that can happen: several hosts, workers and both priorities share
// limits that are always too small. After every step the counts in shared memory are those of the model, and nobody
// waits for what is there. The pools, connections and circuit breakers are real, the sockets are the test's.

import { test } from 'node:test';
import fc from 'fast-check';
import { PoolModel } from '../../../support/pool-model.ts';

const WORKERS = 2;
const HOSTS = 3;

type Step = (model: PoolModel) => number;

const worker = fc.nat(WORKERS - 1);
const host = fc.nat(HOSTS - 1);
const which = fc.nat(50);
const arrivals = fc.record({ host, isHigh: fc.boolean(), count: fc.integer({ min: 1, max: 8 }), followers: fc.nat(2) });

function steps<Input>(weight: number, input: fc.Arbitrary<Input>, act: (model: PoolModel, input: Input) => number) {
  const arbitrary = input.map(
    (value): Step =>
      Object.assign((model: PoolModel) => act(model, value), {
        [fc.toStringMethod]: () => `${act} of ${fc.stringify(value)}`,
      }),
  );
  return { weight, arbitrary };
}

const step = fc.oneof(
  steps(8, fc.tuple(worker, arrivals), (model, [at, request]) => model.arrive(at, request)),
  steps(8, which, (model, n) => model.accept(n)),
  steps(1, which, (model, n) => model.refuse(n)),
  steps(8, fc.tuple(which, fc.boolean()), (model, [n, isLast]) => model.answer(n, isLast)),
  steps(2, fc.tuple(which, fc.boolean()), (model, [n, byReset]) => model.lose(n, byReset)),
  steps(2, which, (model, n) => model.cancel(n)),
  steps(2, fc.tuple(worker, host), (model, [at, to]) => model.openRaw(at, to)),
  steps(3, which, (model, n) => model.closeRaw(n)),
  steps(1, fc.tuple(worker, host, fc.boolean()), (model, [at, index, isIn]) => model.setHost(at, index, isIn)),
  steps(1, worker, (model, at) => model.renew(at)),
  steps(1, worker, (model, at) => model.crash(at)),
  steps(2, fc.integer({ min: 1, max: 6000 }), (model, ms) => model.turn(ms)),
);

const limits = fc.record(
  {
    maxConnections: fc.integer({ min: 0, max: 6 }),
    maxPendingRequests: fc.integer({ min: 1, max: 12 }),
    maxRequests: fc.integer({ min: 0, max: 8 }),
    maxConnectionsPerHost: fc.nat(4),
  },
  { requiredKeys: ['maxConnections', 'maxPendingRequests', 'maxRequests'] },
);

const ratio = fc.constantFrom(1, 1, 1.25, 2, 3);
const acts = fc.array(step, { maxLength: 120, size: 'max' });

test('no request waits for what is there, and no count is ever wrong', async () => {
  const model = new PoolModel(WORKERS, HOSTS);
  await fc.assert(
    fc.asyncProperty(limits, limits, ratio, acts, async (byDefault, high, perHostRatio, acts) => {
      model.begin(byDefault, high, perHostRatio);
      for (const [n, act] of acts.entries()) {
        await model.step(() => act(model));
        if (n % 4 === 3) await model.look();
      }
      await model.finish();
    }),
    { numRuns: 500 },
  );
});
