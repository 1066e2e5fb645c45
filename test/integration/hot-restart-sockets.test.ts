// Sockets that weirs hand over to one another: of more workers and of fewer, of one and of many, of the admin interface.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { collectOutput, startProgram } from '../support/child-process.ts';
import { untilEqual } from '../support/eventually.ts';
import { PORTS, RestartRow, untilSaid } from '../support/restart-row.ts';
import { programOf, type WeirProcess } from '../support/weir-process.ts';

const INJECTED = 'envoy.resource_monitors.injected_resource';
const STOP_ACCEPTING = 'envoy.overload_actions.stop_accepting_connections';
const CLIENTS = 40;
const GET = 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n';

/** An open connection that has asked, and what has come of it. */
async function asking(host: string, port: number): Promise<{ readonly socket: Socket; readonly end: Promise<string> }> {
  const socket = connect(port, host);
  let text = '';
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
  });
  const end = new Promise<string>((resolve) => {
    socket.on('error', (error) => resolve(String(error)));
    socket.on('close', () => resolve(text));
  });
  await once(socket, 'connect');
  socket.write(GET);
  return { socket, end };
}

function connectionsByWorker(weir: WeirProcess): Promise<number[]> {
  const name = (worker: number): string => `listener.http.worker_${worker}.downstream_cx_total`;
  return Promise.all([0, 1, 2].map(async (worker) => (await weir.stat(name(worker))) ?? 0));
}

test('clients wait at all sockets of a process that had more workers while it must not accept', async () => {
  await using row = await RestartRow.open(['--parent-shutdown-time-s', '600', '--drain-time-s', '1']);
  const pressure = path.join(row.folder, 'pressure');
  writeFileSync(pressure, '0');
  const type = 'type.googleapis.com/envoy.extensions.resource_monitors.injected_resource.v3.InjectedResourceConfig';
  const overload_manager: JsonObject = {
    refresh_interval: '0.01s',
    resource_monitors: [{ name: INJECTED, typed_config: { '@type': type, filename: pressure } }],
    actions: [{ name: STOP_ACCEPTING, triggers: [{ name: INJECTED, threshold: { value: 0.5 } }] }],
  };
  const configYaml = JSON.stringify(row.bootstrap({ overload_manager }));
  const parent = await row.start(['--concurrency', '4'], { configYaml });
  const weir = await row.start(['--concurrency', '1'], { configYaml });
  await untilSaid(weir, 'hot restart: has taken over');
  await weir.untilStat('server.parent_connections', 0);
  await parent.stop('SIGKILL');
  writeFileSync(pressure, '0.5');
  await weir.untilStat('overload.proxy.overload_actions.stop_accepting_connections.active', 1);
  const clients = await Promise.all(Array.from({ length: CLIENTS }, () => asking(row.ip, PORTS.http)));
  writeFileSync(pressure, '0');
  for (const { end } of clients) assert.match(await end, /^HTTP\/1\.1 200 /);
  assert.equal(await weir.stat('listener.http.downstream_cx_overload_reject'), 0);
});

for (const [from, to] of [
  [false, true],
  [true, false],
] as const) {
  test(`a listener goes from ${from ? 'many sockets to one' : 'one socket to many'}, and back`, async () => {
    await using row = await RestartRow.open(['--parent-shutdown-time-s', '600', '--drain-time-s', '1']);
    const bootstrap = (reuses: boolean): string => {
      const { static_resources: resources, ...rest } = row.bootstrap() as {
        static_resources: { listeners: JsonObject[] };
      };
      const listeners = resources.listeners.map((listener) => ({ ...listener, enable_reuse_port: reuses }));
      return JSON.stringify({ ...rest, static_resources: { ...resources, listeners } });
    };
    await row.start(['--concurrency', '3'], { configYaml: bootstrap(from) });
    for (const reuses of [to, from]) {
      const before = row.newest;
      const weir = await row.start(['--concurrency', '3'], { configYaml: bootstrap(reuses) });
      await untilSaid(weir, 'hot restart: has taken over');
      await before.stop('SIGKILL');
      const earlier = await connectionsByWorker(weir);
      const clients = await Promise.all(Array.from({ length: CLIENTS }, () => asking(row.ip, PORTS.http)));
      for (const { end } of clients) assert.match(await end, /^HTTP\/1\.1 200 /);
      const counts = (await connectionsByWorker(weir)).map((count, worker) => count - earlier[worker]!);
      // Whoever has a socket of its own gets a share of the clients.
      const accepting = counts.map((count) => count > 0);
      assert.deepEqual(accepting, reuses ? [true, true, true] : [true, false, false]);
    }
  });
}

test('the admin interface at a unix socket is handed over, and its path goes with the last process', async () => {
  await using row = await RestartRow.open();
  const admin = path.join(row.folder, 'admin.sock');
  const configYaml = JSON.stringify({ ...row.bootstrap(), admin: { address: { pipe: { path: admin } } } });
  const start = (epoch: number) => {
    const place = ['--base-id', String(row.baseId), '--restart-epoch', String(epoch), '--concurrency', '1'];
    const [command, ...args] = programOf([...place, '--config-yaml', configYaml]);
    return collectOutput(startProgram(command!, args));
  };
  const ask = (at: string, method = 'GET'): Promise<string> =>
    new Promise((resolve) => {
      const asked = request({ socketPath: admin, path: at, method, agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (piece: string) => {
          text += piece;
        });
        response.on('end', () => resolve(text));
      });
      asked.on('error', (error) => resolve(String(error))).end();
    });
  const first = start(0);
  await untilEqual('LIVE\n', () => ask('/ready'), '/ready');
  const second = start(1);
  const said = (): boolean => second.output.stderr.includes('hot restart: has taken over');
  await untilEqual(true, said, 'whether the second has taken over');
  assert.equal(await ask('/stats?filter=hot_restart_epoch'), 'server.hot_restart_epoch: 1\n');
  assert.equal(await ask('/quitquitquit', 'POST'), 'OK\n');
  assert.deepEqual([(await first.exited).code, (await second.exited).code], [0, 0]);
  assert.ok(!existsSync(admin));
});
