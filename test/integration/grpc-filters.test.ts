// The filters of gRPC by bytes on the wire: browsers, clients of HTTP/1.1 and what is counted of calls.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { HttpFilterSettings } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, loopback, routeTo } from '../support/data-plane.ts';
import { upstreamOf } from '../support/scripted-upstream.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const WEB: HttpFilterSettings = { name: 'filters.http.grpc_web', settings: null };
const STATS = (settings: object = {}): HttpFilterSettings => ({
  name: 'filters.http.grpc_stats',
  settings: { countsAllMethods: true, methods: [], countsTimes: false, ...settings },
});
const BRIDGE = (settings: object = {}): HttpFilterSettings => ({
  name: 'filters.http.grpc_http1_bridge',
  settings: { upgradesProtobuf: false, dropsQuery: false, ...settings },
});

interface Proxied {
  readonly proxy: DataPlaneFixture;
  readonly client: WireClient;
  readonly upstream: WireUpstream & { heads: string[] };
}

async function proxied(t: TestContext, filters: readonly HttpFilterSettings[], answer: string): Promise<Proxied> {
  const upstream = await WireUpstream.answering(Buffer.from(answer, 'latin1'));
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback(upstream.port)], { enableTrailers: true });
  const routes = [directRoute('/direct', 403, 'no'), routeTo('web')];
  const client = new WireClient(await proxy.http(routes, { httpFilters: filters, enableTrailers: true }));
  t.after(async () => {
    client.close();
    await proxy.close();
    await upstream.close();
  });
  return { proxy, client, upstream };
}

function post(type: string, body = '', ...lines: readonly string[]): string {
  const fields = [`content-type: ${type}`, `content-length: ${Buffer.byteLength(body, 'latin1')}`, ...lines];
  return `POST /a.S/M?q=1 HTTP/1.1\r\nhost: x\r\n${fields.join('\r\n')}\r\n\r\n${body}`;
}

function chunks(...parts: readonly string[]): string {
  return parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('');
}

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ntransfer-encoding: chunked\r\n\r\n';
const HELLO = '\x00\x00\x00\x00\x05hello';
const GOOD = `${HEAD}${chunks(HELLO)}0\r\ngrpc-status: 0\r\nx-t: 1\r\n\r\n`;
const BAD = `${HEAD}${chunks(HELLO)}0\r\ngrpc-status: 5\r\ngrpc-message: not %2Fhere\r\n\r\n`;
const REFUSED =
  'HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ncontent-length: 0\r\ngrpc-status: 14\r\ngrpc-message: later\r\n\r\n';
const HTML = 'HTTP/1.1 503 X\r\ncontent-type: text/html\r\ncontent-length: 7\r\n\r\nno 100%';

/** A response, whether its body comes with a length or in chunks, up to its end. */
async function answerOf(client: WireClient): Promise<{ head: string; status: number; body: string }> {
  const head = await client.until('\r\n\r\n');
  const length = /^content-length: (\d+)\r$/im.exec(head)?.[1];
  let body = '';
  if (length !== undefined) body = (await client.bytes(Number(length))).toString('latin1');
  else {
    for (;;) {
      const size = Number.parseInt(await client.until('\r\n'), 16);
      if (size === 0) break;
      body += (await client.bytes(size)).toString('latin1');
      await client.until('\r\n');
    }
    while ((await client.until('\r\n')) !== '\r\n') {
      // Lines of trailers.
    }
  }
  return { head, body, status: Number(head.slice(9, 12)) };
}

