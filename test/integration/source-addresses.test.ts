// Where the connections of the real program come from, and how their sockets begin: requests, proxied TCP and checks, to
// hosts of both families.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, socketAddress, tcpFilter } from '../support/bootstrap.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const source = (address: string): JsonObject => ({ address, port_value: 0 });
/** IP_TTL of Linux: one that everybody may set. */
const TTL = { level: 0, name: 2, int_value: 9, ip_version: 'SOCKET_IP_VERSION_IPV4' };
const UNKNOWN_OPTION = { level: 6, name: 9999, int_value: 1 };
/** Of nobody. */
const STRANGE = '192.0.2.7';

/** Answers each connection with where it comes from. */
async function startMirror(t: TestContext, ip: string): Promise<number> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => {});
    const { remoteAddress = '' } = socket;
    socket.on('data', () => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${remoteAddress.length}\r\n\r\n${remoteAddress}`);
    });
  }).listen(0, ip);
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function start(clusters: JsonObject, ofBootstrap?: JsonObject): Promise<WeirProcess> {
  const routes = Object.keys(clusters).map((cluster) => ({ match: { prefix: `/${cluster}` }, route: { cluster } }));
  const http = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  const [first] = Object.keys(clusters);
  return await startWeir({
    configYaml: JSON.stringify({
      admin: { address: socketAddress('127.0.0.1', 0) },
      ...(ofBootstrap && { cluster_manager: { upstream_bind_config: ofBootstrap } }),
      static_resources: {
        listeners: [
          listenerWith([http], { name: 'http', address: socketAddress('127.0.0.1', 0) }),
          listenerWith([tcpFilter({ cluster: first! })], { name: 'tcp', address: socketAddress('127.0.0.1', 0) }),
        ],
        clusters: Object.entries(clusters).map(([name, fields]) => ({ name, ...(fields as JsonObject) })),
      },
    }),
  });
}

async function ask(weir: WeirProcess, listener: string, cluster: string): Promise<{ status: number; body: string }> {
  const client = new WireClient((await weir.listeners()).get(listener)!.port).write(
    REQUEST.replace('/', `/${cluster}`),
  );
  const answer = await client.response();
  client.close();
  return answer;
}

describe('connections of a cluster', () => {
  it('come from the source of the family of their host, with options or without', async (t) => {
    const v4 = [socketAddress('127.0.0.1', await startMirror(t, '127.0.0.1'))];
    const v6 = [socketAddress('::1', await startMirror(t, '::1'))];
    const upstream_bind_config = {
      source_address: source('::1'),
      extra_source_addresses: [{ address: source('127.0.0.8') }],
    };
    const free = { ...upstream_bind_config, freebind: true, socket_options: [TTL] };
    await using weir = await start(
      {
        a: { hosts: v4, upstream_bind_config: free },
        b: { hosts: v6, upstream_bind_config: free },
        c: { hosts: v4, upstream_bind_config },
        d: { hosts: v6, upstream_bind_config },
        e: { hosts: v4 },
      },
      { source_address: source('127.0.0.7'), socket_options: [TTL] },
    );
    const sources: string[] = [];
    for (const cluster of ['a', 'b', 'c', 'd', 'e']) sources.push((await ask(weir, 'http', cluster)).body);
    assert.deepEqual(sources, ['127.0.0.8', '::1', '127.0.0.8', '::1', '127.0.0.7']);
    assert.equal((await ask(weir, 'tcp', 'a')).body, '127.0.0.8');
  });

  it('begin with options of the cluster in checks, too', async (t) => {
    const hosts = [socketAddress('127.0.0.1', await startMirror(t, '127.0.0.1'))];
    const check = {
      timeout: '1s',
      interval: '0.1s',
      unhealthy_threshold: 1,
      healthy_threshold: 1,
      tcp_health_check: {},
    };
    await using weir = await start({
      good: { hosts, health_checks: [check], upstream_bind_config: { socket_options: [TTL] } },
      bad: { hosts, health_checks: [check], upstream_bind_config: { socket_options: [UNKNOWN_OPTION] } },
    });
    await weir.untilStat('cluster.good.membership_healthy', 1);
    await weir.untilStat('cluster.bad.membership_healthy', 0);
    assert.equal((await ask(weir, 'http', 'good')).status, 200);
    assert.ok(((await weir.stat('cluster.bad.health_check.network_failure')) ?? 0) >= 1);
  });

  it('fail at once for what cannot be had, and count a bind that has failed', async (t) => {
    const hosts = [socketAddress('127.0.0.1', await startMirror(t, '127.0.0.1'))];
    const strange = { source_address: source(STRANGE), socket_options: [TTL] };
    await using weir = await start({
      bound: { hosts, upstream_bind_config: strange },
      free: { hosts, connect_timeout: '0.2s', upstream_bind_config: { ...strange, freebind: true } },
      unknown: { hosts, upstream_bind_config: { socket_options: [UNKNOWN_OPTION] } },
    });
    for (const cluster of ['bound', 'free', 'unknown']) assert.equal((await ask(weir, 'http', cluster)).status, 503);
    await weir.untilStat('cluster.bound.bind_errors', 1);
    await weir.untilStat('cluster.bound.upstream_cx_connect_fail', 1);
    await weir.untilStat('cluster.unknown.upstream_cx_connect_fail', 1);
    await weir.untilStat('cluster.unknown.bind_errors', 0);
    // Bound to an address of nobody, to which no answer finds the way.
    await weir.untilStat('cluster.free.bind_errors', 0);
    await weir.untilStat('cluster.free.upstream_cx_connect_fail', 1);
  });
});
