// HTTP/1.1 through the data plane, by bytes on the wire: keep-alive, routing, headers, bodies of every framing.
// Everything runs in both ways of reading sockets; a client must not be able to tell them apart.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import type { HttpConnectionManagerSettings, RouteSnapshot } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, loopback, routeTo } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

type ReadMode = 'lean' | 'events';
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

interface Setup {
  readonly proxy: DataPlaneFixture;
  readonly port: number;
  readonly client: () => WireClient;
}

async function proxyTo(
  t: TestContext,
  readMode: ReadMode,
  upstreamPort: number,
  overrides: Partial<HttpConnectionManagerSettings> = {},
  routes: readonly RouteSnapshot[] = [routeTo('web')],
): Promise<Setup> {
  const proxy = new DataPlaneFixture({ readMode });
  proxy.cluster('web', [loopback(upstreamPort)]);
  const port = await proxy.http(routes, overrides);
  const clients: WireClient[] = [];
  t.after(async () => {
    for (const client of clients) client.close();
    await proxy.close();
  });
  return {
    proxy,
    port,
    client: () => {
      const client = new WireClient(port);
      clients.push(client);
      return client;
    },
  };
}

async function answering(t: TestContext, answer: string | Buffer): Promise<WireUpstream & { heads: string[] }> {
  const upstream = await WireUpstream.answering(answer);
  t.after(() => upstream.close());
  return upstream;
}

async function nodeUpstream(
  t: TestContext,
  handler: (req: IncomingMessage, res: ServerResponse) => void,
): Promise<number> {
  const server: Server = createServer(handler);
  // By itself it closes connections that were idle for a while, which a POST may meet: a 503, and rightly so.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as { port: number }).port;
}

/** Answers with what it was sent: the same framing back, and the checksum of the body. */
function echo(req: IncomingMessage, res: ServerResponse): void {
  const length = req.headers['content-length'];
  if (length !== undefined) res.setHeader('content-length', length);
  res.flushHeaders();
  req.pipe(res);
}

function sha(data: Buffer | string): string {
  return createHash('sha256').update(data).digest('hex');
}

