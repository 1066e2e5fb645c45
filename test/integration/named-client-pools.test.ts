// Connections that belong to one client each and are made for one name each: whose requests go over which, what servers are
// asked for, and what PROXY headers say before that.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import { MAX_NAMES } from '../../src/data-plane/upstream/pool/named-pools.ts';
import type { JsonObject } from '../support/bootstrap.ts';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { Http2Client } from '../support/http2-clients.ts';
import { httpOptions, proxyBy, SecureUpstream, securely } from '../support/secure-upstream.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const NAMED = { auto_sni: true };
/** Servers hear the name with each handshake: those that resume a session do not tell it. */
const FRESH = { max_session_keys: 0 };
const PER_CLIENT = { connection_pool_per_downstream_connection: true };

let folder: CertificateFolder;
let pair: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  pair = await folder.make('server', { altNames: 'DNS:a.example,DNS:b.example' });
});

after(() => folder[Symbol.dispose]());

function named(options: JsonObject = {}, names: JsonObject = NAMED): JsonObject {
  return httpOptions({
    explicit_http_config: { http_protocol_options: {} },
    upstream_http_protocol_options: names,
    ...options,
  });
}

async function bench(t: TestContext, fields: JsonObject, port?: number) {
  const upstream = await SecureUpstream.start(t, pair, ['h2', 'http/1.1'], (request) =>
    request.answer(String(upstream.connections.length)),
  );
  const { proxy, port: at } = await proxyBy(t, port ?? upstream.port, fields);
  const client = (): ((host: string) => Promise<string>) => {
    const wire = new WireClient(at);
    t.after(() => wire.close());
    return async (host) => {
      wire.write(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
      return (await wire.response()).head.split(' ')[1]!;
    };
  };
  return { upstream, proxy, port: at, client };
}

/** Takes a PROXY header from each connection before it goes on to the upstream. */
async function headed(t: TestContext, to: () => number): Promise<{ readonly port: number; readonly lines: string[] }> {
  const lines: string[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    let held = Buffer.alloc(0);
    socket.on('data', function read(bytes: Buffer) {
      held = Buffer.concat([held, bytes]);
      const end = held.indexOf('\r\n');
      if (end === -1) return;
      socket.off('data', read);
      lines.push(held.toString('latin1', 0, end));
      const onward = connect(to(), '127.0.0.1');
      sockets.push(onward);
      onward.on('error', () => {});
      onward.write(held.subarray(end + 2));
      socket.pipe(onward).pipe(socket);
    });
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, lines };
}

describe('connections of each client, made for a name', () => {
  test('carry the requests of that client for that name alone, and end with it', async (t) => {
    const { upstream, proxy, port, client } = await bench(t, { ...securely({}, FRESH), ...named(), ...PER_CLIENT });
    const one = new WireClient(port);
    t.after(() => one.close());
    const other = client();
    const ask = async (host: string): Promise<void> => {
      one.write(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
      await one.response();
    };
    for (const host of ['a.example', 'b.example', 'a.example', 'b.example']) await ask(host);
    for (const host of ['a.example', 'a.example']) assert.equal(await other(host), '200');
    const names = ['a.example', 'b.example', 'a.example', 'b.example', 'a.example', 'a.example'];
    assert.deepEqual(
      upstream.requests.map(({ serverName }) => serverName),
      names,
    );
    assert.equal(upstream.connections.length, 3);
    one.socket.end();
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 1, 'the end of its connections');
    assert.equal(await other('a.example'), '200');
    assert.equal(upstream.connections.length, 3);
  });

  test('begin with the PROXY header of their client', async (t) => {
    let securedPort = 0;
    const front = await headed(t, () => securedPort);
    const { transport_socket } = securely({}, FRESH);
    const typed_config = {
      '@type':
        'type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport',
      config: { version: 'V1' },
      transport_socket: transport_socket!,
    };
    const fields = { transport_socket: { name: 'upstream_proxy_protocol', typed_config }, ...named() };
    const { upstream, port } = await bench(t, fields, front.port);
    securedPort = upstream.port;
    const clients = [0, 1].map(() => new WireClient(port));
    t.after(() => {
      for (const wire of clients) wire.close();
    });
    for (const host of ['a.example', 'b.example', 'a.example']) {
      for (const wire of clients) {
        wire.write(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
        assert.match((await wire.response()).head, /^HTTP\/1\.1 200/);
      }
    }
    const ports = clients.map(({ socket }) => socket.localPort!);
    const lines = [...ports, ...ports].map((own) => `PROXY TCP4 127.0.0.1 127.0.0.1 ${own} ${port}`);
    assert.deepEqual(front.lines, lines);
    assert.deepEqual(
      upstream.requests.map(({ serverName }) => serverName),
      ['a.example', 'a.example', 'b.example', 'b.example', 'a.example', 'a.example'],
    );
  });

  test('are of 256 names at most, of which the longest unused one makes room for another', async (t) => {
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
      socket.on('end', () => socket.end());
    });
    t.after(() => upstream.close());
    // Names are of no use to connections in cleartext, which costs a test less.
    const { proxy, port } = await proxyBy(t, upstream.port, { ...named(), ...PER_CLIENT });
    const clients = [0, 1].map(() => new WireClient(port));
    t.after(() => {
      for (const wire of clients) wire.close();
    });
    const [one, other] = clients.map((wire) => async (host: string) => {
      wire.write(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
      assert.match((await wire.response()).head, /^HTTP\/1\.1 200/);
    });
    await other!('a.example');
    for (let index = 0; index < MAX_NAMES + 4; index += 1) await one!(`${index}.example`);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), MAX_NAMES + 5);
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === MAX_NAMES + 1, 'the bound of names');
    // The newest are there, and so is the other client's.
    await one!('5.example');
    await other!('a.example');
    assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), MAX_NAMES + 5);
    await one!('3.example');
    assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), MAX_NAMES + 6);
  });
});

describe('connections made for a name', () => {
  for (const fields of [{}, PER_CLIENT]) {
    const whose = fields === PER_CLIENT ? 'each client' : 'all clients';
    test(`speak the protocol of clients where the cluster wants it, of ${whose}`, async (t) => {
      const typed = httpOptions({
        use_downstream_protocol_config: { http2_protocol_options: {} },
        upstream_http_protocol_options: NAMED,
      });
      const { upstream, port, client } = await bench(t, { ...securely({}, FRESH), ...typed, ...fields });
      const http2 = new Http2Client(t, port);
      for (const host of ['a.example', 'b.example']) {
        assert.equal(await client()(host), '200');
        const { status } = await http2.fetch({ ':path': '/', ':authority': host });
        assert.equal(status, 200);
      }
      assert.deepEqual(
        upstream.requests.map(({ serverName, protocol, alpn }) => `${serverName} ${protocol} ${alpn}`),
        ['a.example', 'b.example'].flatMap((name) => [`${name} HTTP/1.1 http/1.1`, `${name} HTTP/2 h2`]),
      );
    });
  }

  test('are refused to a server whose certificate is for another, of each client as well', async (t) => {
    const common = { validation_context: { trusted_ca: { filename: pair.certificatePath } } };
    const names = { auto_sni: true, auto_san_validation: true };
    const { client } = await bench(t, { ...securely(common, FRESH), ...named({}, names), ...PER_CLIENT });
    const ask = client();
    assert.deepEqual([await ask('a.example'), await ask('c.example'), await ask('b.example')], ['200', '503', '200']);
  });
});
