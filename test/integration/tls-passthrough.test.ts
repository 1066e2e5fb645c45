// SNI passthrough: TLS clients are led to servers by what they announce, and weir holds no key. Real clients and servers; what
// is announced badly, slowly or not at all comes by bytes on the wire.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect as connectRaw } from 'node:net';
import path from 'node:path';
import { describe, it, type TestContext, test } from 'node:test';
import { type ConnectionOptions, connect, createServer, type TLSSocket } from 'node:tls';
import fc from 'fast-check';
import type { FilterChainMatch, FilterChainSettings, ListenerSettings } from '../../src/snapshot/index.ts';
import { type JsonObject, socketAddress, tcpFilter } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { runProgram } from '../support/child-process.ts';
import { clientHello, helloMessage, inRecords, record } from '../support/client-hello.ts';
import { DataPlaneFixture, loopback, tcpProxy } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { filterChain, MATCHES_ALL, TLS_INSPECTOR } from '../support/listeners.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

type ReadMode = 'lean' | 'events';

const chainTo = (cluster: string, match: Partial<FilterChainMatch>): FilterChainSettings =>
  filterChain(tcpProxy(cluster), { match: { ...MATCHES_ALL, ...match } });

interface Passing {
  readonly proxy: DataPlaneFixture;
  readonly port: number;
  readonly client: () => WireClient;
}

/** By chains that lead to clusters, each of which is a server at the port. */
async function passing(
  t: TestContext,
  clusters: Readonly<Record<string, number>>,
  settings: Partial<ListenerSettings>,
  options: { readonly readMode?: ReadMode; readonly clock?: ManualClock } = {},
): Promise<Passing> {
  const proxy = new DataPlaneFixture(options);
  for (const [name, port] of Object.entries(clusters)) proxy.cluster(name, [loopback(port)]);
  const [port] = await proxy.listenWith({ listenerFilters: [TLS_INSPECTOR], ...settings });
  const clients: WireClient[] = [];
  t.after(async () => {
    for (const client of clients) client.close();
    const closed = proxy.close();
    options.clock?.turn(1000);
    await closed;
  });
  const client = (): WireClient => {
    const made = new WireClient(port!);
    made.socket.setNoDelay(true);
    clients.push(made);
    return made;
  };
  return { proxy, port: port!, client };
}

