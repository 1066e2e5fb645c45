// PROXY headers towards upstreams: bytes on the wire, through HTTP, TCP, health checks and two proxies in a row.

import assert from 'node:assert/strict';
import { describe, it, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { MAX_TLV_BYTES, type ProxyHeaderSettings, proxyHeader } from '../../src/base/proxy-header.ts';
import { TcpProbe } from '../../src/control-plane/cluster-manager/health-check/tcp-probe.ts';
import { parseProxyV1 } from '../../src/data-plane/listener/listener-filter/proxy-header-v1.ts';
import { parseProxyV2 } from '../../src/data-plane/listener/listener-filter/proxy-header-v2.ts';
import { clusterErrors, clusterNamed, clusterSettings, type JsonObject, socketAddress } from '../support/bootstrap.ts';
import { DataPlaneFixture, httpManager, loopback, routeTo, tcpProxy } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { NO_FAULTS } from '../support/faults.ts';
import { filterChain, PROXY_PROTOCOL } from '../support/listeners.ts';
import { connectRoute } from '../support/routes.ts';
import { upgrade } from '../support/tunnel-bench.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const V1: ProxyHeaderSettings = { version: 1, tlvs: '' };
const V2: ProxyHeaderSettings = { version: 2, tlvs: '' };
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

const TYPES = 'type.googleapis.com/envoy.extensions.transport_sockets';
const RAW = {
  name: 'envoy.transport_sockets.raw_buffer',
  typed_config: { '@type': `${TYPES}.raw_buffer.v3.RawBuffer` },
};
const withHeader = (config: JsonObject | undefined, transport_socket: JsonObject = RAW): JsonObject => ({
  transport_socket: {
    name: 'envoy.transport_sockets.upstream_proxy_protocol',
    typed_config: {
      '@type': `${TYPES}.proxy_protocol.v3.ProxyProtocolUpstreamTransport`,
      ...(config === undefined ? {} : { config }),
      transport_socket,
    },
  },
});
/** Answers each request in what comes; what came is kept by connection. */
async function recorder(t: TestContext) {
  const received: string[] = [];
  const upstream = await WireUpstream.start((socket, index) => {
    received[index] = '';
    socket.on('data', (bytes: Buffer) => {
      received[index] += bytes.toString('latin1');
      if (bytes.includes('GET ')) socket.write(OK);
      else if (bytes.includes('ping')) socket.write('pong');
    });
    socket.on('end', () => socket.end());
  });
  t.after(() => upstream.close());
  return { port: upstream.port, received };
}

describe('a PROXY header', () => {
  const ends = (remoteAddress: string, localAddress: string) => ({
    remoteAddress,
    remotePort: 56_324,
    localAddress,
    localPort: 443,
  });

  it('of version 1 is a line of text, one family for both ends', () => {
    const written = (...of: [string, string]): string => proxyHeader(V1, ends(...of)).toString();
    assert.equal(written('192.0.2.1', '198.51.100.2'), 'PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n');
    assert.equal(written('2001:db8::1', '::1'), 'PROXY TCP6 2001:db8::1 ::1 56324 443\r\n');
    assert.equal(written('192.0.2.1', '::1'), 'PROXY TCP6 ::ffff:192.0.2.1 ::1 56324 443\r\n');
    assert.equal(written('', ''), 'PROXY UNKNOWN\r\n');
    assert.equal(proxyHeader(V1, null).toString(), 'PROXY UNKNOWN\r\n');
  });

  it('of version 2 is binary, and brings what is added', () => {
    const signature = '0d0a0d0a000d0a515549540a';
    const written = (settings: ProxyHeaderSettings, ...of: [string, string]): string =>
      proxyHeader(settings, ends(...of)).toString('hex');
    assert.equal(written(V2, '192.0.2.1', '198.51.100.2'), `${signature}2111000cc0000201c6336402dc0401bb`);
    const tlvs = 'e0000161';
    assert.equal(
      written({ ...V2, tlvs }, '192.0.2.1', '198.51.100.2'),
      `${signature}21110010c0000201c6336402dc0401bb${tlvs}`,
    );
    assert.equal(
      written(V2, '2001:db8::1', '192.0.2.1'),
      `${signature}2121002420010db800000000000000000000000100000000000000000000ffffc0000201dc0401bb`,
    );
    assert.equal(proxyHeader({ ...V2, tlvs }, null).toString('hex'), `${signature}20000000`);
  });

  it('is read as it was written', () => {
    const ip = fc.oneof(fc.ipV4(), fc.ipV6());
    fc.assert(
      fc.property(ip, ip, fc.nat(65_535), fc.nat(65_535), (remoteAddress, localAddress, remotePort, localPort) => {
        const proxied = { remoteAddress, remotePort, localAddress, localPort };
        const [one, two] = [proxyHeader(V1, proxied), proxyHeader({ ...V2, tlvs: 'e00000' }, proxied)];
        const read = [parseProxyV1(one, 0, one.length), parseProxyV2(two, 0, two.length)];
        const { length, tlvsAt, ...said } = read[1] as { length: number; tlvsAt: number };
        assert.deepEqual(read[0], { ...said, length: one.length });
        assert.deepEqual([length, tlvsAt], [two.length, two.length - 3]);
        const { addresses } = read[0] as { addresses: typeof proxied };
        assert.deepEqual([addresses.remotePort, addresses.localPort], [remotePort, localPort]);
      }),
    );
  });
});

describe('a cluster with PROXY headers', () => {
  const AT = 'static_resources.clusters[0]';

  it('has connections of its own for each client', () => {
    const read = (config?: JsonObject) => {
      const { proxyHeader, poolsPerClient } = clusterSettings(clusterNamed('web', withHeader(config)));
      return { proxyHeader, poolsPerClient };
    };
    assert.deepEqual(read(), { proxyHeader: V1, poolsPerClient: true });
    assert.deepEqual(read({ version: 'V2' }), { proxyHeader: V2, poolsPerClient: true });
    const added_tlvs = [{ type: 224, value: 'YWI=' }, { type: 1 }];
    assert.deepEqual(read({ version: 'V2', added_tlvs }), {
      proxyHeader: { version: 2, tlvs: 'e000026162010000' },
      poolsPerClient: true,
    });
    assert.equal(clusterSettings(clusterNamed('web')).proxyHeader, undefined);
  });

  it('cannot have more than fits, nor other transports behind the header', () => {
    const value = Buffer.alloc(MAX_TLV_BYTES - 2).toString('base64');
    const typed = `${AT}.transport_socket.typed_config`;
    assert.deepEqual(
      clusterErrors(clusterNamed('web', withHeader({ version: 'V2', added_tlvs: [{ type: 1, value }] }))),
      [`${typed}.config.added_tlvs: take ${MAX_TLV_BYTES + 1} bytes; there is room for ${MAX_TLV_BYTES}`],
    );
    const nested = withHeader({}, withHeader({}).transport_socket as JsonObject);
    assert.equal(clusterErrors(clusterNamed('web', nested)).length, 1);
    const transport_socket_matches = [{ name: 'all', transport_socket: RAW }];
    assert.deepEqual(clusterErrors(clusterNamed('web', { ...withHeader({}), transport_socket_matches })), [
      `${AT}.transport_socket_matches: cannot stand beside a transport_socket with a PROXY header`,
    ]);
    const inMatch = { transport_socket_matches: [{ name: 'all', ...withHeader({}) }] };
    assert.deepEqual(clusterErrors(clusterNamed('web', inMatch)), [
      `${AT}.transport_socket_matches[0].transport_socket.typed_config: ` +
        '"envoy.transport_sockets.upstream_proxy_protocol" is not supported by this build: a raw buffer or TLS may stand here',
    ]);
  });
});

test('each HTTP client is told of on its own connections, once on each', async (t) => {
  const { port: at, received } = await recorder(t);
  const proxy = new DataPlaneFixture();
  t.after(() => proxy.close());
  proxy.cluster('web', [loopback(at)], { proxyHeader: V1, poolsPerClient: true });
  const port = await proxy.http([routeTo('web')]);
  const clients = [new WireClient(port), new WireClient(port)];
  for (const client of [...clients, ...clients]) assert.equal((await client.write(GET).response()).body, 'ok');
  assert.equal(received.length, 2);
  for (const [index, { socket }] of clients.entries()) {
    const header = `PROXY TCP4 127.0.0.1 127.0.0.1 ${socket.localPort} ${port}\r\n`;
    assert.ok(received[index]!.startsWith(`${header}GET / HTTP/1.1\r\n`), received[index]!);
    assert.equal(received[index]!.split('PROXY').length, 2);
  }
  for (const client of clients) client.close();
});

test('two proxies in a row tell the last of them who the client is, over TCP and then HTTP', async (t) => {
  const upstream = await WireUpstream.answering(OK);
  t.after(() => upstream.close());
  const proxy = new DataPlaneFixture();
  t.after(() => proxy.close());
  proxy.cluster('web', [loopback(upstream.port)]);
  const [inner] = await proxy.listenWith({
    listenerFilters: [PROXY_PROTOCOL],
    filterChains: [filterChain(httpManager([routeTo('web')], { useRemoteAddress: true }))],
  });
  for (const header of [V1, V2]) {
    proxy.cluster(`inner${header.version}`, [loopback(inner!)], { proxyHeader: header });
    const [outer] = await proxy.listenWith({
      listenerFilters: [PROXY_PROTOCOL],
      filterChains: [filterChain(tcpProxy(`inner${header.version}`))],
    });
    const client = new WireClient(outer!).write(`PROXY TCP4 192.0.2.7 198.51.100.2 4711 443\r\n${GET}`);
    assert.equal((await client.response()).body, 'ok');
    client.close();
  }
  for (const head of upstream.heads) assert.match(head, /x-forwarded-for: 192\.0\.2\.7\r\n/);
  assert.equal(upstream.heads.length, 2);
});

test('a CONNECT that ends here begins with the header of its client', async (t) => {
  const { port: at, received } = await recorder(t);
  const proxy = new DataPlaneFixture();
  t.after(() => proxy.close());
  proxy.cluster('web', [loopback(at)], { proxyHeader: V1, poolsPerClient: true });
  const port = await proxy.http([connectRoute({ terminatesConnect: true })], { upgrades: [upgrade('connect')] });
  const client = new WireClient(port).write('CONNECT target.test:443 HTTP/1.1\r\nhost: x\r\n\r\nping');
  assert.match(await client.until('pong'), /^HTTP\/1\.1 200 /);
  assert.equal(received[0], `PROXY TCP4 127.0.0.1 127.0.0.1 ${client.socket.localPort} ${port}\r\nping`);
  client.close();
});

test('a health check says that it is the own connection of the proxy', async (t) => {
  const { port, received } = await recorder(t);
  for (const [index, header] of [V1, V2].entries()) {
    const preamble = proxyHeader(header, null);
    const settings = { kind: 'tcp', send: Buffer.from('ping'), receive: [Buffer.from('pong')] } as const;
    const probe = new TcpProbe(
      settings,
      true,
      { sourceAddress: undefined, systemCalls: undefined, preamble },
      NO_FAULTS,
    );
    t.after(() => probe.abort());
    for (const round of [1, 2]) {
      const result = await new Promise((resolve) => probe.check({ address: loopback(port), authority: 'x' }, resolve));
      assert.equal((result as { kind: string }).kind, 'passed');
      const expected = preamble.toString('latin1') + 'ping'.repeat(round);
      await eventually(() => received[index] === expected, 'the header, once on a connection');
    }
  }
});

test('checks of the program have the header of their cluster', async (t) => {
  const { port, received } = await recorder(t);
  const health_checks = [
    {
      timeout: '5s',
      interval: '60s',
      unhealthy_threshold: 1,
      healthy_threshold: 1,
      http_health_check: { path: '/health' },
    },
  ];
  const endpoint = { address: socketAddress('127.0.0.1', port) };
  const load_assignment = { cluster_name: 'web', endpoints: [{ lb_endpoints: [{ endpoint }] }] };
  const cluster = clusterNamed('web', { ...withHeader({}), health_checks, load_assignment });
  await using weir = await startWeir({
    configYaml: JSON.stringify({
      admin: { address: socketAddress('127.0.0.1', 0) },
      static_resources: { clusters: [cluster] },
    }),
  });
  await weir.untilStat('cluster.web.health_check.success', 1);
  assert.match(received[0]!, /^PROXY UNKNOWN\r\nGET \/health HTTP\/1\.1\r\n/);
});
