// Hosts that choose their protocol in the TLS handshake: what is offered to them, what is spoken then, and how a pool comes to
// terms with not knowing before.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { after, before, describe, type TestContext, test } from 'node:test';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import type { ClusterOverrides } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { readAll } from '../support/http2-upstream.ts';
import { httpOptions, proxyBy, type SecureRequest, SecureUpstream, securely } from '../support/secure-upstream.ts';
import { WireClient } from '../support/wire.ts';

const AUTO = { ...httpOptions({ auto_config: {} }), ...securely() };
const BOTH = ['h2', 'http/1.1'];
const UNLIMITED = { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 3 };

let folder: CertificateFolder;
let pair: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  pair = await folder.make('server', { altNames: 'DNS:a.example' });
});

after(() => folder[Symbol.dispose]());

async function get(port: number, path = '/', host = 'a.example'): Promise<{ status: number; body: string }> {
  const request = http.request({ port, host: '127.0.0.1', agent: false, path, headers: { host } }).end();
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return { status: response.statusCode!, body: (await readAll(response)).toString() };
}

/** Requests whose answers wait. */
class Waiting {
  #requests: SecureRequest[] = [];
  readonly onRequest = (request: SecureRequest): void => {
    this.#requests.push(request);
  };

  async until(count: number): Promise<void> {
    await eventually(() => this.#requests.length >= count, `${count} requests`);
  }

  answer(): void {
    for (const request of this.#requests.splice(0)) request.answer();
  }
}

async function waiting(t: TestContext, protocols: readonly string[], overrides: ClusterOverrides = {}) {
  const held = new Waiting();
  const upstream = await SecureUpstream.start(t, pair, protocols, held.onRequest);
  return { held, upstream, ...(await proxyBy(t, upstream.port, AUTO, overrides)) };
}

async function statuses(requests: readonly Promise<{ readonly status: number }>[]): Promise<number[]> {
  return (await Promise.all(requests)).map(({ status }) => status);
}

describe('a host that chooses its protocol', () => {
  for (const { protocols, alpn, protocol, stat } of [
    { protocols: BOTH, alpn: 'h2', protocol: 'HTTP/2', stat: 'upstream_cx_http2_total' },
    { protocols: ['http/1.1'], alpn: 'http/1.1', protocol: 'HTTP/1.1', stat: 'upstream_cx_http1_total' },
    { protocols: [], alpn: '', protocol: 'HTTP/1.1', stat: 'upstream_cx_http1_total' },
  ] as const) {
    test(`is spoken to in ${protocol} when it says ${alpn || 'nothing'}`, async (t) => {
      const upstream = await SecureUpstream.start(t, pair, protocols);
      const { proxy, port } = await proxyBy(t, upstream.port, AUTO);
      for (let n = 0; n < 3; n++) assert.equal((await get(port)).status, 200);
      assert.deepEqual(
        upstream.requests.map((request) => [request.alpn, request.protocol]),
        Array.from({ length: 3 }, () => [alpn, protocol]),
      );
      assert.equal(upstream.connections.length, 1);
      assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), 1);
      assert.equal(proxy.clusterStat('web', stat), 1);
      assert.equal(
        proxy.clusterStat('web', 'upstream_cx_http1_total') + proxy.clusterStat('web', 'upstream_cx_http2_total'),
        1,
      );
    });
  }

  test('gets one connection for all who wait, if that carries them', async (t) => {
    const { held, upstream, proxy, port } = await waiting(t, BOTH);
    const all = Array.from({ length: 20 }, () => get(port));
    await held.until(20);
    assert.equal(upstream.connections.length, 1);
    held.answer();
    assert.deepEqual(new Set(await statuses(all)), new Set([200]));
    assert.equal(proxy.clusterStat('web', 'upstream_rq_pending_active'), 0);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
  });

  test('gets as many connections as there are requests, if each carries one', async (t) => {
    const { held, upstream, proxy, port } = await waiting(t, ['http/1.1']);
    const all = Array.from({ length: 20 }, () => get(port));
    await held.until(20);
    assert.equal(upstream.connections.length, 20);
    held.answer();
    assert.deepEqual(new Set(await statuses(all)), new Set([200]));
    assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), 20);
  });

  test('is expected to choose again what it chose last', async (t) => {
    const { upstream, held, proxy, port } = await waiting(t, ['http/1.1'], { idleTimeoutMs: 10 });
    const first = get(port);
    await held.until(1);
    held.answer();
    await first;
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 0, 'the end of the connection');
    // Nobody learns from the end of a handshake that there is one connection for each.
    upstream.holdHandshakes();
    const clients = Array.from({ length: 3 }, () => new WireClient(port).write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'));
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 3, 'a connection for each');
    for (const client of clients) client.close();
  });

  test('may change its mind with each connection', async (t) => {
    const upstream = await SecureUpstream.start(t, pair, BOTH);
    const { port } = await proxyBy(t, upstream.port, AUTO, { maxRequestsPerConnection: 1 });
    for (const chosen of ['h2', 'http/1.1', 'h2', 'h2', 'http/1.1']) {
      upstream.protocols.splice(0, 2, chosen);
      assert.equal((await get(port)).status, 200);
      assert.equal(upstream.requests.at(-1)!.alpn, chosen);
    }
    assert.equal(upstream.connections.length, 5);
  });

  test('gets no more connections than it may have', async (t) => {
    const limits = { ...UNLIMITED, maxConnections: 2 };
    const { held, upstream, port } = await waiting(t, ['http/1.1'], {
      circuitBreakers: { default: limits, high: limits },
    });
    const all = Array.from({ length: 6 }, () => get(port));
    for (let n = 0; n < 3; n++) {
      await held.until(2);
      held.answer();
    }
    assert.deepEqual(new Set(await statuses(all)), new Set([200]));
    assert.equal(upstream.connections.length, 2);
  });

  test('loses idle connections after their time, of either protocol', async (t) => {
    for (const protocols of [BOTH, ['http/1.1']]) {
      const upstream = await SecureUpstream.start(t, pair, protocols);
      const { proxy, port } = await proxyBy(t, upstream.port, AUTO, { idleTimeoutMs: 10 });
      await get(port);
      await eventually(() => proxy.clusterStat('web', 'upstream_cx_idle_timeout') === 1, 'the end of the connection');
      assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
      assert.equal(proxy.clusterStat('web', 'upstream_cx_destroy_local'), 1);
    }
  });

  test('that is not believed gets nothing, and what waited is answered', async (t) => {
    const upstream = await SecureUpstream.start(t, pair, BOTH);
    const other = await folder.make('other', { isAuthority: true });
    const validation_context = { trusted_ca: { inline_string: other.certificate } };
    const { proxy, port } = await proxyBy(t, upstream.port, { ...AUTO, ...securely({ validation_context }) });
    for (const { status, body } of await Promise.all([get(port), get(port)])) {
      assert.equal(status, 503);
      assert.match(body, /certificate verify failed/);
    }
    assert.equal(upstream.requests.length, 0);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_connect_fail'), proxy.clusterStat('web', 'upstream_cx_total'));
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
  });

  test('that says nothing at all runs into the limit of time', async (t) => {
    const upstream = await SecureUpstream.start(t, pair, BOTH);
    const { proxy, port } = await proxyBy(t, upstream.port, AUTO, { connectTimeoutMs: 30 });
    upstream.holdHandshakes();
    const { status, body } = await get(port);
    assert.deepEqual([status, /connection timeout/.test(body)], [503, true]);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_connect_timeout'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
  });

  test('may be given up in the middle of a handshake', async (t) => {
    const upstream = await SecureUpstream.start(t, pair, BOTH);
    const { proxy, port } = await proxyBy(t, upstream.port, AUTO);
    upstream.holdHandshakes();
    const client = new WireClient(port).write('GET / HTTP/1.1\r\nhost: a.example\r\n\r\n');
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_total') === 1, 'a connection');
    client.close();
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_cancelled') === 1, 'the end of the request');
    await proxy.close();
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_pending_active'), 0);
  });

  test('is asked for the name that a request brings, over a connection for that name', async (t) => {
    const upstream = await SecureUpstream.start(t, pair, BOTH);
    const options = httpOptions({ auto_config: {}, upstream_http_protocol_options: { auto_sni: true } });
    const { port } = await proxyBy(t, upstream.port, { ...AUTO, ...options });
    for (const host of ['a.example', 'b.example', 'a.example']) assert.equal((await get(port, '/', host)).status, 200);
    assert.deepEqual(
      upstream.requests.map(({ serverName, alpn }) => `${serverName} ${alpn}`),
      ['a.example h2', 'b.example h2', 'a.example h2'],
    );
    assert.equal(upstream.connections.length, 2);
  });

  test('is offered what the transport socket says instead', async (t) => {
    const upstream = await SecureUpstream.start(t, pair, BOTH);
    const { port } = await proxyBy(t, upstream.port, { ...AUTO, ...securely({ alpn_protocols: ['http/1.1'] }) });
    assert.equal((await get(port)).status, 200);
    assert.equal(upstream.requests[0]!.alpn, 'http/1.1');
  });
});

