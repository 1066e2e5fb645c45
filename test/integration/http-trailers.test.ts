// Trailers by bytes on the wire: which pass and which are dropped, what happens to the bytes around them, and that
// messages without any stay as they are.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { DataPlaneFixture, directRoute, loopback, routeTo } from '../support/data-plane.ts';
import { upstreamOf } from '../support/scripted-upstream.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const POST = 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n';
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
const GET = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';

interface Policy {
  /** Of the connection manager. */
  readonly downstream: boolean;
  /** Of the cluster. */
  readonly upstream: boolean;
}

const BOTH: Policy = { downstream: true, upstream: true };

interface Setup {
  readonly client: WireClient;
  readonly proxy: DataPlaneFixture;
}

async function proxyTo(
  t: TestContext,
  port: number,
  policy: Policy,
  limits: { maxRequestHeadersBytes?: number; maxHeadersCount?: number } = {},
): Promise<Setup> {
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback(port)], { enableTrailers: policy.upstream });
  const routes = [directRoute('/direct', 200, 'direct'), routeTo('web')];
  const client = new WireClient(await proxy.http(routes, { enableTrailers: policy.downstream, ...limits }));
  t.after(async () => {
    client.close();
    await proxy.close();
  });
  return { client, proxy };
}

/** Answers every chunked request when its last empty line has come, and keeps what it was sent. */
async function chunkedUpstream(t: TestContext): Promise<{ port: number; requests: string[] }> {
  const requests: string[] = [];
  const upstream = await WireUpstream.start((socket) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      for (;;) {
        const end = /\r\n0[^\r]*\r\n(?:[^\r]+\r\n)*\r\n/.exec(text);
        if (end === null) return;
        requests.push(text.slice(0, end.index + end[0].length));
        text = text.slice(end.index + end[0].length);
        socket.write(OK);
      }
    });
  });
  t.after(() => upstream.close());
  return { port: upstream.port, requests };
}

async function answeringUpstream(t: TestContext, answer: string): Promise<WireUpstream & { heads: string[] }> {
  const upstream = await WireUpstream.answering(answer);
  t.after(() => upstream.close());
  return upstream;
}

/** Where the body begins. */
function bodyOf(message: string): string {
  return message.slice(message.indexOf('\r\n\r\n') + 4);
}

const POLICIES = [
  { policy: BOTH, passes: true },
  { policy: { downstream: true, upstream: false }, passes: false },
  { policy: { downstream: false, upstream: true }, passes: false },
  { policy: { downstream: false, upstream: false }, passes: false },
];

for (const { policy, passes } of POLICIES) {
  describe(`trailers ${passes ? 'enabled' : 'dropped'} (listener ${policy.downstream}, cluster ${policy.upstream})`, () => {
    test('of requests', async (t) => {
      const upstream = await chunkedUpstream(t);
      const { client } = await proxyTo(t, upstream.port, policy);
      client.write(`${POST}\r\n2;a=b\r\nok\r\n0\r\nX-Sum:  1 \r\nx-b:\r\n\r\n${POST}\r\n0\r\n\r\n`);
      assert.equal((await client.response()).status, 200);
      assert.equal((await client.response()).status, 200);
      const trailers = passes ? 'X-Sum: 1\r\nx-b: \r\n' : '';
      assert.equal(bodyOf(upstream.requests[0]!), `2;a=b\r\nok\r\n0\r\n${trailers}\r\n`);
      assert.equal(bodyOf(upstream.requests[1]!), '0\r\n\r\n');
      assert.doesNotMatch(upstream.requests[0]!.slice(0, upstream.requests[0]!.indexOf('\r\n\r\n')), /x-sum/i);
    });

    test('of responses', async (t) => {
      const upstream = await answeringUpstream(t, `${CHUNKED}2;a=b\r\nok\r\n0;z\r\nX-Sum:  1 \r\nx-b:\r\n\r\n`);
      const { client, proxy } = await proxyTo(t, upstream.port, policy);
      const trailers = passes ? 'X-Sum: 1\r\nx-b: \r\n' : '';
      for (let round = 0; round < 2; round += 1) {
        const head = await client.write(GET).until('\r\n\r\n');
        assert.doesNotMatch(head, /x-sum/i);
        assert.equal(await client.until(`0;z\r\n${trailers}\r\n`), `2;a=b\r\nok\r\n0;z\r\n${trailers}\r\n`);
      }
      assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), 1);
    });
  });
}