/** A TLS server that says its name, and gives back what it gets. */
async function tlsServer(t: TestContext, folder: CertificateFolder, name: string, protocols: readonly string[] = []) {
  const { certificate: cert, key } = await folder.make(name, { altNames: `DNS:${name}` });
  const server = createServer({ cert, key, ALPNProtocols: [...protocols] }, (socket) => {
    socket.on('error', () => {});
    socket.write(`${name}:`);
    socket.pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, certificate: cert };
}

/** A server without TLS that says its name, and gives back what it gets. */
async function namedUpstream(t: TestContext, name: string): Promise<WireUpstream> {
  const upstream = await WireUpstream.start((socket) => {
    socket.write(`${name}:`);
    socket.pipe(socket);
  });
  t.after(() => upstream.close());
  return upstream;
}

async function text(socket: TLSSocket, end: string): Promise<string> {
  let received = '';
  for await (const chunk of socket) {
    received += String(chunk);
    if (received.endsWith(end)) return received;
  }
  throw new Error(`the connection ended before ${end}: ${received}`);
}

async function clientOf(t: TestContext, port: number, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', ...options });
  t.after(() => socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}

for (const readMode of ['lean', 'events'] as const) {
  describe(`TLS passthrough, reading by ${readMode}`, () => {
    test('leads each client to the server that it names, which alone holds the keys', async (t) => {
      using folder = new CertificateFolder();
      const [one, two] = [await tlsServer(t, folder, 'one.test'), await tlsServer(t, folder, 'www.two.test')];
      const { proxy, port } = await passing(
        t,
        { one: one.port, two: two.port },
        {
          filterChains: [
            chainTo('one', { serverNames: ['one.test'], transportProtocol: 'tls' }),
            chainTo('two', { serverNames: ['*.two.test'] }),
          ],
        },
        { readMode },
      );
      const first = await clientOf(t, port, { servername: 'One.test', ca: one.certificate });
      first.write('hello');
      assert.equal(await text(first, 'hello'), 'one.test:hello');
      const second = await clientOf(t, port, {
        servername: 'www.two.test',
        ca: two.certificate,
        maxVersion: 'TLSv1.2',
      });
      second.write('hello');
      assert.equal(await text(second, 'hello'), 'www.two.test:hello');
      const other = connect({ port, host: '127.0.0.1', servername: 'three.test' });
      await assert.rejects(once(other, 'secureConnect'));
      assert.deepEqual(
        [
          proxy.tlsInspectorStat('tls_found'),
          proxy.tlsInspectorStat('sni_found'),
          proxy.tlsInspectorStat('alpn_found'),
        ],
        [3, 3, 0],
      );
      assert.equal(proxy.tlsInspectorStat('alpn_not_found'), 3);
      assert.equal(proxy.listenerStat('no_filter_chain_match'), 1);
    });

    test('passes every byte on as it came, however it is cut', async (t) => {
      const upstream = await namedUpstream(t, 'up');
      const { proxy, client } = await passing(
        t,
        { tls: upstream.port },
        { filterChains: [chainTo('tls', { serverNames: ['a.test'] })] },
        { readMode },
      );
      const message = helloMessage({ serverName: 'a.test', protocols: ['h2'] });
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.nat(message.length), { maxLength: 6 }),
          fc.array(fc.nat(message.length + 60), { maxLength: 6 }),
          async (ends, cuts) => {
            const bytes = Buffer.concat([inRecords(message, ends), Buffer.from('then more')]);
            const wire = client();
            let from = 0;
            for (const cut of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
              if (cut <= from) continue;
              wire.write(bytes.subarray(from, cut));
              from = cut;
              await new Promise(setImmediate);
            }
            assert.equal(await wire.until('then more'), `up:${bytes.toString('latin1')}`);
            wire.close();
          },
        ),
        { numRuns: 30 },
      );
      assert.equal(proxy.tlsInspectorStat('tls_not_found'), 0);
    });

    test('by protocols, and of clients that speak no TLS to a chain of their own', async (t) => {
      const [h2, raw, any] = [
        await namedUpstream(t, 'h2'),
        await namedUpstream(t, 'raw'),
        await namedUpstream(t, 'any'),
      ];
      const { proxy, client } = await passing(
        t,
        { h2: h2.port, raw: raw.port, any: any.port },
        {
          filterChains: [
            chainTo('h2', { applicationProtocols: ['h2'] }),
            chainTo('raw', { transportProtocol: 'raw_buffer' }),
            chainTo('any', {}),
          ],
        },
        { readMode },
      );
      const announced = async (hello: Buffer | string): Promise<string> => await client().write(hello).until(':');
      assert.equal(await announced(clientHello({ protocols: ['h2', 'http/1.1'] })), 'h2:');
      assert.equal(await announced(clientHello({ protocols: ['http/1.1'] })), 'any:');
      assert.equal(await announced(clientHello()), 'any:');
      assert.equal(await announced('GET / HTTP/1.1\r\n'), 'raw:');
      // What only begins as TLS does goes where other bytes go: who is behind it may know better.
      assert.equal(await announced(clientHello({ serverName: 'a\0b' })), 'raw:');
      const { tlsInspectorStat: stat } = proxy;
      assert.deepEqual(
        [stat('tls_found'), stat('tls_not_found'), stat('sni_not_found'), stat('sni_found')],
        [3, 2, 3, 0],
      );
      assert.deepEqual([stat('alpn_found'), stat('alpn_not_found')], [2, 1]);
    });

    test('HTTP without TLS is told apart by its version', async (t) => {
      const [one, h2c, any] = [
        await namedUpstream(t, 'one'),
        await namedUpstream(t, 'h2c'),
        await namedUpstream(t, 'any'),
      ];
      const { proxy, client } = await passing(
        t,
        { one: one.port, h2c: h2c.port, any: any.port },
        {
          listenerFilters: [TLS_INSPECTOR, { kind: 'http-inspector' }],
          filterChains: [
            chainTo('one', { applicationProtocols: ['http/1.1', 'http/1.0'] }),
            chainTo('h2c', { applicationProtocols: ['h2c'] }),
            chainTo('any', {}),
          ],
        },
        { readMode },
      );
      for (const [bytes, chain] of [
        ['GET / HTTP/1.1\r\n', 'one'],
        ['GET / HTTP/1.0\r\n', 'one'],
        ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'h2c'],
        ['EHLO a.test\r\n', 'any'],
        [clientHello().toString('latin1'), 'any'],
      ]) {
        const single = client();
        for (const byte of Buffer.from(bytes!, 'latin1')) {
          single.write(Buffer.from([byte]));
          await new Promise(setImmediate);
        }
        assert.equal(await single.until(bytes!), `${chain}:${bytes}`);
      }
      const { httpInspectorStat: stat } = proxy;
      assert.deepEqual(
        [stat('http10_found'), stat('http11_found'), stat('http2_found'), stat('http_not_found')],
        [1, 1, 1, 1],
      );
    });

    test('closes what is too large or, where that is asked for, broken, and nothing of it goes on', async (t) => {
      const upstream = await namedUpstream(t, 'up');
      const { proxy, client } = await passing(
        t,
        { raw: upstream.port },
        {
          listenerFilters: [{ ...TLS_INSPECTOR, maxClientHelloBytes: 300, refusesMalformed: true }],
          filterChains: [chainTo('raw', {})],
        },
        { readMode },
      );
      assert.equal(
        await client()
          .write(clientHello({ session: 32, ciphers: 300 }))
          .rest(),
        '',
      );
      assert.equal(
        await client()
          .write(clientHello({ serverName: 'a\0b' }))
          .rest(),
        '',
      );
      assert.equal(
        await client()
          .write(record(Buffer.alloc(0)))
          .rest(),
        '',
      );
      assert.equal(await client().write('GET / HTTP/1.1\r\n').until('1.1\r\n'), 'up:GET / HTTP/1.1\r\n');
      const { tlsInspectorStat: stat } = proxy;
      assert.deepEqual([stat('client_hello_too_large'), stat('tls_not_found'), stat('tls_found')], [1, 3, 0]);
      assert.equal(upstream.sockets.length, 1);
    });

    test('of half a hello, nothing goes on before the timeout, and nobody else waits', async (t) => {
      const clock = new ManualClock();
      const upstream = await namedUpstream(t, 'up');
      const settings = { filterChains: [chainTo('tls', {})], listenerFiltersTimeoutMs: 500 };
      const { proxy, client } = await passing(t, { tls: upstream.port }, settings, { readMode, clock });
      const hello = clientHello({ serverName: 'a.test' });
      const half = Array.from({ length: 40 }, () => client().write(hello.subarray(0, 60)));
      const left = client().write(hello.subarray(0, 7));
      await eventually(() => proxy.listenerStat('downstream_pre_cx_active') === 41, 'all wait');
      assert.equal(await client().write(hello).until('up:'), 'up:');
      left.socket.end();
      assert.equal(await left.rest(), '');
      assert.equal(proxy.listenerStat('downstream_listener_filter_remote_close'), 1);
      clock.turn(520);
      for (const each of half) assert.equal(await each.rest(), '');
      assert.equal(proxy.listenerStat('downstream_pre_cx_timeout'), 40);
      assert.equal(proxy.listenerStat('downstream_pre_cx_active'), 0);
      assert.equal(upstream.sockets.length, 1);
    });
  });
}

