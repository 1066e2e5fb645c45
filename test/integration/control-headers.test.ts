// Headers by which clients inside steer the router: the time that they may set, and what is refused where the router
// minds.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { GET, httpBench, OK } from '../support/http-bench.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { WireUpstream } from '../support/wire.ts';

function get(...lines: readonly string[]): string {
  return `GET / HTTP/1.1\r\nhost: x\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;
}

describe('the time that the proxy before this one expects', () => {
  for (const { respects, expected } of [
    { respects: true, expected: '70000' },
    { respects: false, expected: '50000' },
  ]) {
    test(`is ${respects ? '' : 'not '}taken over where the router is told ${respects ? 'so' : 'nothing'}`, async (t) => {
      const upstream = await WireUpstream.answering(OK);
      const settings = { useRemoteAddress: true, respectsExpectedTimeout: respects };
      const { client } = await httpBench(t, { upstream, settings });
      const lines = ['x-envoy-expected-rq-timeout-ms: 70000', 'x-proxy-upstream-rq-timeout-ms: 50000'];
      assert.equal(
        (
          await client()
            .write(get(...lines))
            .response()
        ).status,
        200,
      );
      assert.match(upstream.heads[0]!, new RegExp(`\r\nx-proxy-expected-rq-timeout-ms: ${expected}\r\n`));
    });
  }
});

describe('the time that a gRPC request gives itself', () => {
  const cases = [
    { own: '250m', maxMs: 1000, told: '250m' },
    { own: '2S', maxMs: 1000, told: '1000m' },
    { own: '1M', maxMs: 0, told: '60000m' },
    { own: '99999999S', maxMs: 0, told: '99999999S' },
    { own: '1n', maxMs: 0, told: '1m' },
    { own: '500m', maxMs: 0, offsetMs: 100, told: '400m' },
    { own: '100m', maxMs: 0, offsetMs: 100, told: '100m' },
    { own: undefined, maxMs: 700, told: '700m' },
    { own: 'soon', maxMs: 700, told: '700m' },
    { own: undefined, maxMs: 0, told: undefined },
  ];
  for (const { own, maxMs, offsetMs = 0, told } of cases) {
    test(`${own ?? 'nothing'}, of ${maxMs} ms at most and ${offsetMs} less, is ${told ?? 'any'}`, async (t) => {
      const upstream = await WireUpstream.answering(OK);
      // Its time stands still, so that none of these is over.
      const clock = new ManualClock();
      const { client } = await httpBench(t, { upstream, clock, route: { grpcTimeout: { maxMs, offsetMs } } });
      const lines = own === undefined ? [] : [`grpc-timeout: ${own}`];
      await client()
        .write(get('content-type: application/grpc+proto', ...lines))
        .response();
      assert.equal(/^grpc-timeout: (.*)\r$/m.exec(upstream.heads[0]!)?.[1], told);
    });
  }

  test('ends it', async (t) => {
    const [upstream, clock] = [await WireUpstream.start(() => {}), new ManualClock()];
    const { client, proxy } = await httpBench(t, {
      upstream,
      clock,
      route: { grpcTimeout: { maxMs: 0, offsetMs: 0 } },
    });
    const wire = client().write(get('content-type: application/grpc', 'grpc-timeout: 100m'));
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_active') === 1, 'the request is on its way');
    clock.turn(120);
    const { head, status } = await wire.response();
    assert.deepEqual([status, /^grpc-status: (.*)\r$/m.exec(head)?.[1]], [200, '14']);
  });

  for (const { own, maxMs, offsetMs = 0, endsMs } of [
    { own: '100m', maxMs: 0, endsMs: 100 },
    { own: '1S', maxMs: 200, endsMs: 200 },
    { own: '400m', maxMs: 0, offsetMs: 100, endsMs: 300 },
    { own: undefined, maxMs: 100, endsMs: 500 },
    { own: 'soon', maxMs: 100, endsMs: 500 },
  ]) {
    test(`ends the whole exchange after ${endsMs} ms, if it is ${own ?? 'none'} of ${maxMs} at most`, async (t) => {
      const [upstream, clock] = [await WireUpstream.start(() => {}), new ManualClock()];
      const route = { timeoutMs: 0, maxStreamDurationMs: 500, grpcStreamDuration: { maxMs, offsetMs } };
      const { client, proxy } = await httpBench(t, { upstream, clock, route });
      const lines = own === undefined ? [] : [`grpc-timeout: ${own}`];
      const wire = client().write(get(...lines));
      await eventually(() => proxy.clusterStat('web', 'upstream_rq_active') === 1, 'the request is on its way');
      clock.turn(endsMs - 20);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 1);
      clock.turn(60);
      assert.equal((await wire.response()).status, 504);
    });
  }

  test("is the connection manager's limit of streams where the route leaves it to that", async (t) => {
    const upstream = await WireUpstream.answering(OK);
    const route = { timeoutMs: 0, limitsStreamDuration: true };
    const { client } = await httpBench(t, { upstream, route, settings: { maxStreamDurationMs: 7000 } });
    await client().write(get('content-type: application/grpc', 'grpc-timeout: 9S')).response();
    assert.match(upstream.heads[0]!, /\r\ngrpc-timeout: 7000m\r\n/);
  });

  test("is not told where the route takes away the connection manager's limit", async (t) => {
    const upstream = await WireUpstream.answering(OK);
    const route = { timeoutMs: 0, maxStreamDurationMs: 0, limitsStreamDuration: true, replacesStreamDuration: true };
    for (const maxStreamDurationMs of [7000, 0]) {
      const { client } = await httpBench(t, { upstream, route, settings: { maxStreamDurationMs } });
      await client().write(get('content-type: application/grpc', 'grpc-timeout: 9S')).response();
    }
    assert.doesNotMatch(upstream.heads[0]!, /grpc-timeout/);
    assert.match(upstream.heads[1]!, /\r\ngrpc-timeout: 9S\r\n/);
  });

  test('means nothing to other requests, nor to other routes', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    const timed = await httpBench(t, { upstream, route: { grpcTimeout: { maxMs: 50_000, offsetMs: 0 } } });
    await timed.client().write(get('content-type: application/grpc-web', 'grpc-timeout: 7m')).response();
    const plain = await httpBench(t, { upstreamPort: upstream.port });
    await plain.client().write(get('content-type: application/grpc', 'grpc-timeout: 7m')).response();
    for (const head of upstream.heads) {
      assert.match(head, /\r\ngrpc-timeout: 7m\r\n/);
      assert.match(head, /\r\nx-proxy-expected-rq-timeout-ms: 15000\r\n/);
    }
  });
});

describe('a control header that is checked strictly', () => {
  const strictlyCheckedHeaders = [
    'x-proxy-upstream-rq-timeout-ms',
    'x-proxy-upstream-rq-per-try-timeout-ms',
    'x-proxy-max-retries',
    'x-proxy-retry-on',
    'x-proxy-retry-grpc-on',
  ];
  const cases = [
    ['x-proxy-upstream-rq-timeout-ms', '100000', 'soon'],
    ['x-envoy-upstream-rq-per-try-timeout-ms', '10000', '-1'],
    ['x-proxy-max-retries', '3', '3x'],
    ['x-proxy-retry-on', '5xx,reset', '5xx,unavailable'],
    ['x-envoy-retry-grpc-on', 'unavailable', 'reset'],
  ] as const;
  for (const [name, good, bad] of cases) {
    test(`is refused when it makes no sense: ${name}`, async (t) => {
      const upstream = await WireUpstream.answering(OK);
      const settings = { useRemoteAddress: true, strictlyCheckedHeaders };
      const { client, proxy } = await httpBench(t, { upstream, settings });
      const wire = client();
      assert.equal((await wire.write(get(`${name}: ${good}`)).response()).status, 200);
      const reply = await wire.write(get(`${name}: ${bad}`)).response();
      assert.deepEqual([reply.status, reply.body], [400, `invalid header '${name}' with value '${bad}'`]);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_total'), 1);
    });
  }

  test('from outside is dropped, and says nothing', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    const { client } = await httpBench(t, { upstream, settings: { strictlyCheckedHeaders } });
    assert.equal((await client().write(get('x-proxy-max-retries: many')).response()).status, 200);
    assert.equal((await client().write(GET).response()).status, 200);
  });

  test('is ignored when it makes no sense, and nobody minds', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    const { client } = await httpBench(t, { upstream, settings: { useRemoteAddress: true } });
    assert.equal((await client().write(get('x-proxy-max-retries: many')).response()).status, 200);
  });
});
