// What the data plane does when something goes wrong on either side, at every stage, by bytes on the wire.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { HttpStream } from '../../src/data-plane/http/stream.ts';
import { type ClusterOverrides, loopback } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { assertBalanced, GET, httpBench, OK, RESET_BODY } from '../support/http-bench.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { unusedPort, WireUpstream } from '../support/wire.ts';

describe('an upstream that fails before its response', () => {
  test('refuses the connection: 503 with the reason', async (t) => {
    const { client, proxy } = await httpBench(t, { upstreamPort: await unusedPort() });
    const wire = client().write(GET);
    const reply = await wire.response();
    assert.equal(reply.status, 503);
    assert.equal(
      reply.body,
      `${RESET_BODY}remote connection failure, transport failure reason: delayed connect error: 111`,
    );
    assert.equal(proxy.clusterStat('web', 'upstream_cx_connect_fail'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_pending_failure_eject'), 1);
    assert.equal(proxy.hostStat('web', 0, 'cx_connect_fail'), 1);
    wire.write(GET);
    assert.equal((await wire.response()).status, 503);
    assertBalanced(proxy);
  });

  test('closes after the request, by end or by reset: 503, connection termination', async (t) => {
    const upstream = await WireUpstream.start((socket, index) => {
      socket.once('data', () => (index === 0 ? socket.end() : socket.resetAndDestroy()));
    });
    const { client, proxy } = await httpBench(t, { upstream });
    const wire = client();
    for (let i = 0; i < 2; i++) {
      wire.write(GET);
      const reply = await wire.response();
      assert.deepEqual([reply.status, reply.body], [503, `${RESET_BODY}connection termination`]);
    }
    assert.equal(proxy.clusterStat('web', 'upstream_cx_destroy_remote_with_active_rq'), 2);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_rx_reset'), 2);
    assert.equal(proxy.hostStat('web', 0, 'rq_error'), 2);
    assertBalanced(proxy);
  });

  test('does not accept in time: 503 after the connect timeout', async (t) => {
    const clock = new ManualClock();
    // An address of the documentation range: nobody answers, and nothing refuses.
    const { client, proxy } = await httpBench(t, { clock });
    proxy.cluster('web', [{ kind: 'ip', ip: '192.0.2.1', port: 9 }], { connectTimeoutMs: 250 });
    const wire = client().write(GET);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_pending_active') === 1, 'the request waits');
    if (proxy.clusterStat('web', 'upstream_cx_connect_fail') === 0) clock.turn(300);
    const reply = await wire.response();
    assert.equal(reply.status, 503);
    if (proxy.clusterStat('web', 'upstream_cx_connect_timeout') === 0) return; // no route to anywhere on this machine
    assert.equal(reply.body, `${RESET_BODY}connection timeout`);
    assertBalanced(proxy);
  });

  test('has no host: 503 no healthy upstream', async (t) => {
    const { client, proxy } = await httpBench(t, {});
    proxy.cluster('web', []);
    const reply = await client().write(GET).response();
    assert.deepEqual([reply.status, reply.body], [503, 'no healthy upstream']);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_none_healthy'), 1);
    assertBalanced(proxy);
  });

  test('breaks HTTP: 502, and the connection is not used again', async (t) => {
    const answers = [
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx',
      'HTTP/1.1 200 OK\r\nx : y\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      'nonsense\r\n\r\n',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    ];
    const upstream = await WireUpstream.start((socket, index) => {
      socket.on('data', () => socket.write(answers[index]!));
    });
    const { client, proxy } = await httpBench(t, { upstream });
    const wire = client();
    for (const answer of answers) {
      wire.write(GET);
      assert.equal((await wire.response()).status, 502, JSON.stringify(answer));
    }
    assert.equal(upstream.sockets.length, answers.length);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_protocol_error'), answers.length);
    assertBalanced(proxy);
  });
});

describe('an upstream that fails within its response', () => {
  const starts = {
    length: 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart',
    chunked: 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n',
    'until close': 'HTTP/1.1 200 OK\r\n\r\npart',
  };
  for (const [framing, start] of Object.entries(starts)) {
    test(`cuts the client off: ${framing}`, async (t) => {
      const upstream = await WireUpstream.start((socket) => {
        socket.once('data', () => socket.write(start, () => setImmediate(() => socket.resetAndDestroy())));
      });
      const { client, proxy } = await httpBench(t, { upstream });
      const wire = client().write(GET);
      const text = await wire.rest();
      assert.doesNotMatch(text, /\r\n0\r\n\r\n$/, 'must not look complete');
      await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'the connection is closed');
      assert.equal(proxy.httpStat('downstream_rq_tx_reset') + proxy.httpStat('downstream_rq_5xx'), 1);
      assertBalanced(proxy);
    });
  }

  test('an HTTP/1.0 client, which reads until the end, is reset instead of ended', async (t) => {
    const upstream = await WireUpstream.start((socket) => {
      socket.once('data', () => socket.write(starts.chunked, () => setImmediate(() => socket.end())));
    });
    const { client } = await httpBench(t, { upstream });
    const wire = client().write('GET / HTTP/1.0\r\nhost: x\r\n\r\n');
    await wire.rest();
    await eventually(() => wire.error !== null, 'the client is reset');
    assert.equal((wire.error as NodeJS.ErrnoException).code, 'ECONNRESET');
  });

  test('bytes after a complete response end the connection, not the response', async (t) => {
    const upstream = await WireUpstream.answering(`${OK}HTTP/1.1 200 OK\r\n`);
    const { client, proxy } = await httpBench(t, { upstream });
    const wire = client();
    for (let i = 0; i < 2; i++) {
      wire.write(GET);
      assert.equal((await wire.response()).body, 'ok');
    }
    assert.equal(upstream.sockets.length, 2);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_protocol_error'), 2);
    assertBalanced(proxy);
  });

  test('bytes on an idle connection end it; the next request takes another', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    const { client, proxy } = await httpBench(t, { upstream });
    const wire = client().write(GET);
    await wire.response();
    upstream.sockets[0]!.write(OK);
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 0, 'the connection is closed');
    wire.write(GET);
    assert.equal((await wire.response()).body, 'ok');
    assert.equal(upstream.sockets.length, 2);
    assertBalanced(proxy);
  });
});

