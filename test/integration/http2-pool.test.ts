// Connections of HTTP/2 to an upstream: how many there are, what ends them, and what becomes of their requests then.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import { describe, type TestContext, test } from 'node:test';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import { FrameFlag, FrameType, PREFACE, Setting } from '../../src/data-plane/http/codec/http2/frames.ts';
import { retrySettings } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { type Frame, frame, headers, readFrames, word } from '../support/http2-session.ts';
import { FrameUpstream, Http2Upstream, http2Proxy, type OnStream, readAll } from '../support/http2-upstream.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: a.example\r\n\r\n';
const OK: OnStream = (stream) => {
  stream.respond({ ':status': 200 }, { endStream: true });
};
const OK_FRAME = [[':status', '200']] as const;

async function get(port: number, method = 'GET'): Promise<{ status: number; body: string }> {
  const request = http.request({ port, host: '127.0.0.1', agent: false, method }).end();
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return { status: response.statusCode!, body: (await readAll(response)).toString() };
}

/** Of the frames in these bytes those that are there in full. */
function completeFrames(bytes: Buffer): Frame[] {
  let end = 0;
  while (bytes.length >= end + 9 && bytes.length >= end + 9 + bytes.readUIntBE(end, 3))
    end += 9 + bytes.readUIntBE(end, 3);
  return readFrames(bytes.subarray(0, end));
}

/** Answers when it is told to. */
class Waiting {
  readonly #answers: (() => void)[] = [];
  readonly onStream: OnStream = (stream) => {
    this.#answers.push(() => stream.respond({ ':status': 200 }, { endStream: true }));
  };

  get count(): number {
    return this.#answers.length;
  }

