// Interim responses of upstreams, on their way to clients of either protocol, or not.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import type { ForwardAction, HttpConnectionManagerSettings } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, forwardTo, loopback, retrySettings, routeFor } from '../support/data-plane.ts';
import { answerOf, Http2Client } from '../support/http2-clients.ts';
import { Http2Upstream } from '../support/http2-upstream.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

type Protocol = 'HTTP/1' | 'HTTP/2';
const PROTOCOLS: readonly Protocol[] = ['HTTP/1', 'HTTP/2'];
const EXPECTING = 'POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n';
const SPEAKS_HTTP2 = { http2: { settings: DEFAULT_HTTP2_SETTINGS, use: 'always' } } as const;
const PASSING = { proxiesInterim: true, via: '1.1 weir' };

interface Bench {
  readonly proxy: DataPlaneFixture;
  readonly port: number;
}

/** An upstream that gives hints before each answer, and says 100 to those who wait for that; it tells what it was asked. */
async function upstreamOf(t: TestContext, protocol: Protocol): Promise<number> {
  if (protocol === 'HTTP/2') {
    const upstream = await Http2Upstream.start(t, (stream, fields) => {
      if (fields.expect !== undefined) stream.additionalHeaders({ ':status': 100 });
      else stream.additionalHeaders({ ':status': 103, link: '</style.css>' });
      let body = '';
      stream.on('data', (chunk: Buffer) => (body += chunk.toString()));
      stream.on('end', () => {
        const answer = `got ${body}.`;
        stream.respond({ ':status': 200, 'content-length': answer.length });
        stream.end(answer);
      });
    });
    return upstream.port;
  }
  const upstream = await WireUpstream.start((socket) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      const isNew = text === '';
      text += chunk.toString('latin1');
      const isPost = text.startsWith('POST');
      if (isNew && /expect: 100-continue/i.test(text)) socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      else if (isNew) socket.write('HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\nconnection: x\r\nx: y\r\n\r\n');
      if (isPost && !text.endsWith('body')) return;
      const body = isPost ? 'got body.' : 'got .';
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      text = '';
    });
  });
  t.after(() => upstream.close());
  return upstream.port;
}

async function bench(
  t: TestContext,
  upstream: Protocol,
  settings: Partial<HttpConnectionManagerSettings>,
  route: Partial<ForwardAction> = {},
): Promise<Bench> {
  const proxy = new DataPlaneFixture();
  const port = await upstreamOf(t, upstream);
  proxy.cluster('web', [loopback(port)], upstream === 'HTTP/2' ? SPEAKS_HTTP2 : {});
  t.after(() => proxy.close());
  return { proxy, port: await proxy.http([routeFor('/', forwardTo('web', route))], settings) };
}

/** The heads that a client gets, as far as they are of interest: status and link, those of interim responses first. */
async function headsOf(t: TestContext, client: Protocol, port: number): Promise<string[]> {
  if (client === 'HTTP/2') {
    const heads: string[] = [];
    const note = (fields: IncomingHttpHeaders): number =>
      heads.push([fields[':status' as 'link'], fields.link, fields.via].filter(Boolean).join(' '));
    const stream = new Http2Client(t, port).open({}, { endStream: true });
    stream.on('headers', note);
    stream.on('response', note);
    stream.resume();
    await once(stream, 'end');
    return heads;
  }
  const wire = new WireClient(port).write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  const heads = (await wire.rest()).split('\r\n\r\n').slice(0, -1);
  return heads.map((head) => {
    assert.doesNotMatch(head, /\nx: y/);
    const found = [/^HTTP\/1\.1 (\d+)/, /\nlink: (.*)\r?/, /\nvia: (.*)\r?/].map((pattern) => pattern.exec(head)?.[1]);
    return found.filter(Boolean).join(' ').replaceAll('\r', '');
  });
}

for (const client of PROTOCOLS) {
  for (const upstream of PROTOCOLS) {
    describe(`an interim response of ${upstream} to a client of ${client}`, () => {
      test('passes before the answer, where that is asked for', async (t) => {
        const { proxy, port } = await bench(t, upstream, PASSING);
        assert.deepEqual(await headsOf(t, client, port), ['103 </style.css> 1.1 weir', '200 1.1 weir']);
        assert.equal(proxy.httpStat('downstream_rq_1xx'), 1);
        assert.equal(proxy.httpStat('downstream_rq_2xx'), 1);
        assert.equal(proxy.clusterStat('web', 'upstream_rq_completed'), 2);
      });

      test('goes nowhere where it is not', async (t) => {
        const { proxy, port } = await bench(t, upstream, {});
        assert.deepEqual(await headsOf(t, client, port), ['200']);
        assert.equal(proxy.httpStat('downstream_rq_1xx'), 0);
        assert.equal(proxy.clusterStat('web', 'upstream_rq_completed'), 1);
      });

      test('gives leave to send a body in place of the proxy', async (t) => {
        const { proxy, port } = await bench(t, upstream, PASSING);
        if (client === 'HTTP/2') {
          const stream = new Http2Client(t, port).open({
            ':method': 'POST',
            expect: '100-continue',
            'content-length': 4,
          });
          await once(stream, 'continue');
          const answer = answerOf(stream);
          stream.end('body');
          assert.equal((await answer).body, 'got body.');
        } else {
          const wire = new WireClient(port).write(EXPECTING);
          assert.match(await wire.until('\r\n\r\n'), /^HTTP\/1\.1 100 /);
          wire.write('body');
          assert.match(await wire.until('got body.'), /^HTTP\/1\.1 200 /);
          wire.close();
        }
        assert.equal(proxy.httpStat('downstream_rq_1xx'), 1);
      });
    });
  }
}

test('an HTTP/1.0 client gets no interim responses, and asks nobody for them', async (t) => {
  const { proxy, port } = await bench(t, 'HTTP/1', PASSING);
  const wire = new WireClient(port).write('GET / HTTP/1.0\r\nhost: x\r\nexpect: 100-continue\r\n\r\n');
  assert.match(await wire.rest(), /^HTTP\/1\.1 200 [\s\S]*got \.$/);
  assert.equal(proxy.httpStat('downstream_rq_1xx'), 0);
});

test('a request whose client has had an interim response is not tried again', async (t) => {
  let asked = 0;
  const upstream = await WireUpstream.start((socket) => {
    socket.once('data', () => {
      asked += 1;
      socket.end('HTTP/1.1 103 Early Hints\r\n\r\n');
    });
  });
  t.after(() => upstream.close());
  for (const [settings, attempts] of [
    [PASSING, 1],
    [{}, 2],
  ] as const) {
    const proxy = new DataPlaneFixture();
    t.after(() => proxy.close());
    proxy.cluster('web', [loopback(upstream.port)]);
    const retry = retrySettings({ conditions: ['reset'], maxRetries: 1 });
    const port = await proxy.http([routeFor('/', forwardTo('web', { retry }))], settings);
    asked = 0;
    const wire = new WireClient(port).write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    assert.match(await wire.rest(), /HTTP\/1\.1 503 /);
    assert.equal(asked, attempts);
  }
});
