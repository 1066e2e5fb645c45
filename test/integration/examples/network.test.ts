// The examples in which no HTTP service is spoken to, by programs that speak what they carry.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { it } from 'node:test';
import { runProgram } from '../../support/child-process.ts';
import { DnsServer } from '../../support/dns-server.ts';
import { untilEqual } from '../../support/eventually.ts';
import { portOf, startExample } from '../../support/examples.ts';
import { redisCli, startRedis, startRedisCluster } from '../../support/redis-servers.ts';
import { WireClient } from '../../support/wire.ts';

const FOLDERS = (process.env.PATH ?? '').split(path.delimiter);
const NO_DIG = !FOLDERS.some((folder) => existsSync(path.join(folder, 'dig'))) && 'dig is not installed';

it('two proxies carry connections of any protocol as CONNECT over one connection of HTTP/2, to one place and no other', async (t) => {
  const database = createServer((socket) => {
    socket.write('ready\n');
    socket.on('data', (chunk) => socket.write(`got ${chunk}`));
    socket.on('error', () => {});
  });
  const databasePort = await portOf(t, database);
  await using far = await startExample('tcp-over-connect-far.yaml', { 15432: databasePort });
  const { port: farPort } = (await far.listeners()).get('proxies')!;
  await using near = await startExample('tcp-over-connect-near.yaml', { 8081: farPort });
  const { port } = (await near.listeners()).get('database')!;
  const clients = ['a', 'b', 'c'].map((name) => ({ name, wire: new WireClient(port) }));
  for (const { name, wire } of clients) {
    await wire.until('ready\n');
    wire.write(`${name}\n`);
    assert.equal(await wire.until('\n'), `got ${name}\n`);
  }
  await far.untilStat('http.proxies.downstream_cx_http2_total', 1);
  await far.untilStat('cluster.database.upstream_cx_active', 3);
  await near.untilStat('cluster.far.upstream_rq_active', 3);
  for (const { wire } of clients) wire.socket.end();
  for (const { wire } of clients) assert.equal(await wire.rest(), '');
  await far.untilStat('cluster.database.upstream_cx_active', 0);
  await near.untilStat('tcp.database.downstream_cx_total', 3);

  const elsewhere = await runProgram('curl', [
    '-sS',
    '-x',
    `http://127.0.0.1:${farPort}`,
    '-p',
    'http://127.0.0.1:22/',
  ]);
  assert.notEqual(elsewhere.code, 0);
  assert.match(elsewhere.stderr, /CONNECT tunnel failed, response 404/);
});

it('questions and answers of DNS go through, by UDP and by TCP on one port', { skip: NO_DIG }, async () => {
  await using first = await DnsServer.start();
  await using second = await DnsServer.start();
  const servers = [first, second];
  for (const server of servers) server.set('web.test', ['192.0.2.7']);
  await using weir = await startExample('udp.yaml', { 5301: first.port, 5302: second.port });
  const listeners = await weir.listeners();
  const dig = async (name: string, ...args: string[]): Promise<string> => {
    const { port } = listeners.get(name)!;
    const options = ['+short', '+tries=1', '+time=5', '-p', String(port)];
    return (await runProgram('dig', ['@127.0.0.1', ...options, ...args, 'web.test', 'A'])).stdout;
  };
  await weir.untilStat('cluster.dns.membership_healthy', 2);
  for (let count = 0; count < 6; count++) assert.equal(await dig('dns'), '192.0.2.7\n');
  assert.equal(await dig('dns-over-tcp', '+tcp'), '192.0.2.7\n');
  await weir.untilStat('udp.dns.downstream_sess_total', 6);
  await weir.untilStat('udp.dns.downstream_sess_tx_datagrams', 6);
  await weir.untilStat('cluster.dns.udp.sess_rx_datagrams', 6);
  await weir.untilStat('tcp.dns.downstream_cx_total', 1);
  for (const { queries } of servers) assert.ok(queries.includes('web.test A'));
});

