// Clients that have come, and have not got far, when the process ends: behind a PROXY header that has begun they are let in and may
// ask once; who says nothing is not waited for.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { FrameType, PREFACE } from '../../src/data-plane/http/codec/http2/frames.ts';
import { DataPlaneFixture, directRoute, httpManager, loopback, tcpProxy } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { FrameClient } from '../support/http2-clients.ts';
import { ended, get, goaways } from '../support/http2-program.ts';
import { SETTINGS } from '../support/http2-session.ts';
import { filterChain, PROXY_PROTOCOL } from '../support/listeners.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const HEADER = ['PROXY TCP4 192.0.2.1 ', '192.0.2.2 1000 80\r\n'] as const;
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const GRACE_MS = 3_600_000;
const HEADER_MS = 15_000;

interface Ending {
  readonly proxy: DataPlaneFixture;
  readonly clock: ManualClock;
  readonly client: WireClient;
  /** Turns the clock until nothing is left of the proxy. */
  readonly gone: () => Promise<void>;
}

/** The process has been told to end. A client that begins has sent the first part of its header, any other nothing. */
async function ending(t: TestContext, { begins = true, isTcp = false } = {}): Promise<Ending> {
  const clock = new ManualClock();
  const proxy = new DataPlaneFixture({ clock });
  const upstream = await WireUpstream.start((socket) => void socket.pipe(socket));
  proxy.cluster('echo', [loopback(upstream.port)]);
  const filter = isTcp ? tcpProxy('echo') : httpManager([directRoute('/', 200, 'direct')]);
  const fields = { listenerFilters: [PROXY_PROTOCOL], filterChains: [filterChain(filter)] };
  const [port] = await proxy.listenWith({ ...fields, listenerFiltersTimeoutMs: HEADER_MS });
  const client = new WireClient(port!);
  t.after(async () => {
    client.close();
    await upstream.close();
  });
  if (begins) client.write(HEADER[0]);
  await eventually(() => proxy.listenerStat('downstream_pre_cx_active') === 1, 'the connection');
  if (begins) await delivered(port!);
  let isGone = false;
  void proxy.dataPlane.shutdown(GRACE_MS).then(() => (isGone = true));
  const gone = async (): Promise<void> => {
    await eventually(() => {
      clock.turn(20);
      return isGone;
    }, 'the end');
    assert.ok(clock.monotonicMs() < GRACE_MS, 'the grace is over');
  };
  return { proxy, clock, client, gone };
}

/** What has been sent to a port before this has been read. */
async function delivered(port: number): Promise<void> {
  const other = new WireClient(port);
  other.write('PROXY UNKNOWN\r\n').write('GET /other HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  await new Promise((resolve) => other.socket.once('data', resolve));
  other.close();
}

describe('when the process ends, a client of which a part of the PROXY header has come', () => {
  test('may ask once, however long the header takes', async (t) => {
    const { clock, client, gone } = await ending(t);
    clock.turn(10_000);
    client.write(HEADER[1]).write(GET);
    const { head, body } = await client.response();
    assert.equal(body, 'direct');
    assert.match(head, /\r\nconnection: close\r\n/i);
    await gone();
  });

  test('may ask once over HTTP/2', async (t) => {
    const { client, gone } = await ending(t);
    client.write(HEADER[1]);
    const frames = new FrameClient(t, client.socket);
    frames.acknowledge();
    frames.send(get(1, '/'));
    assert.equal(await ended(frames, 1), 'direct');
    await frames.ofType(FrameType.GOAWAY);
    assert.deepEqual(goaways(frames), [2 ** 31 - 1]);
    await gone();
    assert.deepEqual(goaways(frames), [2 ** 31 - 1, 1]);
  });

  test('is passed on where connections are proxied as they are, until it falls silent', async (t) => {
    const { client, gone } = await ending(t, { isTcp: true });
    client.write(`${HEADER[1]}echo`);
    assert.equal(await client.until('echo'), 'echo');
    await gone();
  });

  for (const [what, opening] of [
    ['asks for nothing', ''],
    ['only says that it speaks HTTP/2', Buffer.concat([PREFACE, SETTINGS])],
  ] as const) {
    test(`and which then ${what}, is not waited for`, async (t) => {
      const { proxy, clock, client, gone } = await ending(t);
      const sinceMs = clock.monotonicMs();
      client.write(HEADER[1]).write(opening);
      await eventually(() => proxy.httpStat('downstream_cx_total') === 2, 'the connection');
      if (opening !== '') await eventually(() => proxy.httpStat('downstream_cx_http2_active') === 1, 'HTTP/2');
      await gone();
      assert.ok(clock.monotonicMs() - sinceMs < 5000);
    });
  }

  test('has its time for the rest of it, and no more', async (t) => {
    const { proxy, clock, client, gone } = await ending(t);
    const sinceMs = clock.monotonicMs();
    await gone();
    const tookMs = clock.monotonicMs() - sinceMs;
    assert.ok(tookMs > HEADER_MS - 1000 && tookMs < HEADER_MS + 1000, `${tookMs} ms`);
    assert.equal(proxy.listenerStat('downstream_pre_cx_timeout'), 1);
    await client.rest();
  });
});

describe('when the process ends, a client whose first bytes come then', () => {
  const begunLate = async (t: TestContext): Promise<Ending> => {
    const here = await ending(t, { begins: false });
    await new Promise((resolve) => here.client.socket.write(HEADER[0], resolve));
    for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate);
    here.clock.turn(10_000);
    return here;
  };

  test('has its time for the rest', async (t) => {
    const { client, gone } = await begunLate(t);
    client.write(HEADER[1]).write(GET);
    assert.equal((await client.response()).body, 'direct');
    await gone();
  });

  test('has no more than that', async (t) => {
    const { proxy, clock, gone } = await begunLate(t);
    const sinceMs = clock.monotonicMs();
    await gone();
    assert.ok(clock.monotonicMs() - sinceMs < HEADER_MS - 9000);
    assert.equal(proxy.listenerStat('downstream_pre_cx_timeout'), 1);
  });
});

test('when the process ends, a client that has sent nothing has a second for its first bytes', async (t) => {
  const { proxy, clock, client, gone } = await ending(t, { begins: false });
  clock.turn(900);
  assert.equal(proxy.listenerStat('downstream_pre_cx_active'), 1);
  const sinceMs = clock.monotonicMs();
  await gone();
  assert.ok(clock.monotonicMs() - sinceMs < 1000);
  assert.equal(await client.rest(), '');
});
