// Listeners for datagrams in the whole program: several workers on one port, TCP beside them, listings, and what is not sent in clear.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { untilEqual } from '../support/eventually.ts';
import { UdpClient, UdpServer } from '../support/udp-client.ts';
import { startWeir } from '../support/weir-process.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

const PREFIX = 'type.googleapis.com/envoy.extensions';

function udpListener(name: string, cluster: string): object {
  const typedConfig = { '@type': `${PREFIX}.filters.udp.udp_proxy.v3.UdpProxyConfig`, stat_prefix: name, cluster };
  return {
    name,
    address: { socket_address: { protocol: 'UDP', address: '127.0.0.1', port_value: 0 } },
    listener_filters: [{ name: 'envoy.filters.udp_listener.udp_proxy', typed_config: typedConfig }],
  };
}

function cluster(name: string, port: number, fields: object = {}): object {
  const endpoint = { address: { socket_address: { address: '127.0.0.1', port_value: port } } };
  return { name, load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint }] }] }, ...fields };
}

test('workers share a port, each client stays with its own, and nothing is sent in clear that would be secured', async (t) => {
  const server = await UdpServer.start(t, (text) => `echo ${text}`);
  const tls = { '@type': `${PREFIX}.transport_sockets.tls.v3.UpstreamTlsContext` };
  const secured = { transport_socket: { name: 'envoy.transport_sockets.tls', typed_config: tls } };
  const config = {
    admin: { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } },
    static_resources: {
      listeners: [udpListener('plain', 'plain'), udpListener('secured', 'secured')],
      clusters: [cluster('plain', server.port), cluster('secured', server.port, secured)],
    },
  };
  await using weir = await startWeir({ configYaml: JSON.stringify(config), args: ['--concurrency', '3'] });
  const listeners = await weir.listeners();
  const clients = await Promise.all(Array.from({ length: 12 }, () => UdpClient.to(t, listeners.get('plain')!.port)));
  for (const round of ['1', '2', '3'])
    for (const client of clients) assert.equal(await client.ask(round), `echo ${round}`);
  await weir.untilStat('udp.plain.downstream_sess_total', 12);
  await weir.untilStat('udp.plain.downstream_sess_active', 12);
  assert.equal(server.peers.size, 12);
  assert.match(await weir.admin('/listeners'), /^plain::127\.0\.0\.1:\d+$/m);
  assert.match(await weir.admin('/clusters'), /^plain::127\.0\.0\.1:\d+::cx_active::12$/m);
  (await UdpClient.to(t, listeners.get('secured')!.port)).send('secret');
  await weir.untilStat('udp.secured.downstream_sess_no_route', 1);
  assert.equal(server.peers.size, 12);
  const { stdout, stderr } = await weir.stop();
  assert.match(stdout + stderr, /no datagram is sent to cluster secured, which is spoken to by TLS/);
});

test('a port of UDP and the same one of TCP are two listeners', async (t) => {
  const port = await unusedPort();
  const datagrams = await UdpServer.start(t, (text) => `datagram ${text}`);
  const connections = await WireUpstream.start((socket) => socket.end('connection'));
  t.after(() => connections.close());
  const at = (protocol: string): object => ({ socket_address: { protocol, address: '127.0.0.1', port_value: port } });
  const typedConfig = {
    '@type': `${PREFIX}.filters.network.tcp_proxy.v3.TcpProxy`,
    stat_prefix: 'tcp',
    cluster: 'tcp',
  };
  const config = {
    admin: { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } },
    static_resources: {
      listeners: [
        { ...udpListener('udp', 'udp'), address: at('UDP') },
        { name: 'tcp', address: at('TCP'), filter_chains: [{ filters: [{ name: 'tcp', typed_config: typedConfig }] }] },
      ],
      clusters: [cluster('udp', datagrams.port), cluster('tcp', connections.port)],
    },
  };
  await using weir = await startWeir({ configYaml: JSON.stringify(config), args: ['--concurrency', '2'] });
  assert.equal(await (await UdpClient.to(t, port)).ask('x'), 'datagram x');
  assert.equal(await new WireClient(port).rest(), 'connection');
  await weir.untilStat(`listener.127.0.0.1_${port}.downstream_cx_total`, 1);
  assert.equal(await weir.stat(`listener.127.0.0.1_${port}.udp.downstream_rx_datagram_dropped`), 0);
});

test('a crowd of clients leaves descriptors to everything else, and those who were there first are served', async (t) => {
  const server = await UdpServer.start(t, (text) => `echo ${text}`);
  const many = { circuit_breakers: { thresholds: [{ max_connections: 4096 }] } };
  const config = {
    admin: { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } },
    static_resources: { listeners: [udpListener('plain', 'plain')], clusters: [cluster('plain', server.port, many)] },
  };
  const options = { configYaml: JSON.stringify(config), descriptorLimit: 200, args: ['--concurrency', '2'] };
  await using weir = await startWeir(options);
  const { port } = (await weir.listeners()).get('plain')!;
  const first = await UdpClient.to(t, port);
  assert.equal(await first.ask('a'), 'echo a');
  for (let count = 0; count < 300; count++) (await UdpClient.to(t, port)).send('x');
  const dropped = async (): Promise<boolean> => {
    assert.equal(await first.ask('b'), 'echo b');
    const found = /^listener\.\S*udp\.downstream_rx_datagram_dropped: (\d+)$/m.exec(await weir.admin('/stats'));
    return Number(found?.[1] ?? 0) > 0;
  };
  await untilEqual(true, dropped, 'datagrams that are dropped');
  const sessions = (await weir.stat('udp.plain.downstream_sess_active'))!;
  assert.ok(sessions > 20, `${sessions} sessions`);
  // 37 of 200 are for others.
  const open = readdirSync(`/proc/${weir.pid}/fd`).length;
  assert.ok(open < 175, `${open} descriptors`);
  assert.equal(await weir.stat('server.contained_faults'), 0);
  const { code, stdout, stderr } = await weir.stop();
  assert.equal(code, 0, stderr);
  assert.match(
    stdout + stderr,
    /datagrams of new clients on 127\.0\.0\.1:\d+ are dropped: the descriptors of the process run short/,
  );
});