describe('the program', () => {
  const typed = (cluster: string, names: readonly string[]): JsonObject => ({
    filter_chain_match: { server_names: names },
    filters: [
      tcpFilter({
        cluster,
        access_log: [
          {
            name: 'log',
            typed_config: {
              '@type': 'type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog',
              log_format: {
                text_format_source: { inline_string: 'names %REQUESTED_SERVER_NAME% for %UPSTREAM_CLUSTER%\n' },
              },
            },
          },
        ],
      }),
    ],
  });
  const clusterAt = (name: string, port: number): JsonObject => ({
    name,
    connect_timeout: '5s',
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress('127.0.0.1', port) } }] }],
    },
  });

  it('takes openssl and curl to the servers that they name, and logs the names', async (t) => {
    using folder = new CertificateFolder();
    const tls = await tlsServer(t, folder, 'one.test', ['x']);
    const { certificate, key, certificatePath } = await folder.make('web.two.test', { altNames: 'DNS:web.two.test' });
    const web = createHttpsServer({ cert: certificate, key }, (_request, response) => void response.end('from two'));
    web.listen(0, '127.0.0.1');
    await once(web, 'listening');
    t.after(() => web.close());
    const listener = {
      name: 'main',
      address: socketAddress('127.0.0.1', 0),
      filter_chains: [typed('one', ['one.test']), typed('two', ['*.two.test'])],
    };
    await using weir = await startWeir({
      configYaml: JSON.stringify({
        admin: { address: socketAddress('127.0.0.1', 0) },
        static_resources: {
          listeners: [listener],
          clusters: [clusterAt('one', tls.port), clusterAt('two', (web.address() as AddressInfo).port)],
        },
      }),
    });
    // The inspector has been added by itself.
    assert.match(weir.output.stderr, /filter_chains\[0\]\.filter_chain_match.*tls_inspector is added/);
    const { port } = (await weir.listeners()).get('main')!;
    const at = `127.0.0.1:${port}`;
    const ca = path.join(folder.path, 'one.test.pem');
    const openssl = ['s_client', '-connect', at, '-servername', 'one.test', '-CAfile', ca, '-verify_return_error'];
    const seen = await runProgram('openssl', [...openssl, '-alpn', 'x', '-brief']);
    assert.match(`${seen.stdout}${seen.stderr}`, /Verification: OK/);
    const url = `https://web.two.test:${port}/`;
    const resolve = `web.two.test:${port}:127.0.0.1`;
    const curl = await runProgram('curl', [
      '-sS',
      '--noproxy',
      '*',
      '--cacert',
      certificatePath,
      '--resolve',
      resolve,
      url,
    ]);
    assert.deepEqual([curl.stdout, curl.stderr], ['from two', '']);
    const unknown = connectRaw({ port, host: '127.0.0.1' });
    t.after(() => unknown.destroy());
    unknown.write(clientHello({ serverName: 'three.test' }));
    await once(unknown, 'close');
    await weir.untilStat('tls_inspector.sni_found', 3);
    await weir.untilStat('tls_inspector.alpn_found', 2);
    await eventually(() => weir.output.stdout.includes('names web.two.test for two\n'), 'the log line of curl');
    await eventually(() => weir.output.stdout.includes('names one.test for one\n'), 'the log line of openssl');
  });
});