  async until(count: number): Promise<void> {
    await eventually(() => this.#answers.length >= count, `${count} requests`);
  }

  answer(): void {
    for (const answer of this.#answers.splice(0)) answer();
  }
}

async function waitingUpstream(t: TestContext, settings = {}): Promise<{ upstream: Http2Upstream; waiting: Waiting }> {
  const waiting = new Waiting();
  return { upstream: await Http2Upstream.start(t, waiting.onStream, settings), waiting };
}

describe('a pool of HTTP/2 connections', () => {
  test('opens another one when all streams of the first are in use, by either side', async (t) => {
    for (const [own, peer] of [
      [2, 100],
      [100, 2],
    ] as const) {
      const { upstream, waiting } = await waitingUpstream(t, { maxConcurrentStreams: peer });
      const { port } = await http2Proxy(t, upstream.port, { http2: { maxConcurrentStreams: own } });
      // The upstream has said what it takes.
      const first = get(port);
      await waiting.until(1);
      waiting.answer();
      await first;
      const all = Array.from({ length: 5 }, () => get(port));
      await waiting.until(5);
      assert.equal(upstream.sessions.length, 3, `${own} and ${peer}`);
      waiting.answer();
      await Promise.all(all);
    }
  });

  test('opens as many as it takes for requests that come in one moment, before the host has said what it takes', async (t) => {
    const { upstream, waiting } = await waitingUpstream(t, { maxConcurrentStreams: 2 });
    const { port } = await http2Proxy(t, upstream.port);
    const client = http2.connect(`http://127.0.0.1:${port}`);
    t.after(() => client.destroy());
    await once(client, 'remoteSettings');
    // In one write; the first connection is sent all of them, and refuses eight.
    const all = Array.from({ length: 10 }, () => once(client.request().resume(), 'response'));
    await waiting.until(10);
    assert.equal(upstream.sessions.length, 5);
    waiting.answer();
    for (const [fields] of (await Promise.all(all)) as [http2.IncomingHttpHeaders][])
      assert.equal(fields[':status'], 200);
  });

  test('has its requests wait where it may have no other connection', async (t) => {
    const { upstream, waiting } = await waitingUpstream(t);
    const limits = { maxConnections: 1, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 3 };
    const { proxy, port } = await http2Proxy(t, upstream.port, {
      http2: { maxConcurrentStreams: 1 },
      cluster: { circuitBreakers: { default: limits, high: limits } },
    });
    const all = Array.from({ length: 3 }, () => get(port));
    for (let n = 0; n < 3; n++) {
      await waiting.until(1);
      assert.equal(waiting.count, 1);
      waiting.answer();
    }
    assert.deepEqual(
      (await Promise.all(all)).map(({ status }) => status),
      [200, 200, 200],
    );
    assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_pending_active'), 0);
  });

  test('sends no more over a connection that begins than the host has said on another that it takes', async (t) => {
    const counts: number[] = [];
    const upstream = await WireUpstream.start((socket, index) => {
      counts[index] = 0;
      let received = Buffer.alloc(0);
      socket.on('data', (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        const whole = completeFrames(received.subarray(PREFACE.length));
        counts[index] = whole.filter(({ type }) => type === FrameType.HEADERS).length;
      });
      // The others keep silent.
      if (index > 0) return;
      const limit = Buffer.concat([Buffer.from([0, Setting.MAX_CONCURRENT_STREAMS]), word(2)]);
      socket.write(frame(FrameType.SETTINGS, 0, 0, limit));
    });
    t.after(() => upstream.close());
    const { proxy, port } = await http2Proxy(t, upstream.port);
    const clients = Array.from({ length: 10 }, () => new WireClient(port));
    t.after(() => {
      for (const client of clients) client.close();
    });
    clients[0]!.write(GET);
    await eventually(() => counts[0] === 1, 'the first request');
    clients[1]!.write(GET);
    await eventually(() => counts[0] === 2, 'the second request');
    for (const client of clients.slice(2)) client.write(GET);
    const sent = (): number => counts.reduce((sum, count) => sum + count, 0);
    await eventually(() => sent() === clients.length, 'all requests');
    assert.deepEqual(counts, [2, 2, 2, 2, 2]);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), 5);
  });

  test('refuses requests beyond the limit of the cluster', async (t) => {
    const { upstream, waiting } = await waitingUpstream(t);
    const limits = { maxConnections: 10, maxPendingRequests: 1024, maxRequests: 2, maxRetries: 3 };
    const { port } = await http2Proxy(t, upstream.port, {
      cluster: { circuitBreakers: { default: limits, high: limits } },
    });
    const running = [get(port), get(port)];
    await waiting.until(2);
    assert.match((await get(port)).body, /reset reason: overflow$/);
    waiting.answer();
    await Promise.all(running);
  });

  test('replaces a connection after as many requests as one may carry', async (t) => {
    const upstream = await Http2Upstream.start(t, OK);
    const { proxy, port } = await http2Proxy(t, upstream.port, { cluster: { maxRequestsPerConnection: 2 } });
    for (let n = 0; n < 4; n++) assert.equal((await get(port)).status, 200);
    assert.equal(upstream.sessions.length, 2);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_max_requests'), 2);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
  });

  test('closes a connection that carries nothing for long', async (t) => {
    const upstream = await Http2Upstream.start(t, OK);
    const { proxy, port } = await http2Proxy(t, upstream.port, { cluster: { idleTimeoutMs: 10 } });
    await get(port);
    await eventually(() => upstream.sessions[0]!.destroyed, 'the end of the session');
    assert.equal(proxy.clusterStat('web', 'upstream_cx_idle_timeout'), 1);
  });

  test('lets a connection of some age end with its requests', async (t) => {
    const { upstream, waiting } = await waitingUpstream(t);
    const { proxy, port } = await http2Proxy(t, upstream.port, { cluster: { maxConnectionDurationMs: 10 } });
    const first = get(port);
    await waiting.until(1);
    const isOld = (): boolean => proxy.clusterStat('web', 'upstream_cx_max_duration_reached') === 1;
    await eventually(isOld, 'the age');
    const second = get(port);
    await waiting.until(2);
    assert.equal(upstream.sessions.length, 2);
    waiting.answer();
    assert.deepEqual([(await first).status, (await second).status], [200, 200]);
  });

  test('lets a connection end with its requests when its host leaves', async (t) => {
    const { upstream, waiting } = await waitingUpstream(t);
    const { proxy, port } = await http2Proxy(t, upstream.port);
    const running = get(port);
    await waiting.until(1);
    proxy.cluster('web', [], { http2: { settings: DEFAULT_HTTP2_SETTINGS, use: 'always' } });
    waiting.answer();
    assert.equal((await running).status, 200);
    await eventually(() => upstream.sessions[0]!.destroyed, 'the end of the session');
  });
});