describe('trailers', () => {
  test('that come alone, behind a body that has been sent on, still end the message', async (t) => {
    for (const policy of [BOTH, { downstream: false, upstream: false }]) {
      const upstream = await upstreamOf(t);
      const { client } = await proxyTo(t, upstream.port, policy);
      client.write(`${POST}\r\n2\r\nok\r\n0\r\n`);
      await upstream.received('\r\n\r\n2\r\nok\r\n0\r\n');
      client.write('x-a');
      client.write(': 1\r\n');
      client.write('\r');
      client.write('\n');
      await upstream.received(policy.upstream ? '\r\n0\r\nx-a: 1\r\n\r\n' : '\r\n0\r\n\r\n');
      upstream.send(OK);
      assert.equal((await client.response()).status, 200);
    }
  });

  test('whose names Connection gives are of this hop only', async (t) => {
    const upstream = await chunkedUpstream(t);
    const { client } = await proxyTo(t, upstream.port, BOTH);
    client.write(`${POST}connection: x-hop, X-Other\r\n\r\n0\r\nX-Hop: 1\r\nx-end: 2\r\nx-other: 3\r\n\r\n`);
    client.write(`${POST}connection: x-hop\r\n\r\n0\r\nX-Hop: 1\r\n\r\n`);
    await client.response();
    await client.response();
    assert.deepEqual(upstream.requests.map(bodyOf), ['0\r\nx-end: 2\r\n\r\n', '0\r\n\r\n']);
  });

  test('do not reach an HTTP/1.0 client, nor is one told of them', async (t) => {
    const answer =
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n';
    const upstream = await answeringUpstream(t, answer);
    const { client } = await proxyTo(t, upstream.port, BOTH);
    const text = await client.write('GET / HTTP/1.0\r\nhost: a\r\n\r\n').rest();
    assert.doesNotMatch(text, /transfer-encoding|trailer|x-sum/i);
    assert.ok(text.endsWith('\r\n\r\nok'), text);
  });

  test('of a request that the proxy answers itself leave the connection as it is', async (t) => {
    for (const downstream of [true, false]) {
      const { client } = await proxyTo(t, 1, { downstream, upstream: true });
      const request = POST.replace('/', '/direct');
      const { head, body } = await client
        .write(`${request}\r\n0\r\nX-Sum: 1\r\n\r\n${GET.replace('/', '/direct')}`)
        .response();
      assert.equal(body, 'direct');
      assert.doesNotMatch(head, /connection: close/);
      assert.equal((await client.response()).body, 'direct');
    }
  });

  for (const [name, policy] of Object.entries({ passing: BOTH, dropped: { downstream: false, upstream: false } })) {
    test(`${name}, that may not be trailers are refused`, async (t) => {
      const upstream = await WireUpstream.start(() => {});
      t.after(() => upstream.close());
      const { client, proxy } = await proxyTo(t, upstream.port, policy);
      client.write(`${POST}\r\n0\r\nContent-Length: 5\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n`);
      assert.equal((await client.response()).status, 400);
      assert.equal(await client.rest(), '');
      assert.equal(proxy.httpStat('downstream_rq_total'), 1);
    });

    test(`${name}, are bounded as heads are`, async (t) => {
      const upstream = await WireUpstream.start(() => {});
      t.after(() => upstream.close());
      for (const trailers of [`x: ${'a'.repeat(2000)}\r\n`, 'x: 1\r\n'.repeat(6)]) {
        const limits = { maxRequestHeadersBytes: 1024, maxHeadersCount: 5 };
        const { client } = await proxyTo(t, upstream.port, policy, limits);
        assert.equal((await client.write(`${POST}\r\n0\r\n${trailers}\r\n`).response()).status, 431);
      }
    });

    test(`${name}, of a response that may not be trailers end it`, async (t) => {
      const upstream = await answeringUpstream(t, `${CHUNKED}0\r\nSet-Cookie: a\r\n\r\n`);
      const { client, proxy } = await proxyTo(t, upstream.port, policy);
      assert.equal((await client.write(GET).response()).status, 502);
      assert.equal(proxy.clusterStat('web', 'upstream_cx_protocol_error'), 1);
    });
  }

  test('are asked for at the upstream when the client does and they can come', async (t) => {
    for (const { policy, passes } of POLICIES) {
      const upstream = await answeringUpstream(t, OK);
      const { client } = await proxyTo(t, upstream.port, policy);
      for (const te of ['trailers', 'gzip;q=0.5, Trailers', 'gzip']) {
        await client.write(`GET / HTTP/1.1\r\nhost: a\r\nte: ${te}\r\nconnection: te\r\n\r\n`).response();
      }
      const lines = upstream.heads.map((head) => head.match(/^(te|connection): .*$/gim) ?? []);
      const asked = passes ? ['te: trailers', 'connection: te'] : [];
      assert.deepEqual(lines, [asked, asked, []]);
    }
  });
});