for (const readMode of ['lean', 'events'] as const) {
  describe(`reading by ${readMode}`, () => {
    test('requests of one connection go over one upstream connection and are counted once each', async (t) => {
      const upstream = await answering(t, OK);
      const { proxy, client } = await proxyTo(t, readMode, upstream.port);
      const wire = client();
      for (let i = 0; i < 3; i++) {
        wire.write('GET /a HTTP/1.1\r\nhost: x\r\n\r\n');
        assert.equal((await wire.response()).body, 'ok');
      }
      assert.equal(upstream.sockets.length, 1);
      assert.equal(proxy.httpStat('downstream_rq_total'), 3);
      assert.equal(proxy.httpStat('downstream_rq_2xx'), 3);
      assert.equal(proxy.httpStat('downstream_rq_active'), 0);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_total'), 3);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_completed'), 3);
      assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), 1);
      assert.equal(proxy.hostStat('web', 0, 'rq_success'), 3);
      assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_200'), 3);
      assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_2xx'), 3);
      assert.equal(proxy.dynamicStat('cluster.web.', 'external.upstream_rq_200'), 3);
    });

    test('a pipelined burst, cut anywhere, is answered in order', async (t) => {
      const port = await nodeUpstream(t, (req, res) => res.end(req.url));
      const { client, proxy } = await proxyTo(t, readMode, port);
      const requests = Array.from({ length: 40 }, (_, i) =>
        i % 3 === 0
          ? `POST /${i} HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello`
          : i % 3 === 1
            ? `GET /${i} HTTP/1.1\r\nhost: x\r\n\r\n`
            : `PUT /${i} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
      ).join('');
      for (const size of [requests.length, 97, 1]) {
        const wire = client();
        wire.socket.setNoDelay(true);
        void (async () => {
          for (let at = 0; at < requests.length; at += size) {
            if (!wire.socket.write(requests.slice(at, at + size))) await once(wire.socket, 'drain');
            if (size < requests.length && at % 7 === 0) await new Promise(setImmediate);
          }
        })();
        for (let i = 0; i < 40; i++) assert.equal((await wire.response()).body, `/${i}`);
      }
      assert.equal(proxy.httpStat('downstream_rq_total'), 120);
    });

    test('bodies of every framing and size arrive whole, both ways', async (t) => {
      const port = await nodeUpstream(t, echo);
      const { client, proxy } = await proxyTo(t, readMode, port);
      const wire = client();
      for (const size of [0, 1, 2047, 2048, 16_384, 65_536, 300_000, 5_000_000]) {
        const body = randomBytes(size);
        wire.write(`POST /l HTTP/1.1\r\nhost: x\r\ncontent-length: ${size}\r\n\r\n`).write(body);
        const head = await wire.until('\r\n\r\n');
        assert.match(head, /^HTTP\/1\.1 200 /);
        assert.equal(sha(await wire.bytes(size)), sha(body), `content-length ${size}`);
        wire.write(`POST /c HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`);
        for (let at = 0; at < size; at += 70_000) {
          const part = body.subarray(at, at + 70_000);
          wire
            .write(`${part.length.toString(16)}\r\n`)
            .write(part)
            .write('\r\n');
        }
        wire.write('0\r\n\r\n');
        assert.match(await wire.until('\r\n\r\n'), /transfer-encoding: chunked/i);
        assert.equal(sha(await readChunked(wire)), sha(body), `chunked ${size}`);
      }
      assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), 1);
      assert.equal(proxy.httpStat('downstream_rq_2xx'), 16);
    });

    test('chunks and extensions are handed on byte for byte', async (t) => {
      const body = '5;a=b\r\nhello\r\n1;q="x;y"\r\n!\r\n0\r\n\r\n';
      const upstream = await answering(t, `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${body}`);
      const { client } = await proxyTo(t, readMode, upstream.port);
      const wire = client().write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
      await wire.until('\r\n\r\n');
      assert.equal(await wire.until('0\r\n\r\n'), body);
    });

    test('a slow reader gets 8 MB unharmed, in step with the upstream', async (t) => {
      const body = randomBytes(8_000_000);
      const port = await nodeUpstream(t, (req, res) => {
        if (req.url === '/length') res.setHeader('content-length', body.length);
        for (let at = 0; at < body.length; at += 500_000) res.write(body.subarray(at, at + 500_000));
        res.end();
      });
      const { client, proxy } = await proxyTo(t, readMode, port);
      for (const path of ['/length', '/chunked']) {
        const wire = client();
        wire.socket.pause();
        wire.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
        const slowly = setInterval(() => {
          wire.socket.resume();
          setImmediate(() => wire.socket.pause());
        }, 2);
        await wire.until('\r\n\r\n');
        const received = path === '/length' ? await wire.bytes(body.length) : await readChunked(wire);
        clearInterval(slowly);
        wire.socket.resume();
        assert.equal(sha(received), sha(body), path);
        assert.equal(await wire.rest(), '');
      }
      assert.equal(proxy.dataPlane.readSlabBytes, 0);
    });

    for (const size of [60_000, 200_000]) {
      test(`readers that stall on bodies of ${size} get their own bytes, from shared scratch and slabs`, async (t) => {
        let answered = 0;
        const port = await nodeUpstream(t, (req, res) => {
          answered++;
          res.setHeader('content-length', size);
          res.end(Buffer.alloc(size, `${req.url};`));
        });
        const { client, proxy } = await proxyTo(t, readMode, port);
        const count = Math.ceil(12_000_000 / size);
        const wires: { readonly wire: WireClient; readonly paths: readonly string[] }[] = [];
        // One after the other: each goes on with the memory that those before it have stalled on.
        for (let index = 0; index < 6; index++) {
          const wire = client();
          wire.socket.pause();
          const paths = Array.from({ length: count }, (_, i) => `/${index}/${i}`);
          wires.push({ wire, paths });
          answered = 0;
          wire.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''));
          await standstill(() => answered);
          assert.ok(answered < count, 'the kernel cannot hold all of it');
        }
        await Promise.all(
          wires.map(async ({ wire, paths }) => {
            wire.socket.resume();
            for (const path of paths) {
              await wire.until('\r\n\r\n');
              assert.ok((await wire.bytes(size)).equals(Buffer.alloc(size, `${path};`)), path);
            }
          }),
        );
        assert.equal(proxy.dataPlane.readSlabBytes, 0);
      });
    }

    test('a client that does not read its responses is not served the next ones', async (t) => {
      const body = 'x'.repeat(60_000);
      const { client, proxy } = await proxyTo(t, readMode, 1, {}, [directRoute('/', 200, body)]);
      const wire = client();
      wire.socket.pause();
      wire.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(1000));
      await standstill(() => proxy.httpStat('downstream_rq_total'));
      assert.ok(proxy.httpStat('downstream_rq_total') < 900);
      wire.socket.resume();
      for (let i = 0; i < 1000; i++) assert.equal((await wire.response()).body.length, body.length);
      assert.equal(proxy.httpStat('downstream_rq_2xx'), 1000);
    });

    test('a slow upstream holds the uploading client back and gets every byte', async (t) => {
      const body = randomBytes(6_000_000);
      const port = await nodeUpstream(t, (req, res) => {
        const hash = createHash('sha256');
        req.on('data', (chunk: Buffer) => {
          hash.update(chunk);
          req.pause();
          setTimeout(() => req.resume(), 1);
        });
        req.on('end', () => res.end(hash.digest('hex')));
      });
      const { client } = await proxyTo(t, readMode, port);
      const wire = client();
      wire.write(`PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`).write(body);
      assert.equal((await wire.response()).body, sha(body));
    });

    test('an uploading client is held back as long as its upstream does not read', async (t) => {
      const upstream = await WireUpstream.start((socket) => socket.pause());
      t.after(() => upstream.close());
      const { client, proxy } = await proxyTo(t, readMode, upstream.port);
      // More than all the kernel's buffers on the way hold.
      const body = Buffer.alloc(64_000_000);
      client().write(`PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`).write(body);
      const isHeldBack = (): boolean => proxy.httpStat('downstream_flow_control_paused_reading_total') > 0;
      await eventually(isHeldBack, 'the client is held back');
    });

    test('a body that ends with its upstream connection becomes chunked, and the client stays', async (t) => {
      const upstream = await WireUpstream.start((socket) => {
        socket.once('data', () => {
          socket.write('HTTP/1.1 200 OK\r\n\r\nfirst ');
          setImmediate(() => socket.end('second'));
        });
      });
      t.after(() => upstream.close());
      const { client } = await proxyTo(t, readMode, upstream.port);
      const wire = client();
      for (let i = 0; i < 2; i++) {
        wire.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
        assert.match(await wire.until('\r\n\r\n'), /transfer-encoding: chunked/);
        assert.equal((await readChunked(wire)).toString(), 'first second');
      }
    });

    test('an HTTP/1.0 client gets no chunks and keeps its connection only when it asks', async (t) => {
      const upstream = await answering(
        t,
        'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      );
      const fixed = await answering(t, OK);
      const { client, proxy } = await proxyTo(t, readMode, upstream.port, {}, [
        routeTo('fixed', { prefix: '/f' }),
        routeTo('web'),
      ]);
      proxy.cluster('fixed', [loopback(fixed.port)]);
      const dechunked = await client().write('GET / HTTP/1.0\r\nhost: x\r\nconnection: keep-alive\r\n\r\n').rest();
      assert.match(dechunked, /\r\n\r\nhello$/);
      assert.doesNotMatch(dechunked, /transfer-encoding/i);
      assert.match(dechunked, /connection: close/);
      const wire = client().write('GET /f HTTP/1.0\r\nhost: x\r\nconnection: keep-alive\r\n\r\n');
      assert.match((await wire.response()).head, /connection: keep-alive/);
      wire.write('GET /f HTTP/1.0\r\nhost: x\r\n\r\n');
      assert.match(await wire.rest(), /connection: close[\s\S]*ok$/);
    });

    test('responses to HEAD, 204 and 304 end with their head', async (t) => {
      const answers: Record<string, string> = {
        HEAD: 'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n',
        PUT: 'HTTP/1.1 204 No Content\r\n\r\n',
        GET: 'HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n',
      };
      const upstream = await WireUpstream.start((socket) => {
        socket.on('data', (chunk: Buffer) => socket.write(answers[chunk.toString().split(' ')[0]!]!));
      });
      t.after(() => upstream.close());
      const { client } = await proxyTo(t, readMode, upstream.port);
      const wire = client();
      for (const [method, answer] of Object.entries(answers)) {
        wire.write(`${method} / HTTP/1.1\r\nhost: x\r\n\r\n`);
        const head = await wire.until('\r\n\r\n');
        assert.equal(head.slice(0, 12), answer.slice(0, 12));
      }
      assert.equal(upstream.sockets.length, 1);
    });

    test('interim responses stay between proxy and upstream; Expect is answered here', async (t) => {
      const upstream = await WireUpstream.start((socket) => {
        socket.on('data', (chunk: Buffer) => {
          assert.doesNotMatch(chunk.toString(), /\r\nexpect:/i);
          if (chunk.toString().endsWith('hello')) {
            socket.write(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${OK}`);
          }
        });
      });
      t.after(() => upstream.close());
      const { client } = await proxyTo(t, readMode, upstream.port);
      const wire = client().write('POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n');
      assert.equal(await wire.until('\r\n\r\n'), 'HTTP/1.1 100 Continue\r\n\r\n');
      wire.write('hello');
      assert.equal((await wire.response()).body, 'ok');
      wire.write('POST / HTTP/1.1\r\nhost: x\r\nexpect: miracles\r\ncontent-length: 0\r\n\r\n');
      assert.equal((await wire.response()).status, 417);
    });
  });
}

