// Requests whose head is slow to come: which of the timeouts run from its first byte, and what is told of its time.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { HttpConnectionManagerSettings } from '../../src/snapshot/index.ts';
import { directRoute, forwardTo, routeFor, routeTo } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { upstreamOf } from '../support/scripted-upstream.ts';
import { type TunnelBench, tunnelBench } from '../support/tunnel-bench.ts';
import type { WireClient } from '../support/wire.ts';

const FORMAT = '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %START_TIME% %DURATION%\n';
const HEAD = 'GET /direct HTTP/1.1\r\nhost: x\r\n';
/** Of the manual clock, when it has not been turned. */
const START = '2026-01-01T00:00:01.000Z';
const ROUTES = [directRoute('/direct', 200, 'direct'), routeTo('web', { timeoutMs: 0 })];
const NO_TIMEOUTS = { streamIdleTimeoutMs: 0, requestTimeoutMs: 0, requestHeadersTimeoutMs: 0, idleTimeoutMs: 0 };

interface Bench extends TunnelBench {
  readonly clock: ManualClock;
  /** Sends bytes, and waits until the proxy has read them. */
  send(wire: WireClient, text: string): Promise<void>;
}

async function bench(
  t: TestContext,
  settings: Partial<HttpConnectionManagerSettings>,
  upstreamPort = 1,
): Promise<Bench> {
  const clock = new ManualClock();
  const timeouts = { ...NO_TIMEOUTS, ...settings };
  const bench = await tunnelBench(t, { upstreamPort, clock, routes: ROUTES, settings: timeouts, format: FORMAT });
  const send = async (wire: WireClient, text: string): Promise<void> => {
    const received = (): number => bench.proxy.httpStat('downstream_cx_rx_bytes_total');
    const before = received();
    wire.write(text);
    await eventually(() => received() === before + text.length, 'the bytes');
  };
  return { ...bench, clock, send };
}

const TIMEOUTS = [
  {
    setting: 'requestTimeoutMs',
    stat: 'downstream_rq_timeout',
    body: 'request timeout',
    entry: '408 - request_overall_timeout',
  },
  {
    setting: 'streamIdleTimeoutMs',
    stat: 'downstream_rq_idle_timeout',
    body: 'stream timeout',
    entry: '408 SI stream_idle_timeout',
  },
  {
    setting: 'requestHeadersTimeoutMs',
    stat: 'downstream_rq_header_timeout',
    body: 'request header timeout',
    entry: '408 - request_header_timeout',
  },
] as const;