describe('a GOAWAY', () => {
  const REQUESTS = 60;
  const TAKEN_BY_EACH = 2;

  /** The first connection takes its first stream only, and says so with the second. */
  async function leavingUpstream(t: TestContext): Promise<FrameUpstream> {
    return await FrameUpstream.start(t, ({ type, streamId }, connection) => {
      if (type !== FrameType.HEADERS) return null;
      if (connection > 0) return headers(streamId, OK_FRAME);
      if (streamId === 1) return null;
      return Buffer.concat([frame(FrameType.GOAWAY, 0, 0, Buffer.concat([word(1), word(0)])), headers(1, OK_FRAME)]);
    });
  }

  test('moves requests that were not taken to another connection, whatever their method, and lets the others end', async (t) => {
    const upstream = await leavingUpstream(t);
    const { proxy, port } = await http2Proxy(t, upstream.port);
    const first = get(port);
    await eventually(() => upstream.of(FrameType.HEADERS).length === 1, 'the first request');
    const second = await get(port, 'POST');
    assert.deepEqual([(await first).status, second.status], [200, 200]);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_close_notify'), 1);
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_destroy_local') === 1, 'the end of the first');
  });

  test('moves them again from the next connection that takes none, four times in all', async (t) => {
    for (const [leaving, status] of [
      [4, 200],
      [5, 503],
    ] as const) {
      const upstream = await FrameUpstream.start(t, ({ type, streamId }, connection) => {
        if (type !== FrameType.HEADERS) return null;
        if (connection >= leaving) return headers(streamId, OK_FRAME);
        return frame(FrameType.GOAWAY, 0, 0, Buffer.concat([word(0), word(0)]));
      });
      const { proxy, port } = await http2Proxy(t, upstream.port);
      assert.equal((await get(port, 'POST')).status, status);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 4);
    }
  });

  test('moves those that it did not take as often as it takes others', async (t) => {
    const taken = new Map<number, number>();
    const upstream = await FrameUpstream.start(t, ({ type, streamId }, connection) => {
      if (type !== FrameType.HEADERS) return null;
      const count = (taken.get(connection) ?? 0) + 1;
      taken.set(connection, count);
      if (count > TAKEN_BY_EACH) return null;
      const answer = headers(streamId, OK_FRAME);
      if (count < TAKEN_BY_EACH) return answer;
      return Buffer.concat([frame(FrameType.GOAWAY, 0, 0, Buffer.concat([word(streamId), word(0)])), answer]);
    });
    const { proxy, port } = await http2Proxy(t, upstream.port);
    const all = await Promise.all(Array.from({ length: REQUESTS }, () => get(port, 'POST')));
    assert.deepEqual([...new Set(all.map(({ status }) => status))], [200]);
    assert.ok(
      proxy.clusterStat('web', 'upstream_rq_retry') > 4 * REQUESTS,
      'most have been moved more than four times',
    );
    assert.ok(proxy.clusterStat('web', 'upstream_cx_total') >= REQUESTS / TAKEN_BY_EACH);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
  });

  test('of an idle connection closes it', async (t) => {
    const upstream = await Http2Upstream.start(t, OK);
    const { proxy, port } = await http2Proxy(t, upstream.port);
    await get(port);
    upstream.sessions[0]!.goaway();
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 0, 'the end');
    assert.equal((await get(port)).status, 200);
  });
});

describe('a stream that is refused', () => {
  const refusing = (times: number): ((t: TestContext) => Promise<FrameUpstream>) => {
    let left = times;
    return async (t) =>
      await FrameUpstream.start(t, ({ type, streamId }) => {
        if (type !== FrameType.HEADERS) return null;
        left -= 1;
        return left >= 0 ? frame(FrameType.RST_STREAM, 0, streamId, word(7)) : headers(streamId, OK_FRAME);
      });
  };

  test('is tried once more by itself', async (t) => {
    const upstream = await refusing(1)(t);
    const { port } = await http2Proxy(t, upstream.port);
    assert.equal((await get(port, 'POST')).status, 200);
  });

  test('says so where it is refused again', async (t) => {
    const upstream = await refusing(2)(t);
    const { port } = await http2Proxy(t, upstream.port);
    const { status, body } = await get(port);
    assert.equal(status, 503);
    assert.match(body, /reset reason: remote refused stream reset$/);
  });
});

describe('an upstream that breaks the protocol', () => {
  test('gets a GOAWAY, and its requests a 502', async (t) => {
    const upstream = await FrameUpstream.start(t, ({ type }) =>
      type === FrameType.HEADERS ? frame(FrameType.PUSH_PROMISE, FrameFlag.END_HEADERS, 1, word(2)) : null,
    );
    const { proxy, port } = await http2Proxy(t, upstream.port);
    const { status, body } = await get(port);
    assert.equal(status, 502);
    assert.match(body, /reset reason: protocol error/);
    await eventually(() => upstream.of(FrameType.GOAWAY).length === 1, 'a GOAWAY');
    assert.equal(proxy.clusterStat('web', 'upstream_cx_protocol_error'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
  });

  test('by one answer loses that one alone', async (t) => {
    const upstream = await FrameUpstream.start(t, ({ type, streamId }) =>
      type === FrameType.HEADERS ? headers(streamId, streamId === 1 ? [['x', 'y']] : OK_FRAME) : null,
    );
    const { proxy, port } = await http2Proxy(t, upstream.port);
    assert.equal((await get(port)).status, 502);
    assert.equal((await get(port)).status, 200);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), 1);
    assert.equal(upstream.of(FrameType.RST_STREAM).length, 1);
  });
});