/** Waits until the value has stopped to change, above zero, for many turns of the event loop. */
async function standstill(value: () => number): Promise<void> {
  for (let last = 0, turns = 0; turns < 300 || last === 0; turns++) {
    await new Promise(setImmediate);
    if (value() !== last) turns = 0;
    last = value();
  }
}

async function readChunked(wire: WireClient): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (;;) {
    const size = Number.parseInt(await wire.until('\r\n'), 16);
    parts.push(await wire.bytes(size));
    assert.equal(await wire.until('\r\n'), '\r\n');
    if (size === 0) return Buffer.concat(parts);
  }
}

describe('routing and headers', () => {
  test('the route decides the cluster, the path and the host; the query stays', async (t) => {
    const upstream = await answering(t, OK);
    const { client } = await proxyTo(t, 'lean', upstream.port, {}, [
      routeTo('web', { prefix: '/api/', prefixRewrite: '/v1/', hostRewrite: 'inner.example' }),
      routeTo('web', { prefix: '/plain' }),
    ]);
    const wire = client();
    wire.write('GET /api/users?a=/api/ HTTP/1.1\r\nhost: outer\r\n\r\n');
    assert.equal((await wire.response()).status, 200);
    wire.write('GET http://other.example:81/plain HTTP/1.1\r\nhost: ignored\r\n\r\n');
    assert.equal((await wire.response()).status, 200);
    assert.match(upstream.heads[0]!, /^GET \/v1\/users\?a=\/api\/ HTTP\/1\.1\r\n/);
    assert.match(upstream.heads[0]!, /\r\nhost: inner\.example\r\n/i);
    assert.match(upstream.heads[0]!, /\r\nx-proxy-original-path: \/api\/users\?a=\/api\/\r\n/);
    assert.match(upstream.heads[1]!, /^GET \/plain HTTP\/1\.1\r\n/);
    assert.match(upstream.heads[1]!, /\r\nhost: other\.example:81\r\n/i);
  });

  test('the upstream sees who asked, the client sees who answered', async (t) => {
    const upstream = await answering(
      t,
      'HTTP/1.1 200 OK\r\nserver: hidden\r\nconnection: x-hop\r\nx-hop: 1\r\ncontent-length: 0\r\n\r\n',
    );
    const settings = { useRemoteAddress: true, generateRequestId: true, via: '1.1 weir', serverName: 'front' };
    const { client } = await proxyTo(t, 'lean', upstream.port, settings);
    const wire = client().write(
      'GET / HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 1.2.3.4\r\nx-forwarded-proto: https\r\nvia: 1.0 a\r\nte: trailers\r\n' +
        'connection: keep-alive, x-secret\r\nx-secret: 1\r\nkeep-alive: 5\r\nx-request-id: forged\r\nx-envoy-max-retries: 9\r\nx-proxy-internal: true\r\n\r\n',
    );
    const { head } = await wire.response();
    const seen = upstream.heads[0]!;
    assert.match(seen, /\r\nx-forwarded-for: 1\.2\.3\.4,127\.0\.0\.1\r\n/);
    assert.match(seen, /\r\nx-forwarded-proto: http\r\n/);
    assert.match(seen, /\r\nvia: 1\.0 a, 1\.1 weir\r\n/);
    assert.match(seen, /\r\nx-request-id: [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\r\n/);
    assert.match(seen, /\r\nx-proxy-expected-rq-timeout-ms: 15000\r\n/);
    assert.match(seen, /\r\nx-proxy-external-address: 127\.0\.0\.1\r\n/);
    assert.doesNotMatch(seen, /x-secret|keep-alive|\r\nte:|forged|max-retries|x-proxy-internal/i);
    assert.match(head, /\r\nserver: front\r\n/);
    assert.match(head, /\r\nvia: 1\.1 weir\r\n/);
    assert.match(head, /\r\ndate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/);
    assert.match(head, /\r\nx-proxy-upstream-service-time: \d+\r\n/);
    assert.doesNotMatch(head, /hidden|x-hop/);
  });

  test('a request from a private network without earlier hops is internal and keeps its id', async (t) => {
    const upstream = await answering(t, OK);
    const { client, proxy } = await proxyTo(t, 'lean', upstream.port, {
      useRemoteAddress: true,
      generateRequestId: true,
    });
    const wire = client().write('GET / HTTP/1.1\r\nhost: x\r\nx-request-id: mine\r\n\r\n');
    await wire.response();
    assert.match(upstream.heads[0]!, /\r\nx-request-id: mine\r\n/);
    assert.match(upstream.heads[0]!, /\r\nx-proxy-internal: true\r\n/);
    assert.equal(proxy.dynamicStat('cluster.web.', 'internal.upstream_rq_200'), 1);
  });

  test('a response may say that it comes from a canary', async (t) => {
    for (const [field, canaries] of [
      ['x-envoy-upstream-canary: true', 1],
      ['x-proxy-upstream-canary: true', 1],
      ['x-proxy-upstream-canary: false', 0],
    ] as const) {
      const upstream = await answering(t, OK.replace('\r\n', `\r\n${field}\r\n`));
      const { client, proxy } = await proxyTo(t, 'lean', upstream.port);
      await client().write('GET / HTTP/1.1\r\nhost: x\r\n\r\n').response();
      assert.equal(proxy.dynamicStat('cluster.web.', 'canary.upstream_rq_200'), canaries);
      assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_200'), 1);
    }
  });

  test('replies of the proxy itself are complete responses, and the connection goes on', async (t) => {
    const { client, proxy } = await proxyTo(t, 'lean', 1, {}, [
      directRoute('/hello', 201, 'hi there'),
      directRoute('/empty', 204, ''),
      routeTo('unknown', { prefix: '/lost' }),
    ]);
    const wire = client();
    wire.write('GET /hello HTTP/1.1\r\nhost: x\r\n\r\nHEAD /hello HTTP/1.1\r\nhost: x\r\n\r\n');
    const hello = await wire.response();
    assert.deepEqual([hello.status, hello.body], [201, 'hi there']);
    assert.match(hello.head, /\r\ncontent-type: text\/plain\r\n/);
    assert.match(await wire.until('\r\n\r\n'), /content-length: 8/);
    wire.write('GET /empty HTTP/1.1\r\nhost: x\r\n\r\n');
    const empty = await wire.until('\r\n\r\n');
    assert.match(empty, /^HTTP\/1\.1 204 /);
    assert.doesNotMatch(empty, /content-length/);
    wire.write('POST /none HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody');
    assert.equal((await wire.response()).status, 404);
    wire.write('GET /lost HTTP/1.1\r\nhost: x\r\n\r\n');
    assert.equal((await wire.response()).status, 503);
    assert.equal(proxy.httpStat('no_route'), 1);
    assert.equal(proxy.httpStat('no_cluster'), 1);
    assert.equal(proxy.httpStat('rq_direct_response'), 3);
    assert.equal(proxy.httpStat('downstream_rq_total'), 5);
    assert.equal(proxy.httpStat('downstream_rq_completed'), 5);
  });

  test('requests are spread over hosts in turn, and by weight where weights differ', async (t) => {
    const upstreams = await Promise.all([answering(t, OK), answering(t, OK)]);
    const { client, proxy } = await proxyTo(t, 'lean', 1);
    const addresses = upstreams.map((upstream) => loopback(upstream.port));
    const wire = client();
    const send = async (count: number): Promise<number[]> => {
      const before = upstreams.map((upstream) => upstream.heads.length);
      for (let i = 0; i < count; i++) {
        wire.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
        await wire.response();
      }
      return upstreams.map((upstream, index) => upstream.heads.length - before[index]!);
    };
    proxy.cluster('web', addresses);
    assert.deepEqual(await send(10), [5, 5]);
    proxy.cluster('web', addresses, { weights: [4, 1] });
    assert.deepEqual(await send(10), [8, 2]);
    proxy.cluster('web', [addresses[1]!]);
    assert.deepEqual(await send(4), [0, 4]);
  });
});