for (const { setting, stat, body, entry } of TIMEOUTS) {
  describe(`a head under ${setting}`, () => {
    test('that stalls is answered, counted and logged with its true time', async (t) => {
      const { client, proxy, clock, send, entries } = await bench(t, { [setting]: 1000 });
      const wire = client();
      await send(wire, 'G');
      clock.turn(990);
      assert.equal(proxy.httpStat(stat), 0);
      clock.turn(20);
      const answer = await wire.rest();
      assert.match(answer, /^HTTP\/1\.1 408 .*\r\nconnection: close\r\n/s);
      assert.ok(answer.endsWith(`\r\n\r\n${body}`));
      assert.equal(proxy.httpStat(stat), 1);
      assert.equal(proxy.httpStat('downstream_rq_total'), 1);
      assert.equal(proxy.httpStat('downstream_rq_4xx'), 1);
      const [sample, ...others] = proxy.httpSamples('downstream_rq_time');
      assert.ok(sample! >= 1000 && sample! < 1020, `took ${sample}`);
      assert.deepEqual(others, []);
      assert.match((await entries())[0]!, new RegExp(`^${entry} ${START} 10\\d\\d$`));
    });

    test('that trickles has no longer time', async (t) => {
      const { client, proxy, clock, send } = await bench(t, { [setting]: 1000 });
      const wire = client();
      // Every step is progress of a kind, and lines are read as they come.
      for (const text of ['GET /direct', ' HTTP/1.1\r\n', 'host: x\r\n', 'x-more: 1\r\n']) {
        assert.equal(proxy.httpStat(stat), 0);
        await send(wire, text);
        clock.turn(251);
      }
      assert.match(await wire.rest(), /^HTTP\/1\.1 408 /);
      assert.equal(proxy.httpStat(stat), 1);
    });

    test('begins with its turn when it waits behind another request', async (t) => {
      const upstream = await upstreamOf(t);
      const { client, proxy, clock, send, entries } = await bench(t, { [setting]: 1000 }, upstream.port);
      const wire = client();
      await send(wire, `GET / HTTP/1.1\r\nhost: x\r\n\r\n${HEAD}`);
      await upstream.received('\r\n\r\n');
      clock.turn(900);
      upstream.send('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      await wire.response();
      clock.turn(900);
      assert.equal(proxy.httpStat(stat), 0);
      clock.turn(110);
      assert.match(await wire.rest(), /^HTTP\/1\.1 408 /);
      const [first, second] = await entries();
      assert.equal(first, `200 - via_upstream ${START} 900`);
      assert.match(second!, new RegExp(`^${entry} 2026-01-01T00:00:01\\.900Z 10\\d\\d$`));
    });
  });
}

describe('a head that comes in parts', () => {
  test('counts the time of its request from its first byte', async (t) => {
    const { client, proxy, clock, send, entries } = await bench(t, {});
    const wire = client();
    await send(wire, HEAD.slice(0, 3));
    clock.turn(100);
    await send(wire, HEAD.slice(3));
    clock.turn(200);
    await send(wire, '\r\n');
    assert.equal((await wire.response()).body, 'direct');
    clock.turn(50);
    // The next one in one part: nothing of the time of the last is left.
    await send(wire, `${HEAD}\r\n`);
    assert.equal((await wire.response()).body, 'direct');
    assert.deepEqual(proxy.httpSamples('downstream_rq_time'), [300, 0]);
    assert.deepEqual(await entries(), [
      `200 - direct_response ${START} 300`,
      '200 - direct_response 2026-01-01T00:00:01.350Z 0',
    ]);
  });

  test('and then breaks HTTP is logged with its true time', async (t) => {
    const { client, proxy, clock, send, entries } = await bench(t, {});
    const wire = client();
    await send(wire, HEAD);
    clock.turn(300);
    await send(wire, 'no field\r\n');
    assert.match(await wire.rest(), /^HTTP\/1\.1 400 /);
    assert.deepEqual(proxy.httpSamples('downstream_rq_time'), [300]);
    assert.match((await entries())[0]!, new RegExp(`^400 DPE http1\\.codec_error\\{.*\\} ${START} 300$`));
  });

  test('leaves its body what is left of the request timeout, and all of the idle timeout', async (t) => {
    const post = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n';
    const upstream = await upstreamOf(t);
    const settings = { requestTimeoutMs: 1000, streamIdleTimeoutMs: 700 };
    const { client, proxy, clock, send } = await bench(t, settings, upstream.port);
    const wire = client();
    await send(wire, post);
    clock.turn(600);
    await send(wire, '\r\nbody');
    clock.turn(350);
    assert.equal(proxy.httpStat('downstream_rq_idle_timeout'), 0);
    assert.equal(proxy.httpStat('downstream_rq_timeout'), 0);
    clock.turn(60);
    assert.equal(proxy.httpStat('downstream_rq_timeout'), 1);
    assert.match(await wire.until('request timeout'), /^HTTP\/1\.1 408 /);
  });

  test('ends the request timeout when nothing comes behind it', async (t) => {
    const upstream = await upstreamOf(t);
    const { client, proxy, clock, send } = await bench(t, { requestTimeoutMs: 1000 }, upstream.port);
    const wire = client();
    await send(wire, 'GET / HTTP/1.1\r\nhost: x\r\n');
    clock.turn(600);
    await send(wire, '\r\n');
    await upstream.received('\r\n\r\n');
    clock.turn(5000);
    upstream.send('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    assert.equal((await wire.response()).status, 200);
    assert.equal(proxy.httpStat('downstream_rq_timeout'), 0);
  });

  test('starts the time of a stream, but not that of its idle timeout, by the route', async (t) => {
    const upstream = await upstreamOf(t);
    const limits = { timeoutMs: 0, idleTimeoutMs: 1000, maxStreamDurationMs: 1500 };
    const routes = [routeFor('/', forwardTo('web', limits))];
    const clock = new ManualClock();
    const { client, proxy } = await tunnelBench(t, { upstreamPort: upstream.port, clock, routes });
    const wire = client().write('GET / HTTP/1.1\r\nhost: x\r\n');
    await eventually(() => proxy.httpStat('downstream_cx_rx_bytes_total') > 0, 'the head has begun');
    clock.turn(700);
    wire.write('\r\n');
    await upstream.received('\r\n\r\n');
    clock.turn(750);
    assert.equal(proxy.httpStat('downstream_rq_idle_timeout'), 0);
    clock.turn(60);
    assert.equal(proxy.httpStat('downstream_rq_max_duration_reached'), 1);
    assert.match(await wire.until('\r\n\r\n'), /^HTTP\/1\.1 504 /);
  });
});

describe('a connection', () => {
  test('is not idle once a head has begun', async (t) => {
    const { client, proxy, clock, send } = await bench(t, { idleTimeoutMs: 1000, requestTimeoutMs: 5000 });
    const wire = client();
    await send(wire, 'G');
    clock.turn(4000);
    assert.equal(proxy.httpStat('downstream_cx_idle_timeout'), 0);
    assert.equal(proxy.httpStat('downstream_cx_active'), 1);
    clock.turn(1010);
    assert.match(await wire.rest(), /^HTTP\/1\.1 408 /);
  });

  test('is closed as idle when no timeout of its requests would ever end a head', async (t) => {
    const { client, proxy, clock, send } = await bench(t, { idleTimeoutMs: 1000 });
    const wire = client();
    await send(wire, 'G');
    clock.turn(1010);
    assert.equal(await wire.rest(), '');
    assert.equal(proxy.httpStat('downstream_cx_idle_timeout'), 1);
  });

  for (const text of ['\r', '\r\n']) {
    test(`is as idle behind ${JSON.stringify(text)} as without it`, async (t) => {
      const settings = { idleTimeoutMs: 60_000, requestTimeoutMs: 1000, requestHeadersTimeoutMs: 1000 };
      const { client, proxy, clock, send } = await bench(t, settings);
      const [waiting, ending] = [client(), client()];
      await send(waiting, `${HEAD}\r\n`);
      await waiting.response();
      await send(waiting, text);
      clock.turn(5000);
      await send(waiting, `${'\r\n'.slice(text.length)}${HEAD}\r\n`);
      assert.equal((await waiting.response()).body, 'direct');
      assert.equal(proxy.httpStat('downstream_rq_timeout'), 0);
      await send(ending, text);
      const stopped = proxy.dataPlane.shutdown(60_000);
      assert.equal(await ending.rest(), '');
      ending.socket.end();
      waiting.socket.end();
      await eventually(() => proxy.dataPlane.connectionCount === 0, 'the end of both');
      clock.turn(100);
      await stopped;
    });
  }
});
