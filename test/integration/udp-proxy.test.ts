// The UDP proxy by datagrams on loopback: sessions, their ends, what they are counted as and logged with, and their limits.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseFormat } from '../../src/config/resources/format/format-string.ts';
import type { ListenerSettings, UdpProxySettings } from '../../src/snapshot/index.ts';
import { HealthFlag } from '../../src/wasm/shared-memory.ts';
import { NO_LIMITS } from '../support/clusters.ts';
import { type ClusterOverrides, DataPlaneFixture, loopback } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { UdpClient, UdpServer } from '../support/udp-client.ts';
import { unusedPort } from '../support/wire.ts';

interface Options {
  readonly settings?: Partial<UdpProxySettings>;
  readonly cluster?: ClusterOverrides;
  readonly clock?: ManualClock;
  readonly listener?: Partial<ListenerSettings>;
  readonly name?: string;
}

async function proxyTo(t: TestContext, ports: readonly number[], options: Options = {}) {
  const { clock, settings, listener } = options;
  const proxy = new DataPlaneFixture(clock === undefined ? {} : { clock });
  const cluster = proxy.cluster('raw', ports.map(loopback), options.cluster);
  const [port] = await proxy.listenWith({
    addresses: [loopback(0)],
    filterChains: [],
    udp: {
      statPrefix: 'test',
      cluster: options.name ?? 'raw',
      idleTimeoutMs: 60_000,
      hashPolicy: null,
      picksPerDatagram: false,
      maxClientDatagramBytes: 1500,
      maxHostDatagramBytes: 1500,
      accessLogs: [],
      ...settings,
    },
    ...listener,
  });
  const close = async (): Promise<void> => {
    const closed = proxy.close();
    clock?.turn(1000);
    await closed;
  };
  t.after(close);
  return { proxy, port: port!, close, cluster };
}

const echo = (text: string): string => `echo ${text}`;

test('each client has a session of its own, and gets what is answered to it', async (t) => {
  const server = await UdpServer.start(t, echo);
  const { proxy, port } = await proxyTo(t, [server.port]);
  const clients = await Promise.all(['a', 'b', 'c'].map(async (name) => ({ name, own: await UdpClient.to(t, port) })));
  for (const round of ['1', '2']) {
    for (const { name, own } of clients) assert.equal(await own.ask(name + round), `echo ${name}${round}`);
  }
  assert.equal(server.peers.size, 3);
  assert.equal(proxy.udpStat('downstream_sess_total'), 3);
  assert.equal(proxy.udpStat('downstream_sess_active'), 3);
  assert.equal(proxy.udpStat('downstream_sess_rx_datagrams'), 6);
  assert.equal(proxy.udpStat('downstream_sess_rx_bytes'), 12);
  assert.equal(proxy.udpStat('downstream_sess_tx_datagrams'), 6);
  assert.equal(proxy.udpStat('downstream_sess_tx_bytes'), 42);
  assert.equal(proxy.udpClusterStat('sess_tx_datagrams'), 6);
  assert.equal(proxy.udpClusterStat('sess_rx_datagrams'), 6);
  assert.equal(proxy.clusterStat('raw', 'upstream_cx_active'), 3);
  assert.equal(proxy.clusterStat('raw', 'upstream_cx_tx_bytes_total'), 12);
  assert.equal(proxy.dataPlane.connectionCount, 3);
});

test('what comes before the socket of a session is there arrives in order', async (t) => {
  const seen: string[] = [];
  const server = await UdpServer.start(t, (text) => {
    seen.push(text);
    return null;
  });
  const { port } = await proxyTo(t, [server.port]);
  const client = await UdpClient.to(t, port);
  for (const text of ['1', '2', '3', '4']) client.send(text);
  await eventually(() => seen.length === 4, 'all datagrams');
  assert.deepEqual(seen, ['1', '2', '3', '4']);
});

test('a host may say more than it was asked', async (t) => {
  const server = await UdpServer.start(t, (text, { port, address }) => {
    for (const part of ['one', 'two']) server.socket.send(part, port, address);
    return text;
  });
  const { port } = await proxyTo(t, [server.port]);
  const client = await UdpClient.to(t, port);
  client.send('three');
  assert.deepEqual(
    new Set([await client.next(), await client.next(), await client.next()]),
    new Set(['one', 'two', 'three']),
  );
});

