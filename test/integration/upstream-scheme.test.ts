// Which scheme upstreams are told where a connection manager wants it to be that of their own connections, and which logs tell.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createPlainServer, type RequestListener } from 'node:http';
import {
  createSecureServer,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { bootstrapOf, clusterAt, createProxy, textOf } from '../support/embedded.ts';
import { filteredListener, routeTo } from '../support/embedded-filters.ts';
import { HTTP2 } from '../support/guarded-proxy.ts';

const TLS = {
  transport_socket: {
    name: 'tls',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext' },
  },
};

describe('the scheme of upstreams', () => {
  let folder: CertificateFolder;
  const servers: Http2Server[] = [];

  /** Answers with what it has been told. */
  async function listen(server: Http2Server): Promise<number> {
    servers.push(server);
    server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      stream.respond({ ':status': 200 });
      stream.end(`${headers[':scheme']} ${headers['x-forwarded-proto']}`);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  }

  before(async () => {
    folder = new CertificateFolder();
  });

  after(() => {
    for (const server of servers) server.close();
    folder[Symbol.dispose]();
  });

  async function told(manager: JsonObject): Promise<string[]> {
    const { key, certificate: cert } = await folder.make('own');
    const plain = await listen(createServer());
    const secured = await listen(createSecureServer({ key, cert }));
    const routes = [routeTo('/secured', {}, { route: { cluster: 'secured' } }), routeTo('/')];
    const listener = filteredListener([], routes, { manager });
    const clusters = [clusterAt('web', plain, HTTP2), clusterAt('secured', secured, { ...HTTP2, ...TLS })];
    const proxy = await createProxy(bootstrapOf([listener], clusters));
    const url = `http://127.0.0.1:${proxy.listeners.get('main')!.port}`;
    const texts = [await textOf(`${url}/`), await textOf(`${url}/secured`)];
    await proxy.close();
    return texts;
  }

  it('is that of the client where nothing is said', async () => {
    assert.deepEqual(await told({}), ['http http', 'http http']);
  });

  it('is that of their connections where it is to be', async () => {
    assert.deepEqual(await told({ scheme_header_transformation: { match_upstream: true } }), [
      'http http',
      'https http',
    ]);
  });

  it('stands in full URLs of HTTP/1, and in what logs say of the request', async (t) => {
    const { key, certificate: cert } = await folder.make('first');
    const answer: RequestListener = (request, response) => response.end(request.url);
    const servers = [createPlainServer(answer), createHttpsServer({ key, cert }, answer)];
    const ports = await Promise.all(
      servers.map(async (server) => {
        t.after(() => server.close());
        await once(server.listen(0, '127.0.0.1'), 'listening');
        return (server.address() as AddressInfo).port;
      }),
    );
    const routes = [routeTo('/secured', {}, { route: { cluster: 'secured' } }), routeTo('/')];
    const manager = { scheme_header_transformation: { match_upstream: true } };
    const told = { header: { key: 'x-scheme', value: '%REQ(:SCHEME)% %REQ(X-FORWARDED-PROTO)%' } };
    const listener = filteredListener(
      [],
      routes.map((route) => ({ ...route, response_headers_to_add: [told] })),
      { manager },
    );
    const FULL = { http_protocol_options: { send_fully_qualified_url: true } };
    const clusters = [clusterAt('web', ports[0]!, FULL), clusterAt('secured', ports[1]!, { ...FULL, ...TLS })];
    const proxy = await createProxy(bootstrapOf([listener], clusters));
    t.after(() => proxy.close());
    const host = `127.0.0.1:${proxy.listeners.get('main')!.port}`;
    for (const [path, scheme] of [
      ['/', 'http'],
      ['/secured', 'https'],
    ]) {
      const response = await fetch(`http://${host}${path}`);
      assert.equal(await response.text(), `${scheme}://${host}${path}`);
      assert.equal(response.headers.get('x-scheme'), `${scheme} http`);
    }
  });

  it('is what is ordered, before that', async () => {
    const transformation = { scheme_to_overwrite: 'https', match_upstream: true };
    assert.deepEqual(await told({ scheme_header_transformation: transformation }), ['https https', 'https https']);
  });
});