describe('pings', () => {
  const keepalive = { intervalMs: 10, timeoutMs: 50, jitterPercent: 0, idleIntervalMs: 0 };

  test('go out from time to time, and end a connection that does not answer, with its requests', async (t) => {
    const upstream = await FrameUpstream.start(t, () => null);
    const { proxy, port } = await http2Proxy(t, upstream.port, { http2: { keepalive } });
    const { status, body } = await get(port);
    assert.equal(status, 503);
    assert.match(body, /reset reason: connection termination$/);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_destroy_local_with_active_rq'), 1);
  });

  test('that are answered leave it alone', async (t) => {
    const upstream = await FrameUpstream.start(t, ({ type, flags, payload }) =>
      type === FrameType.PING && flags === 0 ? frame(FrameType.PING, FrameFlag.ACK, 0, payload) : null,
    );
    const timeoutMs = 60_000;
    const { proxy, port } = await http2Proxy(t, upstream.port, { http2: { keepalive: { ...keepalive, timeoutMs } } });
    const client = new WireClient(port).write(GET);
    await eventually(() => upstream.of(FrameType.PING).length >= 3, 'three pings');
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 1);
    client.close();
  });

  test('go out with a request behind a silence', async (t) => {
    const upstream = await FrameUpstream.start(t, ({ type, streamId }) =>
      type === FrameType.HEADERS ? headers(streamId, OK_FRAME) : null,
    );
    const settings = { ...keepalive, intervalMs: 0, idleIntervalMs: 100, timeoutMs: 60_000 };
    const { port } = await http2Proxy(t, upstream.port, { http2: { keepalive: settings } });
    await get(port);
    assert.equal(upstream.of(FrameType.PING).length, 0);
    const wakeMs = performance.now() + 120;
    await eventually(() => performance.now() > wakeMs, 'a silence');
    await get(port);
    assert.equal(upstream.of(FrameType.PING).length, 1);
  });
});

describe('WebSocket', () => {
  const UPGRADE = 'GET /chat HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n';
  const KEY = 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';
  const upgrades = [{ type: 'websocket', isEnabled: true, httpFilters: null }];

  test('goes through an extended CONNECT, to an upstream that takes such', async (t) => {
    const upstream = await FrameUpstream.start(
      t,
      ({ type, streamId, payload, flags }) => {
        if (type === FrameType.HEADERS) return headers(streamId, OK_FRAME, 0);
        return type === FrameType.DATA ? frame(FrameType.DATA, flags & FrameFlag.END_STREAM, streamId, payload) : null;
      },
      [0, Setting.ENABLE_CONNECT_PROTOCOL, 0, 0, 0, 1],
    );
    const { port } = await http2Proxy(t, upstream.port, { manager: { upgrades } });
    const client = new WireClient(port).write(UPGRADE + KEY);
    const head = await client.until('\r\n\r\n');
    assert.match(head, /^HTTP\/1\.1 101 /);
    assert.match(head, /\r\nupgrade: websocket\r\n/i);
    assert.match(head, /\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\n/i);
    client.write('hello');
    await client.until('hello');
    client.socket.end();
    await once(client.socket, 'end');
  });

  test('is refused where the upstream takes none', async (t) => {
    const upstream = await FrameUpstream.start(t, () => null);
    const { port } = await http2Proxy(t, upstream.port, { manager: { upgrades } });
    const client = new WireClient(port).write(UPGRADE + KEY);
    assert.match(await client.until('\r\n\r\n'), /^HTTP\/1\.1 502 /);
    client.close();
  });
});

test('a policy of retries that knows refused streams says how often they are tried', async (t) => {
  const upstream = await FrameUpstream.start(t, ({ type, streamId }) =>
    type === FrameType.HEADERS ? frame(FrameType.RST_STREAM, 0, streamId, word(7)) : null,
  );
  for (const [conditions, requests] of [
    [['refused-stream'], 3],
    [['reset'], 3],
    [['5xx', 'gateway-error'], 3],
    // Nothing of it: once more by itself.
    [['connect-failure'], 2],
  ] as const) {
    const retry = retrySettings({ conditions, maxRetries: 2 });
    const { port, proxy } = await http2Proxy(t, upstream.port, { cluster: { retry } });
    assert.equal((await get(port)).status, 503);
    assert.equal(proxy.hostStat('web', 0, 'rq_total'), requests, conditions.join());
  }
});

test('a policy of retries knows refused streams', async (t) => {
  let left = 3;
  const upstream = await FrameUpstream.start(t, ({ type, streamId }) => {
    if (type !== FrameType.HEADERS) return null;
    left -= 1;
    return left >= 0 ? frame(FrameType.RST_STREAM, 0, streamId, word(7)) : headers(streamId, OK_FRAME);
  });
  const retry = retrySettings({ conditions: ['refused-stream'], maxRetries: 3 });
  const { port } = await http2Proxy(t, upstream.port, { cluster: { retry } });
  assert.equal((await get(port)).status, 200);
});