test('a session ends when nothing has passed for the idle time, and what comes then begins another', async (t) => {
  const clock = new ManualClock();
  const server = await UdpServer.start(t, echo);
  const { proxy, port } = await proxyTo(t, [server.port], { clock, settings: { idleTimeoutMs: 10_000 } });
  const client = await UdpClient.to(t, port);
  await client.ask('a');
  clock.turn(8000);
  await client.ask('b');
  clock.turn(8000);
  assert.equal(proxy.udpStat('downstream_sess_active'), 1);
  clock.turn(3000);
  assert.equal(proxy.udpStat('downstream_sess_active'), 0);
  assert.equal(proxy.udpStat('idle_timeout'), 1);
  assert.equal(proxy.clusterStat('raw', 'upstream_cx_active'), 0);
  assert.equal(proxy.breakerCount('raw', 0), 0);
  assert.equal(await client.ask('c'), 'echo c');
  assert.equal(proxy.udpStat('downstream_sess_total'), 2);
});

test('datagrams that nobody can be found for leave nothing behind', async (t) => {
  const none = await proxyTo(t, []);
  (await UdpClient.to(t, none.port)).send('x');
  await eventually(() => none.proxy.clusterStat('raw', 'upstream_cx_none_healthy') === 1, 'no host');
  assert.equal(none.proxy.udpStat('downstream_sess_active'), 0);
  assert.equal(none.proxy.dataPlane.connectionCount, 0);
  const unknown = await proxyTo(t, [], { name: 'other' });
  (await UdpClient.to(t, unknown.port)).send('x');
  await eventually(() => unknown.proxy.udpStat('downstream_sess_no_route') === 1, 'no cluster');
  assert.equal(unknown.proxy.udpStat('downstream_sess_total'), 0);
});

test('a tree of addresses and ports chooses the cluster of each session, which is counted there', async (t) => {
  const [near, far] = await Promise.all(['near', 'far'].map((name) => UdpServer.start(t, (text) => `${name} ${text}`)));
  const proxy = new DataPlaneFixture();
  proxy.cluster('raw', [loopback(near!.port)]);
  proxy.cluster('far', [loopback(far!.port)]);
  const action = (cluster: string) => ({ next: { kind: 'action', action: cluster }, keepsMatching: false }) as const;
  const ranges = [{ ip: '127.0.0.32', prefixLength: 28 }];
  const [port] = await proxy.listenWith({
    addresses: [loopback(0)],
    filterChains: [],
    udp: {
      statPrefix: 'test',
      cluster: '',
      matcher: {
        clusters: ['raw', 'far'],
        tree: {
          kind: 'list',
          entries: [
            {
              predicate: { kind: 'input', input: { kind: 'source-ip' }, test: { kind: 'ip', ranges } },
              outcome: action('far'),
            },
            {
              predicate: {
                kind: 'input',
                input: { kind: 'destination-ip' },
                test: { kind: 'text', match: { kind: 'exact', value: '127.0.0.9', ignoresCase: false } },
              },
              outcome: action('far'),
            },
            {
              predicate: {
                kind: 'input',
                input: { kind: 'source-ip' },
                test: { kind: 'text', match: { kind: 'exact', value: '127.0.0.1', ignoresCase: false } },
              },
              outcome: action('raw'),
            },
          ],
        },
      },
      idleTimeoutMs: 60_000,
      hashPolicy: null,
      picksPerDatagram: false,
      maxClientDatagramBytes: 1500,
      maxHostDatagramBytes: 1500,
      accessLogs: [],
    },
  });
  t.after(() => proxy.close());
  assert.equal(await (await UdpClient.to(t, port!)).ask('a'), 'near a');
  assert.equal(await (await UdpClient.to(t, port!, '127.0.0.33')).ask('b'), 'far b');
  (await UdpClient.to(t, port!, '127.0.0.5')).send('c');
  await eventually(() => proxy.udpStat('downstream_sess_no_route') === 1, 'nobody for it');
  assert.equal(proxy.udpClusterStat('sess_rx_datagrams'), 1);
  assert.equal(proxy.clusterStat('far', 'upstream_cx_active'), 1);
  assert.equal(proxy.udpStat('downstream_sess_total'), 2);
});

