// Weirs that take over from one another: what clients, counters and operators see of it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { FrameReader, frameOf } from '../../src/process/hot-restart/frames.ts';
import { type JsonObject, socketAddress } from '../support/bootstrap.ts';
import { PORTS, RestartRow, untilSaid } from '../support/restart-row.ts';
import { RestartTraffic } from '../support/restart-traffic.ts';
import { runWeir, startWeir } from '../support/weir-process.ts';

const RESTARTS = 5;
/** A parent has time until all its connections have ended by themselves, however crowded the machine is. */
const TIMES = ['--drain-time-s', '1', '--parent-shutdown-time-s', '600'];

test('clients, streams and counters notice nothing of restarts one after the other', async () => {
  await using row = await RestartRow.open(TIMES);
  const { ip: host, pipe } = row;
  await row.start(['--concurrency', '2']);
  const traffic = new RestartTraffic();
  for (const place of [{ host, port: PORTS.http }, { host, port: PORTS.single }, { path: pipe }]) {
    traffic.keepAlive(place, 4);
    traffic.fresh(place, 2);
  }
  traffic.echo({ host, port: PORTS.tcp }, 4);
  traffic.stream({ host, port: PORTS.http }, 1, 100);
  const concurrencies = [2, 4, 1, 3, 2];
  for (let restart = 0; restart < RESTARTS; restart++) {
    const weir = await row.takeOver(['--concurrency', String(concurrencies[restart % concurrencies.length])]);
    assert.equal(await weir.stat('server.hot_restart_epoch'), restart + 1);
    assert.equal(await weir.stat('server.hot_restart_generation'), restart + 2);
    await weir.untilStat('server.parent_connections', 0);
  }
  const { requests, connections, failures } = await traffic.stop();
  assert.deepEqual(failures, []);
  const weir = row.newest;
  await weir.untilStat('http.web.downstream_rq_completed', requests);
  await weir.untilStat('http.web.downstream_rq_2xx', requests);
  await weir.untilStat('cluster.http.upstream_rq_200', requests);
  const tcp = (await weir.stat('tcp.echo.downstream_cx_total'))!;
  assert.equal((await weir.stat('http.web.downstream_cx_total'))! + tcp, connections);
  assert.equal(await weir.stat('server.parent_connections'), 0);
});

test('a process that cannot take over leaves the one before as it was', async () => {
  await using row = await RestartRow.open();
  const weir = await row.start();
  const serves = async (): Promise<void> => {
    assert.equal(await (await fetch(`http://${row.ip}:${PORTS.http}/`)).text(), 'ok');
    assert.equal(await (await fetch(`http://${row.ip}:${PORTS.admin}/ready`)).text(), 'LIVE\n');
  };
  const base = ['--base-id', String(row.baseId), '--concurrency', '1'];
  const next = [...base, '--restart-epoch', '1'];
  const bad = await runWeir([...next, '--config-yaml', '{"no_such_field": 1}']);
  assert.equal(bad.code, 1);
  await serves();
  // Its admin address is good, one of its listeners is not: it has the parent's admin interface when it fails.
  const { static_resources: resources, ...rest } = row.bootstrap() as { static_resources: { listeners: JsonObject[] } };
  const nobodys = { ...resources.listeners[0]!, name: 'nobodys', address: socketAddress('192.0.2.1', 80) };
  const listeners = [...resources.listeners, nobodys];
  const unopened = { ...rest, static_resources: { ...resources, listeners } };
  const failed = await runWeir([...next, '--config-yaml', JSON.stringify(unopened)]);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /error adding listener '192\.0\.2\.1:80'/);
  await untilSaid(weir, 'serving on');
  await serves();
  const again = await runWeir([...base, '--config-yaml', '{}']);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /unable to bind domain socket with base_id=\d+, id=0, errno=98 \(see --base-id option\)/);
  const early = await runWeir([...base, '--restart-epoch', '3', '--config-yaml', '{}']);
  assert.match(early.stderr, /unable to bind domain socket with base_id=\d+, id=0, errno=98/);
  const orphan = await runWeir([...base, '--restart-epoch', '5', '--config-yaml', '{}']);
  assert.equal(orphan.code, 1);
  assert.match(
    orphan.stderr,
    /cannot take over from the process of restart epoch 4: there is none with base id \d+ at @proxy_domain/,
  );
  await serves();
  assert.ok(existsSync(row.pipe));
  await row.takeOver();
  await serves();
});

