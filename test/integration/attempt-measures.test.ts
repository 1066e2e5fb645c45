// What clusters that ask for it record of each attempt: the share of its time that was used, and the sizes of messages; by
// bytes on the wire and a clock that the test turns.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { retrySettings } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { GET, type HttpBench, httpBench, OK } from '../support/http-bench.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { WireUpstream } from '../support/wire.ts';

const WHOLE = 'upstream_rq_timeout_budget_percent_used';
const EACH_TRY = 'upstream_rq_timeout_budget_per_try_percent_used';
/** Longer than the timer wheel's grain. */
const GRAIN_MS = 20;

async function silent() {
  const answers: ((bytes: string) => void)[] = [];
  const upstream = await WireUpstream.start((socket) => {
    socket.on('data', () => answers.push((bytes) => socket.write(bytes)));
    socket.on('end', () => socket.end());
  });
  return Object.assign(upstream, { answers });
}

async function over({ proxy }: HttpBench): Promise<void> {
  await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'the request is over');
}

const TRACKED = { tracksTimeoutBudgets: true };

describe('timeout budgets', () => {
  test('are used by the share of their time that a response took, of the whole and of the try', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const route = { retry: retrySettings({ perTryTimeoutMs: 200 }) };
    const bench = await httpBench(t, { upstream, clock, route, timeoutMs: 400, cluster: TRACKED });
    const wire = bench.client().write(GET);
    await eventually(() => upstream.answers.length === 1, 'the request arrives');
    clock.turn(101);
    upstream.answers[0]!(OK);
    assert.equal((await wire.response()).status, 200);
    assert.deepEqual(bench.proxy.budgetSamples('web', WHOLE), [25]);
    assert.deepEqual(bench.proxy.budgetSamples('web', EACH_TRY), [50]);
  });

  test('are used up by a request that runs out of time', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const bench = await httpBench(t, { upstream, clock, timeoutMs: 400, cluster: TRACKED });
    const wire = bench.client().write(GET);
    await eventually(() => upstream.answers.length === 1, 'the request arrives');
    clock.turn(400 + GRAIN_MS);
    assert.equal((await wire.response()).status, 504);
    await over(bench);
    assert.deepEqual(bench.proxy.budgetSamples('web', WHOLE), [100]);
    assert.deepEqual(bench.proxy.budgetSamples('web', EACH_TRY), [0], 'a try without a limit has used none of it');
  });

  test('are used by each try, and by the request once', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const route = { retry: retrySettings({ perTryTimeoutMs: 100 }) };
    const bench = await httpBench(t, { upstream, clock, route, timeoutMs: 1000, cluster: TRACKED });
    const wire = bench.client().write(GET);
    await eventually(() => upstream.answers.length === 1, 'the request arrives');
    clock.turn(100 + GRAIN_MS);
    clock.turn(30);
    await eventually(() => upstream.answers.length === 2, 'it is tried again');
    upstream.answers[1]!(OK);
    assert.equal((await wire.response()).status, 200);
    const [first, second] = bench.proxy.budgetSamples('web', EACH_TRY);
    assert.equal(first, 100);
    assert.ok(second! < 50, `${second}`);
    assert.equal(bench.proxy.budgetSamples('web', WHOLE).length, 1);
  });

  test('of a request that may take any time are not used', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    const bench = await httpBench(t, { upstream, timeoutMs: 0, cluster: TRACKED });
    await bench.client().write(GET).response();
    assert.deepEqual(bench.proxy.budgetSamples('web', WHOLE), [0]);
  });
});

describe('sizes of messages', () => {
  test('are those on the wire, heads and bodies apart', async (t) => {
    const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx-a: b\r\n\r\nhello';
    const upstream = await WireUpstream.answering(answer);
    const bench = await httpBench(t, { upstream, cluster: { tracksMessageSizes: true } });
    const request = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc';
    await bench.client().write(request).response();
    const [head] = upstream.heads as [string];
    const samples = (name: Parameters<typeof bench.proxy.sizeSamples>[1]) => bench.proxy.sizeSamples('web', name);
    assert.deepEqual(samples('upstream_rq_headers_size'), [head.length]);
    assert.deepEqual(samples('upstream_rq_headers_count'), [head.split('\r\n').length - 3]);
    assert.deepEqual(samples('upstream_rq_body_size'), [3]);
    assert.deepEqual(samples('upstream_rs_headers_size'), [answer.indexOf('hello')]);
    assert.deepEqual(samples('upstream_rs_headers_count'), [2]);
    assert.deepEqual(samples('upstream_rs_body_size'), [5]);
  });

  test('of a response that never came are not recorded', async (t) => {
    const upstream = await WireUpstream.start((socket) => socket.on('data', () => socket.resetAndDestroy()));
    const bench = await httpBench(t, { upstream, cluster: { tracksMessageSizes: true } });
    assert.equal((await bench.client().write(GET).response()).status, 503);
    assert.equal(bench.proxy.sizeSamples('web', 'upstream_rq_headers_size').length, 1);
    assert.deepEqual(bench.proxy.sizeSamples('web', 'upstream_rs_headers_size'), []);
  });
});
