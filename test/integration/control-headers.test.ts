// Headers by which clients inside steer the router: the time that they may set, and what is refused where the router
// minds.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GET, httpBench, OK } from '../support/http-bench.ts';
import { WireUpstream } from '../support/wire.ts';

function get(...lines: readonly string[]): string {
  return `GET / HTTP/1.1\r\nhost: x\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;
}

describe('the time that the proxy before this one expects', () => {
  for (const { respects, expected } of [
    { respects: true, expected: '700' },
    { respects: false, expected: '5000' },
  ]) {
    test(`is ${respects ? '' : 'not '}taken over where the router is told ${respects ? 'so' : 'nothing'}`, async (t) => {
      const upstream = await WireUpstream.answering(OK);
      const settings = { useRemoteAddress: true, respectsExpectedTimeout: respects };
      const { client } = await httpBench(t, { upstream, settings });
      const lines = ['x-envoy-expected-rq-timeout-ms: 700', 'x-proxy-upstream-rq-timeout-ms: 5000'];
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

describe('a control header that is checked strictly', () => {
  const strictlyCheckedHeaders = [
    'x-proxy-upstream-rq-timeout-ms',
    'x-proxy-upstream-rq-per-try-timeout-ms',
    'x-proxy-max-retries',
    'x-proxy-retry-on',
    'x-proxy-retry-grpc-on',
  ];
  const cases = [
    ['x-proxy-upstream-rq-timeout-ms', '10', 'soon'],
    ['x-envoy-upstream-rq-per-try-timeout-ms', '10', '-1'],
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
