// The connection pools of a cluster of HTTP/2 under anything that can happen: limits that are too small, settings that change, streams
// that end in every way, GOAWAY, connections and hosts that come and go. The sockets are the test's, all else is real.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Ending, Http2PoolModel } from '../../../support/http2-pool-model.ts';

const HOSTS = 2;

type Step = (model: Http2PoolModel) => void | Promise<void>;

const host = fc.nat(HOSTS - 1);
const which = fc.nat(50);
const streams = fc.constantFrom(0, 1, 1, 2, 3, 5);
const endings = fc.constantFrom<Ending>(
  'answered',
  'answered',
  'trailers',
  'reset',
  'refused',
  'reset behind the head',
);

function steps<Input>(
  weight: number,
  input: fc.Arbitrary<Input>,
  act: (model: Http2PoolModel, input: Input) => void | Promise<void>,
) {
  const arbitrary = input.map(
    (value): Step =>
      Object.assign((model: Http2PoolModel) => act(model, value), {
        [fc.toStringMethod]: () => `${act} of ${fc.stringify(value)}`,
      }),
  );
  return { weight, arbitrary };
}

const step = fc.oneof(
  steps(8, fc.tuple(host, fc.integer({ min: 1, max: 8 })), (model, [to, count]) => model.arrive(to, count)),
  steps(8, fc.tuple(which, fc.option(streams)), (model, [n, most]) => model.accept(n, most)),
  steps(1, which, (model, n) => model.refuse(n)),
  steps(2, fc.tuple(which, streams), (model, [n, most]) => model.announce(n, most)),
  steps(10, fc.tuple(which, endings), (model, [n, how]) => model.end(n, how)),
  steps(2, fc.tuple(which, fc.nat(100)), (model, [n, share]) => model.leave(n, share)),
  steps(2, fc.tuple(which, fc.boolean()), (model, [n, byReset]) => model.lose(n, byReset)),
  steps(2, which, (model, n) => model.cancel(n)),
  steps(1, fc.tuple(host, fc.boolean()), (model, [index, isIn]) => model.setHost(index, isIn)),
  steps(1, fc.constant(null), (model) => model.renew()),
  steps(2, fc.integer({ min: 1, max: 6000 }), (model, ms) => model.turn(ms)),
);

const limits = fc.record({
  maxConnections: fc.integer({ min: 0, max: 5 }),
  maxPendingRequests: fc.integer({ min: 1, max: 12 }),
  maxRequests: fc.integer({ min: 0, max: 12 }),
  maxRequestsPerConnection: fc.constantFrom(0, 0, 1, 2, 5),
  maxConcurrentStreams: fc.constantFrom(1, 2, 4, 2 ** 31 - 1),
  perHostRatio: fc.constantFrom(1, 1, 1.5, 3),
});

const MOST = {
  maxConnections: 5,
  maxPendingRequests: 5,
  maxRequests: 5,
  maxRequestsPerConnection: 0,
  maxConcurrentStreams: 5,
  perHostRatio: 1,
};

for (const { name, limits, last } of [
  { name: 'whose only other connection fails', limits: MOST, last: (model: Http2PoolModel) => model.refuse(0) },
  {
    name: 'that gives up waiting',
    limits: { ...MOST, maxConnections: 1 },
    last: (model: Http2PoolModel) => model.cancel(0),
  },
]) {
  test(`the last request to a host that has left, ${name}, leaves no connection behind`, async () => {
    const model = new Http2PoolModel(1);
    await model.begin(limits);
    for (const act of [
      () => model.arrive(0, 1),
      // It takes no second one.
      () => model.accept(0, 0),
      () => model.end(0, 'answered'),
      () => model.arrive(0, 1),
      () => model.setHost(0, false),
      () => last(model),
    ]) {
      await model.step(act);
    }
    assert.equal(model.connectionCount, 0);
  });
}

test('no stream is lost, none goes beyond a limit, and no connection is left behind', async () => {
  const model = new Http2PoolModel(HOSTS);
  await fc.assert(
    fc.asyncProperty(limits, fc.array(step, { maxLength: 100, size: 'max' }), async (most, acts) => {
      await model.begin(most);
      for (const act of acts) await model.step(() => act(model));
      await model.finish();
    }),
    { numRuns: 200 },
  );
});