function field(head: string, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)\r$`, 'im').exec(head)?.[1];
}

describe('the filter for browsers', () => {
  const TRAILERS = 'grpc-status:0\r\nx-t:1\r\n';
  const FRAME = `\x80\x00\x00\x00${String.fromCharCode(TRAILERS.length)}${TRAILERS}`;

  test('makes gRPC of a request, and the trailers a message of the body', async (t) => {
    const { client, upstream, proxy } = await proxied(t, [WEB], GOOD);
    const { head, body, status } = await answerOf(client.write(post('application/grpc-web+proto', HELLO)));
    assert.deepEqual([status, field(head, 'content-type'), body], [200, 'application/grpc-web+proto', HELLO + FRAME]);
    const sent = upstream.heads[0]!;
    assert.deepEqual(
      ['content-type', 'te', 'grpc-accept-encoding'].map((name) => field(sent, name)),
      ['application/grpc', 'trailers', 'identity'],
    );
    assert.equal(proxy.dynamicStat('cluster.web.', 'grpc-web.a.S.M.success'), 1);
    assert.equal(proxy.dynamicStat('cluster.web.', 'grpc-web.a.S.M.0'), 1);
    assert.equal(proxy.hostStat('web', 0, 'rq_success'), 1);
  });

  test('reads and writes base64 where it is asked to', async (t) => {
    let received = '';
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', (chunk: Buffer) => {
        received += chunk.toString('latin1');
        if (received.includes('hello')) socket.write(GOOD, 'latin1');
      });
    });
    const proxy = new DataPlaneFixture();
    proxy.cluster('web', [loopback(upstream.port)], { enableTrailers: true });
    const client = new WireClient(await proxy.http([routeTo('web')], { httpFilters: [WEB] }));
    t.after(async () => {
      client.close();
      await proxy.close();
      await upstream.close();
    });
    const text = Buffer.from(HELLO, 'latin1').toString('base64');
    const accept = 'accept: application/grpc-web-text';
    const { head, body } = await answerOf(client.write(post('application/grpc-web-text', text, accept)));
    assert.ok(received.includes(HELLO));
    assert.equal(field(head, 'content-type'), 'application/grpc-web-text+proto');
    const decoded = body.match(/[^=]+=*/g)!.map((part) => Buffer.from(part, 'base64').toString('latin1'));
    assert.equal(decoded.join(''), HELLO + FRAME);
  });

  for (const text of ['abc', 'a*cd']) {
    test(`refuses what is no base64: ${text}`, async (t) => {
      const { client } = await proxied(t, [WEB], GOOD);
      const { head, status } = await answerOf(client.write(post('application/grpc-web-text', text)));
      assert.deepEqual([status, field(head, 'grpc-status')], [400, '13']);
      assert.equal(field(head, 'grpc-message'), 'Bad gRPC-web request, invalid base64 data.');
    });
  }

  test('tells of answers that are none of gRPC in the words of gRPC', async (t) => {
    const { client } = await proxied(t, [WEB], HTML);
    const { head, status, body } = await answerOf(client.write(post('application/grpc-web')));
    assert.deepEqual([status, body, field(head, 'content-length')], [503, '', '0']);
    assert.deepEqual([field(head, 'grpc-status'), field(head, 'grpc-message')], ['14', 'no 100%25']);
    assert.equal(field(head, 'content-type'), 'application/grpc-web+proto');
  });

  test('passes on a status that stands in the head, and replies of the proxy with their status', async (t) => {
    const { client } = await proxied(t, [WEB], REFUSED);
    const refused = await answerOf(client.write(post('application/grpc-web')));
    assert.deepEqual([refused.status, field(refused.head, 'grpc-status'), refused.body], [200, '14', '']);
    const direct = await answerOf(client.write(post('application/grpc-web').replace('/a.S/M', '/direct')));
    assert.deepEqual([direct.status, field(direct.head, 'grpc-status'), direct.body], [403, '7', '']);
    assert.equal(field(direct.head, 'content-type'), 'application/grpc-web+proto');
  });

  test('leaves others as they are, framing included', async (t) => {
    const { client, upstream } = await proxied(t, [WEB], GOOD);
    await client.write(post('application/grpc')).until('x-t: 1\r\n\r\n');
    assert.equal(field(upstream.heads[0]!, 'grpc-accept-encoding'), undefined);
  });
});

describe('the bridge from HTTP/1.1', () => {
  test('puts what the trailers say into the head, and gives the body its length', async (t) => {
    const { client } = await proxied(t, [BRIDGE()], GOOD);
    const { head, status, body } = await answerOf(client.write(post('application/grpc', HELLO)));
    assert.deepEqual(
      [status, body, field(head, 'grpc-status'), field(head, 'content-length')],
      [200, HELLO, '0', '10'],
    );
  });

  for (const [name, answer, status, message] of [
    ['behind the body', BAD, '5', 'not %2Fhere'],
    ['in the head', REFUSED, '14', 'later'],
  ] as const) {
    test(`makes a 503 of a call that has failed: ${name}`, async (t) => {
      const { client, proxy } = await proxied(t, [BRIDGE()], answer);
      const { head, ...rest } = await answerOf(client.write(post('application/grpc', HELLO)));
      assert.equal(rest.status, 503);
      assert.match(head, /^HTTP\/1\.1 503 Service Unavailable\r\n/);
      assert.deepEqual([field(head, 'grpc-status'), field(head, 'grpc-message')], [status, message]);
      assert.equal(proxy.httpStat('downstream_rq_5xx'), 1);
    });
  }

  test('makes messages of bare protobuf, and bare ones of messages', async (t) => {
    let received = '';
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', (chunk: Buffer) => {
        received += chunk.toString('latin1');
        if (received.endsWith('world')) socket.write(GOOD, 'latin1');
      });
    });
    const proxy = new DataPlaneFixture();
    proxy.cluster('web', [loopback(upstream.port)], { enableTrailers: true });
    const httpFilters = [BRIDGE({ upgradesProtobuf: true, dropsQuery: true })];
    const client = new WireClient(await proxy.http([routeTo('web', { prefix: '/a.S' })], { httpFilters }));
    t.after(async () => {
      client.close();
      await proxy.close();
      await upstream.close();
    });
    client.write(post('application/x-protobuf', 'small world').slice(0, -5));
    await new Promise(setImmediate);
    const { head, body, status } = await answerOf(client.write('world'));
    assert.deepEqual([status, body, field(head, 'content-type')], [200, 'hello', 'application/x-protobuf']);
    assert.match(received, /^POST \/a\.S\/M HTTP/);
    assert.equal(field(received, 'content-type'), 'application/grpc');
    assert.equal(field(received, 'content-length'), '16');
    assert.ok(received.endsWith('\r\n\r\n\x00\x00\x00\x00\x0bsmall world'));
  });

  test('sends a message of nothing where there is no body', async (t) => {
    const upstream = await upstreamOf(t);
    const proxy = new DataPlaneFixture();
    proxy.cluster('web', [loopback(upstream.port)], { enableTrailers: true });
    const client = new WireClient(
      await proxy.http([routeTo('web')], { httpFilters: [BRIDGE({ upgradesProtobuf: true })] }),
    );
    t.after(async () => {
      client.close();
      await proxy.close();
    });
    client.write(post('application/x-protobuf'));
    const received = await upstream.received('\x00\x00\x00\x00\x00');
    assert.equal(field(received, 'content-length'), '5');
  });

  test('gives replies of the proxy their status of HTTP', async (t) => {
    const { client } = await proxied(t, [BRIDGE()], GOOD);
    const { head, status, body } = await answerOf(client.write(post('application/grpc').replace('/a.S/M', '/direct')));
    assert.deepEqual([status, body, field(head, 'grpc-status'), field(head, 'grpc-message')], [403, '', '7', 'no']);
  });

  test('leaves other requests and answers alone', async (t) => {
    const { client } = await proxied(t, [BRIDGE({ upgradesProtobuf: true })], HTML);
    const plain = await answerOf(client.write(post('application/json', '{}')));
    const bridged = await answerOf(client.write(post('application/x-protobuf', 'abc')));
    for (const { status, body } of [plain, bridged]) assert.deepEqual([status, body], [503, 'no 100%']);
  });
});

describe('stats of gRPC', () => {
  const names = ['success', 'failure', 'total', '0', '5', '14', 'request_message_count', 'response_message_count'];
  const counts = (proxy: DataPlaneFixture, prefix: string): number[] =>
    names.map((name) => proxy.dynamicStat('cluster.web.', `${prefix}${name}`));

  for (const { name, answer, expected } of [
    { name: 'a good call', answer: GOOD, expected: [1, 0, 1, 1, 0, 0, 2, 1] },
    { name: 'one that has failed', answer: BAD, expected: [0, 1, 1, 0, 1, 0, 2, 1] },
    { name: 'one that was refused', answer: REFUSED, expected: [0, 1, 1, 0, 0, 1, 2, 0] },
  ]) {
    test(`know of ${name} and of its messages`, async (t) => {
      const { client, proxy } = await proxied(t, [STATS()], answer);
      await answerOf(client.write(post('application/grpc', HELLO + HELLO)));
      assert.deepEqual(counts(proxy, 'grpc.a.S.M.'), expected);
    });
  }

  test('count methods together that have no counts of their own', async (t) => {
    const settings = { countsAllMethods: false, methods: ['a.S.N'] };
    const { client, proxy } = await proxied(t, [STATS(settings)], GOOD);
    await answerOf(client.write(post('application/grpc')));
    await answerOf(client.write(post('application/grpc').replace('/M', '/N')));
    assert.equal(proxy.dynamicStat('cluster.web.', 'grpc.total'), 1);
    assert.equal(proxy.dynamicStat('cluster.web.', 'grpc.a.S.N.total'), 1);
  });

  test('know of requests that have become gRPC before, and of no others', async (t) => {
    const { client, proxy } = await proxied(t, [WEB, STATS()], GOOD);
    await answerOf(client.write(post('application/grpc-web', HELLO)));
    await client.write(post('application/json', HELLO)).until('x-t: 1\r\n\r\n');
    assert.deepEqual(counts(proxy, 'grpc.a.S.M.'), [1, 0, 1, 1, 0, 0, 1, 1]);
  });

  test('count a reply in place of an upstream for the cluster that was to answer', async (t) => {
    const { client, proxy, upstream } = await proxied(t, [STATS()], '');
    await upstream.close();
    proxy.cluster('web', []);
    await answerOf(client.write(post('application/grpc')));
    assert.deepEqual(counts(proxy, 'grpc.a.S.M.').slice(0, 6), [0, 1, 1, 0, 0, 1]);
  });
});