it('servers of Redis are one port, over which keys are spread, kept together and taken apart', async () => {
  const caches = await Promise.all([startRedis(), startRedis(), startRedis()]);
  const sessions = await startRedis('--requirepass', 'change-me');
  const servers = [...caches, sessions];
  try {
    const ports = Object.fromEntries(servers.map(({ port }, index) => [6381 + index, port]));
    const times = {
      'interval: 5s\n          no_traffic_interval: 5s': 'interval: 0.1s\n          no_traffic_interval: 0.1s',
    };
    await using weir = await startExample('redis.yaml', ports, undefined, times);
    const { port } = (await weir.listeners()).get('redis')!;
    const cli = (...args: string[]): Promise<string> => redisCli(port, ...args);
    await weir.untilStat('cluster.cache.membership_healthy', 3);
    const keys = Array.from({ length: 30 }, (_entry, index) => `{user:${index}}:name`);
    assert.equal(await cli('mset', ...keys.flatMap((key) => [key, key])), 'OK');
    assert.equal(await cli('mget', ...keys), keys.join('\n'));
    assert.equal(await cli('exists', ...keys), '30');
    const sizes = await Promise.all(caches.map((server) => server.cli('dbsize')));
    assert.ok(
      sizes.every((size) => Number(size) > 0),
      `${sizes}: each has some`,
    );
    assert.equal(await cli('set', 'session:1', 'open'), 'OK');
    assert.equal(await sessions.cli('--no-auth-warning', '-a', 'change-me', 'get', 'session:1'), 'open');
    const bench = [
      '-h',
      '127.0.0.1',
      '-p',
      String(port),
      '-P',
      '16',
      '-n',
      '5000',
      '-r',
      '1000',
      '-q',
      '-t',
      'set,get',
    ];
    assert.match((await runProgram('redis-benchmark', bench)).stdout, /GET: \d/);
    await caches[0]!.stop();
    await weir.untilStat('cluster.cache.membership_healthy', 2);
    for (const key of keys) assert.equal(await cli('set', key, '1'), 'OK');
  } finally {
    await Promise.all(servers.slice(1).map((server) => server.stop()));
  }
});

it('a Redis Cluster has one port, and commands find their servers when a copy takes the place of one', async () => {
  const servers = await startRedisCluster();
  try {
    const [first, second, copy] = servers as [(typeof servers)[0], (typeof servers)[0], (typeof servers)[0]];
    // The usual question of every five seconds is not what keeps commands on their way.
    await using weir = await startExample('redis-cluster.yaml', { 7001: first.port, 7002: second.port }, undefined, {
      'cluster_refresh_rate: 5s': 'cluster_refresh_rate: 600s',
      'cluster_refresh_timeout: 1s': 'cluster_refresh_timeout: 60s',
      'op_timeout: 1s\n': 'op_timeout: 60s\n',
      'op_timeout: 1s,': 'op_timeout: 60s,',
    });
    const listeners = await weir.listeners();
    const portNamed = (name: string): number => listeners.get(name)!.port;
    await weir.untilStat('cluster.cache.membership_total', 3);
    const exact = (...args: string[]): Promise<string> => redisCli(portNamed('redis-exact'), ...args);
    const keys = Array.from({ length: 30 }, (_entry, index) => `{user:${index}}:name`);
    assert.equal(await exact('mset', ...keys.flatMap((key) => [key, key])), 'OK');
    assert.equal(await exact('mget', ...keys), keys.join('\n'));
    const hosts = async (): Promise<string> => await weir.admin('/clusters');
    const requests = async ({ port }: { port: number }): Promise<number> =>
      Number(new RegExp(`127\\.0\\.0\\.1:${port}::rq_total::(\\d+)`).exec(await hosts())![1]);
    assert.ok((await requests(first)) > 0 && (await requests(second)) > 0);
    assert.equal(await requests(copy), 0);
    // A copy may be a moment behind.
    await untilEqual(keys.join('\n'), () => redisCli(portNamed('redis'), 'mget', ...keys), 'what copies say');
    assert.ok((await requests(copy)) > 0);

    assert.equal(await copy.cli('cluster', 'failover'), 'OK');
    const roles = async (): Promise<string[]> =>
      await Promise.all([first, copy].map(async ({ cli }) => (await cli('role')).split('\n')[0]!));
    await untilEqual('slave,master', async () => (await roles()).join(), 'the place of the first');
    for (const key of keys) assert.equal(await exact('set', key, 'new'), 'OK');
    assert.equal(await exact('mget', ...keys), keys.map(() => 'new').join('\n'));
    assert.ok(((await weir.stat('cluster.cache.upstream_internal_redirect_succeeded_total')) ?? 0) > 0);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
});