describe('an early response', () => {
  for (const framing of ['content-length', 'chunked'] as const) {
    for (const size of [100_000, 3_000_000]) {
      test(`to an upload of ${size} bytes by ${framing} reaches the client, and the upload is never read as requests`, async (t) => {
        const upstream = await WireUpstream.start((socket) => {
          let isAnswered = false;
          socket.on('data', () => {
            if (!isAnswered) socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig');
            isAnswered = true;
          });
        });
        const { client, proxy } = await httpBench(t, { upstream });
        const wire = client();
        // A body that would be requests, were it read as such.
        const smuggled = Buffer.from(`GET /direct HTTP/1.1\r\nhost: x\r\n\r\n`.repeat(Math.ceil(size / 35))).subarray(
          0,
          size,
        );
        if (framing === 'content-length') {
          wire.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${size}\r\n\r\n`);
        } else {
          wire.write(`POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${size.toString(16)}\r\n`);
        }
        wire.write(smuggled.subarray(0, 50_000));
        const reply = await wire.response();
        assert.deepEqual([reply.status, reply.body], [413, 'big']);
        wire.write(smuggled.subarray(50_000));
        assert.equal(await wire.rest(), '');
        assert.equal(proxy.httpStat('downstream_rq_total'), 1);
        assert.equal(proxy.httpStat('downstream_rq_response_before_rq_complete'), 1);
        wire.close();
        await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'the connection is closed');
        assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
        assertBalanced(proxy);
      });
    }
  }

  test('that has begun, and ends while the request still comes, is the last of its connection', async (t) => {
    const upstream = await WireUpstream.start((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n.\r\n');
        socket.once('data', () => socket.write('0\r\n\r\n'));
      });
    });
    const { client, proxy } = await httpBench(t, { upstream });
    const wire = client().write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 60\r\n\r\nabc');
    await wire.until('.\r\n');
    wire.write('more');
    await wire.until('0\r\n\r\n');
    wire.write('GET /direct HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(3));
    assert.equal(await wire.rest(), '');
    wire.close();
    await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'the connection is closed');
    assert.equal(proxy.httpStat('downstream_rq_total'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
    assertBalanced(proxy);
  });

  test('that streams while the request still comes lets both finish', async (t) => {
    const upstream = await WireUpstream.start((socket) => {
      let received = 0;
      socket.on('data', (chunk: Buffer) => {
        if (received === 0) socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
        received += chunk.length;
        socket.write('1\r\n.\r\n');
        if (chunk.toString('latin1').endsWith('END')) socket.write('0\r\n\r\n');
      });
    });
    const { client, proxy } = await httpBench(t, { upstream });
    const wire = client().write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\nabc');
    await wire.until('.\r\n');
    wire.write('END');
    await wire.until('0\r\n\r\n');
    wire.write('GET /direct HTTP/1.1\r\nhost: x\r\n\r\n');
    assert.equal((await wire.response()).body, 'direct');
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 1);
    assertBalanced(proxy);
  });
});

describe('a client that vanishes', () => {
  const stages = {
    'before a byte': '',
    'within its head': 'GET / HTT',
    'within its body': 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\npart',
    'while it waits': GET,
  };
  for (const [stage, bytes] of Object.entries(stages)) {
    for (const how of ['end', 'resetAndDestroy'] as const) {
      test(`${stage}, by ${how}: everything is released`, async (t) => {
        const upstream = await WireUpstream.start(() => {});
        const { port, proxy } = await httpBench(t, { upstream });
        const socket = connect(port, '127.0.0.1').on('error', () => {});
        await once(socket, 'connect');
        if (bytes !== '') socket.write(bytes);
        await eventually(
          () => proxy.httpStat('downstream_cx_rx_bytes_total') === bytes.length,
          'the bytes have arrived',
        );
        await eventually(() => proxy.httpStat('downstream_cx_total') === 1, 'the connection is there');
        if (bytes.includes('host')) await eventually(() => upstream.sockets.length === 1, 'the upstream is connected');
        socket[how]();
        await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'the connection is gone');
        await eventually(() => proxy.clusterStat('web', 'upstream_rq_active') === 0, 'the request is gone');
        assert.equal(proxy.httpStat('downstream_cx_destroy_remote'), 1);
        assert.equal(proxy.httpStat('downstream_rq_rx_reset'), bytes.includes('host') ? 1 : 0);
        assertBalanced(proxy);
      });
    }
  }

  test('in the middle of a long response takes the upstream with it and leaks no slab', async (t) => {
    const upstream = await WireUpstream.start((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 50000000\r\n\r\n');
        socket.write(Buffer.alloc(20_000_000));
      });
    });
    const { client, proxy } = await httpBench(t, { upstream });
    const wire = client().write(GET);
    await wire.bytes(3_000_000);
    wire.socket.pause();
    await eventually(
      () => proxy.clusterStat('web', 'upstream_flow_control_paused_reading_total') > 0,
      'reading is paused',
    );
    wire.close();
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 0, 'the upstream is closed');
    assert.equal(proxy.httpStat('downstream_rq_rx_reset'), 1);
    assertBalanced(proxy);
  });
});

describe('timeouts', () => {
  /** Accepts requests and never answers. */
  async function silent(): Promise<WireUpstream & { readonly asked: () => number }> {
    let asked = 0;
    const upstream = await WireUpstream.start((socket) => socket.on('data', () => asked++));
    return Object.assign(upstream, { asked: () => asked });
  }

  test('of the route: 504, and the upstream connection is closed', async (t) => {
    const clock = new ManualClock();
    const upstream = await silent();
    const { client, proxy } = await httpBench(t, { upstream, clock, timeoutMs: 1000 });
    const wire = client().write(GET);
    await eventually(() => upstream.asked() === 1, 'the request has arrived');
    clock.turn(990);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_timeout'), 0);
    clock.turn(30);
    const reply = await wire.response();
    assert.deepEqual([reply.status, reply.body], [504, 'upstream request timeout']);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_timeout'), 1);
    assert.equal(proxy.hostStat('web', 0, 'rq_timeout'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
    assertBalanced(proxy);
  });

  test('of the route after the response has begun: the client is cut off', async (t) => {
    const clock = new ManualClock();
    const upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\npart');
    const { client, proxy } = await httpBench(t, { upstream, clock, timeoutMs: 1000 });
    const wire = client().write(GET);
    await wire.until('part');
    clock.turn(1100);
    await wire.rest();
    assert.equal(proxy.httpStat('downstream_rq_tx_reset'), 1);
    assertBalanced(proxy);
  });

  test('of an idle stream: 504 while the upstream is silent, 408 while the client is', async (t) => {
    const clock = new ManualClock();
    const upstream = await silent();
    const { client, proxy } = await httpBench(t, {
      upstream,
      clock,
      timeoutMs: 0,
      settings: { streamIdleTimeoutMs: 5000 },
    });
    const waiting = client().write(GET);
    await eventually(() => upstream.asked() === 1, 'the request has arrived');
    clock.turn(5100);
    assert.equal((await waiting.response()).status, 504);
    const uploading = client().write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\npart');
    await eventually(() => upstream.asked() === 2, 'the upload has begun');
    clock.turn(5100);
    assert.match(await uploading.until('stream timeout'), /^HTTP\/1\.1 408 [\s\S]*connection: close/);
    assert.equal(proxy.httpStat('downstream_rq_idle_timeout'), 2);
    uploading.close();
    await eventually(() => proxy.httpStat('downstream_cx_active') === 1, 'the upload is closed');
    assertBalanced(proxy);
  });

  test('of head, request and idle connection close with their own reply', async (t) => {
    const clock = new ManualClock();
    const upstream = await silent();
    const settings = { requestHeadersTimeoutMs: 1000, requestTimeoutMs: 3000, idleTimeoutMs: 60_000 };
    const { client, proxy } = await httpBench(t, { upstream, clock, settings });
    const head = client().write('GET / HTTP/1.1\r\nhost');
    await eventually(() => proxy.httpStat('downstream_cx_rx_bytes_total') > 0, 'the head has begun');
    clock.turn(1100);
    assert.match(await head.until('request header timeout'), /^HTTP\/1\.1 408 /);
    head.close();
    const body = client().write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n');
    await eventually(() => upstream.asked() === 1, 'the upload has begun');
    clock.turn(3100);
    assert.match(await body.until('request timeout'), /^HTTP\/1\.1 408 /);
    body.close();
    const idle = client();
    await once(idle.socket, 'connect');
    await eventually(() => proxy.httpStat('downstream_cx_total') === 3, 'the connection is there');
    clock.turn(60_100);
    assert.equal(await idle.rest(), '');
    idle.close();
    assert.equal(proxy.httpStat('downstream_rq_header_timeout'), 1);
    assert.equal(proxy.httpStat('downstream_rq_timeout'), 1);
    assert.equal(proxy.httpStat('downstream_cx_idle_timeout'), 1);
    await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'all are closed');
    assertBalanced(proxy);
  });

  test('of an idle upstream connection closes it', async (t) => {
    const clock = new ManualClock();
    const upstream = await WireUpstream.answering(OK);
    const { client, proxy } = await httpBench(t, { upstream, clock, cluster: { idleTimeoutMs: 10_000 } });
    await client().write(GET).response();
    clock.turn(10_100);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_idle_timeout'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
  });

  test('a client that does not close after the last response is closed after a second', async (t) => {
    const clock = new ManualClock();
    const upstream = await WireUpstream.answering(OK);
    const { client, proxy } = await httpBench(t, { upstream, clock });
    const wire = client().write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    assert.match(await wire.rest(), /connection: close/);
    assert.equal(proxy.httpStat('downstream_cx_active'), 1);
    clock.turn(1100);
    assert.equal(proxy.httpStat('downstream_cx_active'), 0);
    assert.equal(proxy.httpStat('downstream_cx_delayed_close_timeout'), 1);
    assert.equal(proxy.httpStat('downstream_cx_destroy_local'), 1);
  });
});

describe('circuit breakers', () => {
  const open = { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 3 };
  const limits = (limited: Partial<typeof open>): ClusterOverrides => ({
    circuitBreakers: { default: { ...open, ...limited }, high: open },
  });

  /** Answers when told to. */
  async function patient(): Promise<WireUpstream & { release: () => void; readonly asked: () => number }> {
    const waiting: (() => void)[] = [];
    let asked = 0;
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', () => {
        asked++;
        waiting.push(() => socket.write(OK));
      });
    });
    return Object.assign(upstream, {
      asked: () => asked,
      release: () => {
        for (const answer of waiting.splice(0)) answer();
      },
    });
  }

  test('of connections: further requests wait for the one there is', async (t) => {
    const upstream = await patient();
    const { client, proxy } = await httpBench(t, { upstream, cluster: limits({ maxConnections: 1 }) });
    const first = client().write(GET);
    await eventually(() => upstream.asked() === 1, 'the first is sent');
    const second = client().write(GET);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_pending_active') === 1, 'the second waits');
    assert.equal(proxy.clusterStat('web', 'upstream_cx_overflow'), 1);
    upstream.release();
    assert.equal((await first.response()).status, 200);
    await eventually(() => upstream.asked() === 2, 'the second is sent');
    upstream.release();
    assert.equal((await second.response()).status, 200);
    assert.equal(upstream.sockets.length, 1);
    assertBalanced(proxy);
  });

  test('of connections: when the one there is ends, who waits gets a new one', async (t) => {
    const waiting: (() => void)[] = [];
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', () =>
        waiting.push(() => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')),
      );
    });
    const { client, proxy } = await httpBench(t, { upstream, cluster: limits({ maxConnections: 1 }) });
    const first = client().write(GET);
    await eventually(() => waiting.length === 1, 'the first is sent');
    const second = client().write(GET);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_pending_active') === 1, 'the second waits');
    waiting[0]!();
    assert.equal((await first.response()).status, 200);
    await eventually(() => waiting.length === 2, 'the second is sent');
    waiting[1]!();
    assert.equal((await second.response()).status, 200);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_close_notify'), 2);
    assertBalanced(proxy);
  });

  test('of pending requests and of requests: 503 with the overload header', async (t) => {
    const upstream = await patient();
    const { client, proxy } = await httpBench(t, {
      upstream,
      cluster: limits({ maxConnections: 1, maxPendingRequests: 1 }),
    });
    const first = client().write(GET);
    await eventually(() => upstream.asked() === 1, 'the first is sent');
    const second = client().write(GET);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_pending_active') === 1, 'the second waits');
    const third = await client().write(GET).response();
    assert.deepEqual([third.status, third.body], [503, `${RESET_BODY}overflow`]);
    assert.match(third.head, /\r\nx-proxy-overloaded: true\r\n/);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_pending_overflow'), 1);
    upstream.release();
    await first.response();
    await eventually(() => upstream.asked() === 2, 'the second is sent');
    upstream.release();
    await second.response();

    proxy.cluster('web', [loopback(upstream.port)], limits({ maxRequests: 1 }));
    const running = client().write(GET);
    await eventually(() => upstream.asked() === 3, 'one runs');
    assert.equal((await client().write(GET).response()).status, 503);
    upstream.release();
    await running.response();
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_active') === 0, 'all is done');
    assertBalanced(proxy);
  });

  test('a connection closes after max_requests_per_connection', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    const { client, proxy } = await httpBench(t, { upstream, cluster: { maxRequestsPerConnection: 2 } });
    const wire = client();
    for (let i = 0; i < 5; i++) {
      wire.write(GET);
      await wire.response();
    }
    assert.equal(upstream.sockets.length, 3);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_max_requests'), 2);
    assertBalanced(proxy);
  });
});

test('a bug in the handling of one connection costs that connection only', async (t) => {
  const upstream = await WireUpstream.answering(OK);
  const { client, proxy } = await httpBench(t, { upstream });
  const healthy = client().write(GET);
  await healthy.response();
  const broken = t.mock.method(HttpStream.prototype, 'begin', () => {
    throw new Error('deliberate');
  });
  assert.equal(await client().write(GET).rest(), '');
  broken.mock.restore();
  healthy.write(GET);
  assert.equal((await healthy.response()).status, 200);
  assert.equal(proxy.httpStat('downstream_cx_active'), 1);
  assert.equal(proxy.httpStat('downstream_rq_tx_reset'), 1);
  assertBalanced(proxy);
});

describe('shutdown', () => {
  test('closes idle connections at once, lets requests finish, and says that they are the last', async (t) => {
    const waiting: (() => void)[] = [];
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', () => waiting.push(() => socket.write(OK)));
    });
    const { client, proxy, port } = await httpBench(t, { upstream });
    const idle = client();
    await once(idle.socket, 'connect');
    const running = client().write(GET);
    await eventually(() => waiting.length === 1, 'the request runs');
    await eventually(() => proxy.httpStat('downstream_cx_total') === 2, 'both are there');
    const done = proxy.dataPlane.shutdown(60_000);
    assert.equal(await idle.rest(), '');
    idle.close();
    const late = connect(port, '127.0.0.1');
    const [error] = (await once(late, 'error')) as [NodeJS.ErrnoException];
    assert.equal(error.code, 'ECONNREFUSED');
    waiting[0]!();
    assert.match(await running.rest(), /^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*ok$/);
    running.close();
    await done;
    // The idle one, and that whose response said so.
    assert.equal(proxy.httpStat('downstream_cx_drain_close'), 2);
    assertBalanced(proxy);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
  });

  test('cuts what is left when the grace period is over', async (t) => {
    const upstream = await WireUpstream.start(() => {});
    const { client, proxy } = await httpBench(t, { upstream });
    const wire = client().write(GET);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_active') === 1, 'the request runs');
    await proxy.dataPlane.shutdown(30);
    assert.equal(await wire.rest(), '');
    assert.equal(proxy.dataPlane.connectionCount, 0);
    // It was not the client who went.
    assert.equal(proxy.httpStat('downstream_rq_rx_reset'), 0);
    assert.equal(proxy.httpStat('downstream_rq_tx_reset'), 1);
    assert.equal(proxy.httpStat('downstream_cx_destroy_local_active_rq'), 1);
    assert.equal(proxy.httpStat('downstream_cx_destroy_remote'), 0);
    assertBalanced(proxy);
  });
});