describe('a cluster that has chosen its protocol itself', () => {
  const http2 = httpOptions({ explicit_http_config: { http2_protocol_options: {} } });

  test('asks for HTTP/2 by ALPN', async (t) => {
    const upstream = await SecureUpstream.start(t, pair, BOTH);
    const { port } = await proxyBy(t, upstream.port, { ...http2, ...securely() });
    assert.equal((await get(port)).status, 200);
    assert.deepEqual([upstream.requests[0]!.alpn, upstream.requests[0]!.protocol], ['h2', 'HTTP/2']);
  });

  test('speaks HTTP/2 to a server that says nothing of it', async (t) => {
    const upstream = await SecureUpstream.start(t, pair, [], undefined, { spoken: 'HTTP/2' });
    const { port } = await proxyBy(t, upstream.port, { ...http2, ...securely() });
    assert.equal((await get(port)).status, 200);
    assert.deepEqual([upstream.requests[0]!.alpn, upstream.requests[0]!.protocol], ['', 'HTTP/2']);
  });

  for (const { name, options, server, chosen } of [
    { name: 'HTTP/2', options: http2, server: ['http/1.1'], chosen: 'http/1.1' },
    { name: 'HTTP/1', options: {}, server: ['h2'], chosen: 'h2' },
  ]) {
    test(`of ${name} says nothing to a server that has chosen ${chosen}`, async (t) => {
      const upstream = await SecureUpstream.start(t, pair, server);
      const fields = { ...options, ...securely({ alpn_protocols: BOTH }) };
      const { proxy, port } = await proxyBy(t, upstream.port, fields);
      const { status, body } = await get(port);
      assert.equal(status, 503);
      assert.match(body, new RegExp(`the server has chosen ${chosen}, which is not what its cluster speaks`));
      assert.equal(upstream.requests.length, 0);
      assert.equal(proxy.clusterStat('web', 'upstream_cx_connect_fail'), 1);
    });
  }
});