test('a process whose parent is killed goes on alone, and keeps its counts', async () => {
  await using row = await RestartRow.open(['--drain-time-s', '600']);
  const parent = await row.start();
  const client = connect(PORTS.http, row.ip);
  client.on('error', () => {}).write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await once(client, 'data');
  const weir = await row.takeOver();
  await weir.untilStat('http.web.downstream_rq_2xx', 1);
  await weir.untilStat('server.parent_connections', 1);
  process.kill(parent.pid, 'SIGKILL');
  await weir.untilStat('server.parent_connections', 0);
  await weir.untilStat('http.web.downstream_cx_active', 0);
  assert.equal(await weir.stat('http.web.downstream_rq_2xx'), 1);
  for (const port of [PORTS.http, PORTS.single]) assert.equal((await fetch(`http://${row.ip}:${port}/`)).status, 200);
  const next = await row.takeOver();
  assert.equal(await next.stat('server.hot_restart_generation'), 3);
});

test('processes meet at sockets that are files of a mode, and know who is who', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-place-'));
  const socketPath = path.join(folder, 'place');
  await using row = await RestartRow.open(['--socket-path', socketPath, '--socket-mode', '640']);
  const idFile = path.join(folder, 'id');
  const weir = await row.start(['--base-id-path', idFile]);
  const file = `${socketPath}_parent_${row.baseId * 10}`;
  assert.equal(statSync(file).mode & 0o777, 0o640);
  assert.equal(readFileSync(idFile, 'utf8'), String(row.baseId));
  assert.match(weir.output.stderr.split('\n')[0]!, /initializing epoch 0 \(base id=\d+, hot restart version=1\.0\)$/);

  const socket = connect(file);
  const reader = new FrameReader();
  const ask = async (question: object): Promise<unknown> => {
    socket.write(frameOf(question));
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    return reader.read(bytes)[0];
  };
  const { reason } = (await ask({ type: 'hello', version: '0.9', epoch: 1, id: 1 })) as { reason: string };
  assert.match(reason, /^hot restart version 0\.9 cannot take over from, or hand over to, 1\.0/);
  assert.deepEqual(await ask({ type: 'drain', id: 2 }), { type: 'refused', reason: 'say hello first', id: 2 });
  socket.destroy();

  await row.takeOver();
  await weir.stop('SIGKILL');
  // The name that was left behind is nobody's: the fourth process may have it.
  await row.takeOver();
  await row.takeOver();
  assert.equal((await fetch(`http://${row.ip}:${PORTS.http}/`)).status, 200);
  await row[Symbol.asyncDispose]();
  assert.deepEqual(readdirSync(folder), ['id']);
  rmSync(folder, { recursive: true });
});

test('a dynamic base id is one that is free, and is told', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-id-'));
  const idFile = path.join(folder, 'id');
  await using row = await RestartRow.open();
  const configYaml = JSON.stringify(row.bootstrap());
  await using weir = await startWeir({ configYaml, args: ['--use-dynamic-base-id', '--base-id-path', idFile] });
  const id = readFileSync(idFile, 'utf8');
  assert.match(id, /^\d+$/);
  const { command_line_options: options } = JSON.parse(await weir.admin('/server_info'));
  assert.equal(options.base_id, id);
  rmSync(folder, { recursive: true });
});

test('a process that has been drained serves again when the one that has taken over dies', async () => {
  await using row = await RestartRow.open(['--drain-time-s', '600', '--drain-strategy', 'immediate']);
  const parent = await row.start(['--concurrency', '2']);
  const serves = async (): Promise<void> => {
    for (const port of [PORTS.http, PORTS.single]) assert.equal((await fetch(`http://${row.ip}:${port}/`)).status, 200);
    await once(connect(row.pipe), 'connect');
    const response = await fetch(`http://${row.ip}:${PORTS.http}/`);
    // Nothing drains any more.
    assert.equal(response.headers.get('connection'), null);
  };
  for (const round of [1, 2]) {
    const weir = await row.start(['--restart-epoch', '1', '--concurrency', '3']);
    await untilSaid(weir, 'hot restart: has taken over');
    await weir.stop('SIGKILL');
    await untilSaid(parent, 'hot restart: the process of restart epoch 0 serves again', round);
    await serves();
    assert.equal(await parent.stat('server.hot_restart_epoch'), 0);
    assert.equal(await parent.stat('listener_manager.total_listeners_active'), 4);
  }
  // As ever afterwards: with its counts, and ended by its successor.
  const requests = (await parent.stat('http.web.downstream_rq_completed'))!;
  const weir = await row.start(['--restart-epoch', '1']);
  await untilSaid(weir, 'hot restart: has taken over');
  await serves();
  assert.ok((await weir.stat('http.web.downstream_rq_completed'))! >= requests);
  await weir.stop();
  assert.equal((await parent.exited).code, 0);
});
