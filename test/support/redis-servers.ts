// Real servers of Redis, and the program with redis_proxy before them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Json, type JsonObject, listenerWith, socketAddress } from './bootstrap.ts';
import { runProgram, startProgram } from './child-process.ts';
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
