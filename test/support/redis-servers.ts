// Real servers of Redis, and the program with redis_proxy before them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Json, type JsonObject, listenerWith, socketAddress } from './bootstrap.ts';
import { runProgram, startProgram } from './child-process.ts';
import { untilEqual } from './eventually.ts';
import { startWeir, type WeirProcess } from './weir-process.ts';
import { unusedPort } from './wire.ts';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy';

export interface RedisServer {
  readonly port: number;
  cli(...args: readonly string[]): Promise<string>;
  stop(): Promise<void>;
}

/** What redis-cli says. */
export async function redisCli(port: number, ...args: readonly string[]): Promise<string> {
  const { stdout } = await runProgram('redis-cli', ['-h', '127.0.0.1', '-p', String(port), ...args]);
  return stdout.trimEnd();
}

/** @param options of redis-server beside those of every test. */
export async function startRedis(...options: readonly string[]): Promise<RedisServer> {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-redis-'));
  const port = await unusedPort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
  const child = startProgram('redis-server', [...args, ...options]);
  let said = '';
  for await (const chunk of child.stdout) {
    said += chunk;
    if (said.includes('Ready to accept connections')) break;
  }
  assert.match(said, /Ready to accept connections/);
  return {
    port,
    cli: (...given) => redisCli(port, ...given),
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

/** Three servers of one cluster, the last of which is a copy of the first; all know of all. */
export async function startRedisCluster(): Promise<RedisServer[]> {
  const servers: RedisServer[] = [];
  try {
    for (let count = 0; count < 3; count += 1) servers.push(await startRedis(...(await memberOptions())));
    await join(servers as [RedisServer, RedisServer, RedisServer]);
    return servers;
  } catch (error) {
    await Promise.all(servers.map((server) => server.stop()));
    throw error;
  }
}

async function memberOptions(): Promise<string[]> {
  const bus = String(await unusedPort());
  const options = { enabled: 'yes', port: bus, 'node-timeout': '5000' };
  return [
    ...Object.entries(options).flatMap(([name, value]) => [`--cluster-${name}`, value]),
    ...['--repl-diskless-sync-delay', '0'],
  ];
}

async function join(servers: readonly [RedisServer, RedisServer, RedisServer]): Promise<void> {
  const [first, second, third] = servers;
  await first.cli('cluster', 'addslotsrange', '0', '8191');
  await second.cli('cluster', 'addslotsrange', '8192', '16383');
  for (const other of [second, third]) {
    const bus = (await other.cli('config', 'get', 'cluster-port')).split('\n').at(-1)!;
    await first.cli('cluster', 'meet', '127.0.0.1', String(other.port), bus);
  }
  const states = async (): Promise<string> => {
    const each = servers.map(async ({ cli }) => /cluster_state:(\w+)/.exec(await cli('cluster', 'info'))![1]);
    return (await Promise.all(each)).join();
  };
  await untilEqual('ok,ok,ok', states, 'the state of all');
  const id = await first.cli('cluster', 'myid');
  await untilEqual('OK', () => third.cli('cluster', 'replicate', id), 'the third copies the first');
  const link = async (): Promise<string> =>
    /master_link_status:(\w+)/.exec(await third.cli('info', 'replication'))?.[1] ?? '';
  await untilEqual('up', link, 'the copy');
  // Servers hear of one another's parts by and by.
  const known = async (server: RedisServer): Promise<boolean> =>
    (await server.cli('cluster', 'slots')).includes(String(third.port));
  const isKnown = async (): Promise<boolean> => (await Promise.all([first, second].map(known))).every(Boolean);
  await untilEqual(true, isKnown, 'the copy is known to those who are asked for it');
}

export function redisFilter(fields: JsonObject = {}, settings: JsonObject = {}): JsonObject {
  return {
    name: 'envoy.filters.network.redis_proxy',
    typed_config: {
      '@type': TYPE,
      stat_prefix: 'cache',
      settings: { op_timeout: '5s', ...settings },
      prefix_routes: { catch_all_route: { cluster: 'ring' } },
      ...fields,
    },
  };
}

/** @param clusters the ports of their servers. @param fields of all clusters. */
export async function startRedisProxy(
  clusters: Readonly<Record<string, readonly number[]>>,
  filter: Json,
  fields: JsonObject = {},
): Promise<{ weir: WeirProcess; port: number }> {
  const weir = await startWeir({
    configYaml: JSON.stringify({
      admin: { address: socketAddress('127.0.0.1', 0) },
      static_resources: {
        listeners: [listenerWith([filter], { address: socketAddress('127.0.0.1', 0) })],
        clusters: Object.entries(clusters).map(([name, ports]) => ({
          name,
          connect_timeout: '1s',
          lb_policy: 'RING_HASH',
          load_assignment: {
            cluster_name: name,
            endpoints: [
              { lb_endpoints: ports.map((port) => ({ endpoint: { address: socketAddress('127.0.0.1', port) } })) },
            ],
          },
          ...fields,
        })),
      },
    }),
    args: ['--concurrency', '2'],
  });
  return { weir, port: (await weir.listeners()).get('main')!.port };
}
