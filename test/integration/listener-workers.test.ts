// Listeners of the real program with several workers: what only shows when they share addresses and counts.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { clusterNamed, type JsonObject, listenerWith, socketAddress, tcpFilter } from '../support/bootstrap.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireUpstream } from '../support/wire.ts';

const WORKERS = 2;
const LIMIT = 3;
const CLIENTS = 12;
const ANY_PORT = socketAddress('127.0.0.1', 0);

function bootstrap(upstreamPort: number): JsonObject {
  const type = 'type.googleapis.com/envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit';
  const limit = {
    name: 'envoy.filters.network.connection_limit',
    typed_config: { '@type': type, stat_prefix: 'l', max_connections: LIMIT },
  };
  const endpoint = { endpoint: { address: socketAddress('127.0.0.1', upstreamPort) } };
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
      clusters: [
        clusterNamed('web', { load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] } }),
      ],
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

  const sockets: Socket[] = [];
  const open = (port: number): Promise<boolean> => {
    const socket = connect(port, '127.0.0.1');
    // A refused connection may end in a reset.
    socket.on('error', () => {});
    sockets.push(socket);
    return isServed(socket);
  };
  const served = await Promise.all(
    Array.from({ length: CLIENTS }, (_, index) => open(index % 2 === 0 ? first! : second!)),
  );
  assert.equal(served.filter(Boolean).length, LIMIT);
  await weir.untilStat('connection_limit.l.active_connections', LIMIT);
  await weir.untilStat('connection_limit.l.limited_connections', CLIENTS - LIMIT);
  await weir.untilStat('listener.edge.downstream_cx_overflow', CLIENTS - LIMIT);
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