test('sessions stand under the limit of connections of their cluster, whatever number of addresses sends', async (t) => {
  const server = await UdpServer.start(t, echo);
  const circuitBreakers = { default: { ...NO_LIMITS, maxConnections: 2 }, high: NO_LIMITS };
  const { proxy, port } = await proxyTo(t, [server.port], { cluster: { circuitBreakers } });
  const clients = await Promise.all(Array.from({ length: 20 }, () => UdpClient.to(t, port)));
  for (const client of clients.slice(0, 2)) await client.ask('x');
  for (const client of clients.slice(2)) client.send('x');
  await eventually(() => proxy.clusterStat('raw', 'upstream_cx_overflow') === 18, 'all others are turned away');
  assert.equal(proxy.udpStat('downstream_sess_active'), 2);
  assert.equal(proxy.dataPlane.connectionCount, 2);
  assert.equal(await clients[0]!.ask('y'), 'echo y');
});

test('datagrams that are too long are dropped, whoever sends them', async (t) => {
  const server = await UdpServer.start(t, (text) => 'x'.repeat(Number(text)));
  const { proxy, port } = await proxyTo(t, [server.port], {
    settings: { maxClientDatagramBytes: 8, maxHostDatagramBytes: 100 },
  });
  const client = await UdpClient.to(t, port);
  client.send('000000001');
  await eventually(() => proxy.udpListenerStat('downstream_rx_datagram_dropped') === 1, 'a long one of the client');
  client.send('101');
  await eventually(() => proxy.udpClusterStat('sess_rx_datagrams_dropped') === 1, 'a long one of the host');
  assert.equal((await client.ask('100')).length, 100);
});

test('a host where nobody listens is an error that is counted, and the session goes on', async (t) => {
  const free = await unusedPort();
  const { proxy, port } = await proxyTo(t, [free]);
  const client = await UdpClient.to(t, port);
  client.send('x');
  await eventually(
    () => proxy.udpClusterStat('sess_rx_errors') + proxy.udpClusterStat('sess_tx_errors') > 0,
    'an error',
  );
  await UdpServer.start(t, echo, free);
  assert.equal(await client.ask('y'), 'echo y');
  assert.equal(proxy.udpStat('downstream_sess_total'), 1);
});

test('a session leaves a host that has fallen ill as soon as there is another', async (t) => {
  const servers = await Promise.all(['one', 'two'].map((name) => UdpServer.start(t, () => name)));
  const { proxy, port, cluster } = await proxyTo(
    t,
    servers.map((server) => server.port),
  );
  const client = await UdpClient.to(t, port);
  const first = await client.ask('x');
  const { records } = proxy.context;
  const ill = first === 'one' ? 0 : 1;
  records.setHealthFlag(cluster.hosts[ill]!.recordAddress, HealthFlag.failedActiveHealthCheck, true);
  proxy.cluster(
    'raw',
    servers.map((server) => loopback(server.port)),
  );
  const second = await client.ask('y');
  assert.notEqual(second, first);
  assert.equal(proxy.udpStat('downstream_sess_total'), 1);
  assert.equal(proxy.clusterStat('raw', 'upstream_cx_active'), 1);
});

test('a session whose host has gone ends, and the next datagram goes to another', async (t) => {
  const servers = await Promise.all(['one', 'two'].map((name) => UdpServer.start(t, () => name)));
  const clock = new ManualClock();
  const { proxy, port } = await proxyTo(t, [servers[0]!.port], { clock });
  const client = await UdpClient.to(t, port);
  assert.equal(await client.ask('x'), 'one');
  proxy.cluster('raw', [loopback(servers[1]!.port)]);
  await eventually(() => proxy.udpStat('downstream_sess_active') === 0, 'the end of the session');
  // Its idle time has ended with it.
  clock.turn(61_000);
  assert.equal(proxy.udpStat('idle_timeout'), 0);
  assert.equal(await client.ask('y'), 'two');
});

test('each datagram picks its host where that is asked for', async (t) => {
  const servers = await Promise.all(['one', 'two'].map((name) => UdpServer.start(t, () => name)));
  const { proxy, port } = await proxyTo(
    t,
    servers.map((server) => server.port),
    { settings: { picksPerDatagram: true } },
  );
  const client = await UdpClient.to(t, port);
  const answers = [await client.ask('1'), await client.ask('2'), await client.ask('3'), await client.ask('4')];
  assert.deepEqual(answers.toSorted(), ['one', 'one', 'two', 'two']);
  assert.equal(proxy.udpStat('downstream_sess_total'), 1);
  assert.equal(proxy.clusterStat('raw', 'upstream_cx_active'), 2);
});

