// Listeners of the real program with several workers: what only shows when they share addresses and counts.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { clusterNamed, type JsonObject, listenerWith, socketAddress, tcpFilter } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireUpstream } from '../support/wire.ts';

const WORKERS = 2;
const LIMIT = 3;
const CLIENTS = 12;
const ANY_PORT = socketAddress('127.0.0.1', 0);

function clusterAt(upstreamPort: number): JsonObject {
  const endpoint = { endpoint: { address: socketAddress('127.0.0.1', upstreamPort) } };
  const assignment = { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] };
  return clusterNamed('web', { load_assignment: assignment });
}

function bootstrap(upstreamPort: number): JsonObject {
  const type = 'type.googleapis.com/envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit';
  const limit = {
    name: 'envoy.filters.network.connection_limit',
    typed_config: { '@type': type, stat_prefix: 'l', max_connections: LIMIT },
  };
  return {
    admin: { address: ANY_PORT },
    static_resources: {
      listeners: [
        listenerWith([limit, tcpFilter({})], {
          address: ANY_PORT,
          additional_addresses: [{ address: ANY_PORT }],
          stat_prefix: 'edge',
        }),
        listenerWith([tcpFilter({})], {
          name: 'single',
          stat_prefix: 'single',
          address: ANY_PORT,
          enable_reuse_port: false,
        }),
      ],
      clusters: [clusterAt(upstreamPort)],
    },
  };
}

/** Whether the connection is served, or closed without a byte. */
async function isServed(socket: Socket): Promise<boolean> {
  // Not `once` of node:events: that rejects with the reset that a refused connection may end in.
  return await new Promise((resolve) => {
    socket.once('data', () => resolve(true));
    socket.once('close', () => resolve(false));
  });
}

interface Clients {
  readonly sockets: Socket[];
  /** Opens one more. @returns whether it is served. */
  readonly open: (port: number) => Promise<boolean>;
}

function clients(): Clients {
  const sockets: Socket[] = [];
  const open = (port: number): Promise<boolean> => {
    const socket = connect(port, '127.0.0.1');
    // A refused connection may end in a reset.
    socket.on('error', () => {});
    sockets.push(socket);
    return isServed(socket);
  };
  return { sockets, open };
}

test('a limit holds over all workers and addresses of a listener, which one worker alone may serve', async (t) => {
  const upstream = await WireUpstream.start((socket) => void socket.write('hello'));
  t.after(() => upstream.close());
  await using weir = await startWeir({
    configYaml: JSON.stringify(bootstrap(upstream.port)),
    args: ['--concurrency', String(WORKERS)],
  });
  const lines = (await weir.admin('/listeners')).trim().split('\n');
  assert.deepEqual(
    lines.map((line) => line.replace(/\d+$/, 'port')),
    ['main::127.0.0.1:port', 'main::127.0.0.1:port', 'single::127.0.0.1:port'],
  );
  const [first, second, single] = lines.map((line) => Number(line.slice(line.lastIndexOf(':') + 1)));
  assert.notEqual(first, second);

  const { sockets, open } = clients();
  const served = await Promise.all(
    Array.from({ length: CLIENTS }, (_, index) => open(index % 2 === 0 ? first! : second!)),
  );
  assert.equal(served.filter(Boolean).length, LIMIT);
  await weir.untilStat('connection_limit.l.active_connections', LIMIT);
  await weir.untilStat('connection_limit.l.limited_connections', CLIENTS - LIMIT);
  await weir.untilStat('listener.edge.downstream_cx_total', CLIENTS);
  await weir.untilStat('listener.edge.downstream_cx_active', LIMIT);
  const byWorker = await Promise.all(
    Array.from({ length: WORKERS }, (_, index) => weir.stat(`listener.edge.worker_${index}.downstream_cx_total`)),
  );
  assert.equal(byWorker[0]! + byWorker[1]!, CLIENTS);

  for (let index = 0; index < 4; index += 1) assert.equal(await open(single!), true);
  await weir.untilStat('listener.single.worker_0.downstream_cx_total', 4);
  // A raw connection would hold up the stop.
  for (const socket of sockets) socket.destroy();
});

test('the limits of the runtime hold over all workers', async (t) => {
  const upstream = await WireUpstream.start((socket) => void socket.write('hello'));
  t.after(() => upstream.close());
  const listener = (name: string, fields: JsonObject = {}): JsonObject =>
    listenerWith([tcpFilter({})], { name, stat_prefix: name, address: ANY_PORT, ...fields });
  const values = {
    overload: { global_downstream_max_connections: 5 },
    'envoy.resource_limits.listener.limited.connection_limit': 3,
  };
  const configYaml = JSON.stringify({
    admin: { address: ANY_PORT },
    layered_runtime: { layers: [{ name: 'base', static_layer: values }] },
    static_resources: {
      listeners: [listener('limited'), listener('plain'), listener('exempt', { ignore_global_conn_limit: true })],
      clusters: [clusterAt(upstream.port)],
    },
  });
  await using weir = await startWeir({ configYaml, args: ['--concurrency', String(WORKERS)] });
  const ports = await weir.listeners();
  const { sockets, open } = clients();
  const served = async (listenerName: string, count: number): Promise<number> => {
    const { port } = ports.get(listenerName)!;
    const results = await Promise.all(Array.from({ length: count }, () => open(port)));
    return results.filter(Boolean).length;
  };
  assert.equal(await served('limited', 10), 3);
  const overflow = async (): Promise<boolean> => (await weir.stat('listener.limited.downstream_cx_overflow'))! > 0;
  await untilEqual(true, overflow, 'an overflow of the listener');
  assert.equal(await served('plain', 10), 2);
  await weir.untilStat('listener.plain.downstream_global_cx_overflow', 8);
  assert.equal(await served('exempt', 3), 3);
  await weir.untilStat('listener.plain.downstream_cx_active', 2);
  for (const socket of sockets) socket.destroy();
});