for (const [name, hashPolicy, hosts] of [
  ['all clients of an address go to one host, by its hash', { kind: 'source-ip' }, 1],
  ['all clients go to one host, by a key', { kind: 'key', key: 'any' }, 1],
  ['clients are spread without a policy', null, 2],
] as const) {
  test(name, async (t) => {
    const servers = await Promise.all(['one', 'two'].map((each) => UdpServer.start(t, () => each)));
    const { port } = await proxyTo(
      t,
      servers.map((server) => server.port),
      { settings: { hashPolicy }, cluster: hashPolicy === null ? {} : { lbPolicy: 'MAGLEV' } },
    );
    const answers = new Set<string>();
    for (let count = 0; count < 12; count++) answers.add(await (await UdpClient.to(t, port)).ask('x'));
    assert.equal(answers.size, hosts);
  });
}

test('a tree may spread clients by a hash of their addresses', async (t) => {
  const [here, far] = await Promise.all(['here', 'far'].map((name) => UdpServer.start(t, () => name)));
  const proxy = new DataPlaneFixture();
  t.after(() => proxy.close());
  for (const [name, server] of Object.entries({ here, far })) proxy.cluster(name, [loopback(server!.port)]);
  const action = (cluster: string) => ({ next: { kind: 'action', action: cluster }, keepsMatching: false }) as const;
  const [port] = await proxy.listenWith({
    addresses: [loopback(0)],
    filterChains: [],
    udp: {
      statPrefix: 'test',
      cluster: '',
      matcher: {
        clusters: ['here', 'far'],
        tree: {
          kind: 'list',
          entries: [
            {
              predicate: {
                kind: 'input',
                input: { kind: 'source-port' },
                test: { kind: 'hash', threshold: 1, modulo: 2, seed: '0' },
              },
              outcome: action('here'),
            },
          ],
          otherwise: action('far'),
        },
      },
      idleTimeoutMs: 60_000,
      hashPolicy: null,
      picksPerDatagram: false,
      maxClientDatagramBytes: 1500,
      maxHostDatagramBytes: 1500,
      accessLogs: [],
    },
  });
  const answers = new Set<string>();
  for (let count = 0; count < 40; count++) answers.add(await (await UdpClient.to(t, port!)).ask('x'));
  assert.deepEqual([...answers].toSorted(), ['far', 'here']);
});

test('a session is logged at its end, with what it has carried', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-udp-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'access.log');
  const key = (name: string): string => `%DYNAMIC_METADATA(udp.proxy.session:${name})%`;
  const format = `%ACCESS_LOG_TYPE% %UPSTREAM_CLUSTER% %UPSTREAM_HOST% %BYTES_RECEIVED% %BYTES_SENT% ${key('datagrams_received')} ${key('datagrams_sent')} %DOWNSTREAM_REMOTE_ADDRESS%\n`;
  const content = { kind: 'text', segments: parseFormat(format).segments! } as const;
  const server = await UdpServer.start(t, echo);
  const { port, close } = await proxyTo(t, [server.port], {
    settings: {
      accessLogs: [
        { destination: { kind: 'file', path: file }, format: { content, omitEmptyValues: false }, filter: null },
      ],
    },
  });
  const client = await UdpClient.to(t, port);
  await client.ask('a');
  await client.ask('b');
  const own = client.socket.address().port;
  await close();
  assert.equal(readFileSync(file, 'latin1'), `UdpSessionEnd raw 127.0.0.1:${server.port} 2 12 2 2 127.0.0.1:${own}\n`);
});

test('two addresses of a listener have clients of their own, of either family', async (t) => {
  const server = await UdpServer.start(t, echo);
  const proxy = new DataPlaneFixture();
  t.after(() => proxy.close());
  proxy.cluster('raw', [loopback(server.port)]);
  const v6 = { kind: 'ip', ip: '::1', port: 0 } as const;
  const ports = await proxy.listenWith({
    addresses: [loopback(0), v6],
    filterChains: [],
    udp: {
      statPrefix: 'test',
      cluster: 'raw',
      idleTimeoutMs: 0,
      hashPolicy: null,
      picksPerDatagram: false,
      maxClientDatagramBytes: 1500,
      maxHostDatagramBytes: 1500,
      accessLogs: [],
    },
  });
  assert.equal(await (await UdpClient.to(t, ports[0]!)).ask('four'), 'echo four');
  assert.equal(await (await UdpClient.to(t, ports[1]!, '::1')).ask('six'), 'echo six');
});
