// Who takes over from whom, and who does not: processes that are still starting, of another user, of another version, or too many.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemPath } from '../../src/base/address.ts';
import { FrameReader, frameOf } from '../../src/process/hot-restart/frames.ts';
import { asNobody } from '../support/as-nobody.ts';
import { clusterNamed, type JsonObject } from '../support/bootstrap.ts';
import { collectOutput, startProgram } from '../support/child-process.ts';
import { PORTS, RestartRow, untilSaid } from '../support/restart-row.ts';
import { programOf, runWeir } from '../support/weir-process.ts';

const WITHOUT_OTHERS = process.geteuid?.() === 0 ? false : 'only root can be somebody else';

function nameOf(row: RestartRow, epoch: number): string {
  return systemPath(`@proxy_domain_socket_parent_${row.baseId * 10 + (epoch % 3)}`);
}

/** What a process of the row ends with that is not let in. */
async function refusalOf(row: RestartRow, epoch: number): Promise<string> {
  const place = ['--base-id', String(row.baseId), '--restart-epoch', String(epoch), '--concurrency', '1'];
  const { code, stderr } = await runWeir([...place, '--config-yaml', JSON.stringify(row.bootstrap())]);
  assert.equal(code, 1, stderr);
  return stderr;
}

/** Stands at the name of a process of epoch 0. @param answer to each question. */
async function standIn(t: TestContext, server: Server, row: RestartRow, answer: object): Promise<void> {
  server.on('connection', (socket) => {
    const reader = new FrameReader();
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      for (const question of reader.read(bytes))
        socket.write(frameOf({ ...answer, id: (question as { id: number }).id }));
    });
  });
  t.after(() => server.close());
  if (!server.listening) await once(server.listen(nameOf(row, 0)), 'listening');
}

test('nobody takes over from a process that is still starting', async (t) => {
  await using row = await RestartRow.open();
  // The first checks of a cluster are waited for, and this host never answers any.
  const deaf = createServer().listen(0, '127.0.0.1');
  t.after(() => deaf.close());
  await once(deaf, 'listening');
  const { port } = deaf.address() as { port: number };
  const check = { timeout: '60s', interval: '60s', unhealthy_threshold: 1, healthy_threshold: 1 };
  const waited = clusterNamed('waited', {
    health_checks: [{ ...check, http_health_check: { path: '/' } }],
    load_assignment: {
      cluster_name: 'waited',
      endpoints: [
        { lb_endpoints: [{ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } } }] },
      ],
    },
  });
  const configYaml = JSON.stringify({ static_resources: { clusters: [waited] } } satisfies JsonObject);
  const [command, ...args] = programOf(['--base-id', String(row.baseId), '--config-yaml', configYaml]);
  const parent = startProgram(command!, args);
  const { exited } = collectOutput(parent);
  await once(deaf, 'connection');
  assert.match(await refusalOf(row, 1), /previous process is still initializing/);
  parent.kill();
  await exited;
});

test('three processes run side by side, and the fourth has to wait for the first', async (t) => {
  await using row = await RestartRow.open(['--drain-time-s', '1', '--shutdown-grace-s', '600']);
  const clients: Socket[] = [];
  for (const epoch of [0, 1, 2]) {
    if (epoch === 0) await row.start();
    else await row.takeOver();
    // A long answer that nobody reads keeps its process, whatever order has come.
    const client = connect(PORTS.http, row.ip);
    clients.push(client);
    t.after(() => client.destroy());
    client.write('GET /mib/100 HTTP/1.1\r\nhost: a\r\n\r\n');
    await once(client, 'readable');
  }
  const [first, second, third] = row.weirs;
  await untilSaid(first!, 'the next process ends this one');
  assert.equal(await third!.stat('server.hot_restart_epoch'), 2);
  await third!.untilStat('server.parent_connections', 2);
  assert.match(await refusalOf(row, 3), /unable to bind domain socket with base_id=\d+, id=0, errno=98/);
  clients[0]!.destroy();
  assert.equal((await first!.exited).code, 0);
  // And that ends the second in its turn.
  await row.takeOver();
  await untilSaid(second!, 'the next process ends this one');
  assert.equal((await fetch(`http://${row.ip}:${PORTS.http}/`)).status, 200);
  for (const client of clients) client.destroy();
  assert.equal((await second!.exited).code, 0);
});

test('a process of another version is refused by both sides', async (t) => {
  await using row = await RestartRow.open();
  await standIn(t, createServer(), row, { type: 'welcome', version: '0.9', generation: 1, runMs: 0 });
  assert.match(await refusalOf(row, 1), /hot restart version 0\.9 cannot take over from, or hand over to, 1\.0/);
});

test("a process takes over from nobody else's", { skip: WITHOUT_OTHERS }, async (t) => {
  await using row = await RestartRow.open();
  const server = createServer();
  asNobody(() => server.listen(nameOf(row, 0)));
  await standIn(t, server, row, { type: 'welcome', version: '1.0', generation: 1, runMs: 0 });
  assert.match(await refusalOf(row, 1), /the process at @proxy_domain_socket_parent_\d+ belongs to another user/);
});

test("a process hands over to nobody else's", { skip: WITHOUT_OTHERS }, async () => {
  await using row = await RestartRow.open();
  const weir = await row.start();
  const stranger = asNobody(() => connect(nameOf(row, 0)));
  stranger.on('error', () => {});
  stranger.write(frameOf({ type: 'hello', version: '1.0', epoch: 1, id: 1 }));
  // It may be a reset that says so.
  await new Promise((resolve) => stranger.once('close', resolve));
  await untilSaid(weir, 'a process of another user has been refused');
  await row.takeOver();
});

test('a socket path without its folder is named, with what is wrong with it', async () => {
  await using row = await RestartRow.open();
  const socketPath = path.join(row.folder, 'missing', 'row');
  const { code, stderr } = await runWeir(['--base-id', '7', '--socket-path', socketPath, '--config-yaml', '{}']);
  assert.equal(code, 1, stderr);
  assert.match(
    stderr,
    /unable to bind domain socket .*\/missing\/row_parent_70: EACCES; its folder has to be there and writable \(see --socket-path option\)/,
  );
});

test('a process serves on that sees another fail before that has taken over', async () => {
  await using row = await RestartRow.open();
  const weir = await row.start();
  const place = ['--base-id', String(row.baseId), '--restart-epoch', '1'];
  const { code, stderr } = await runWeir([...place, '--config-yaml', '{ clusters: [] }']);
  assert.equal(code, 1, stderr);
  await untilSaid(weir, 'the process of restart epoch 1 starts, to take over from epoch 0');
  await untilSaid(weir, 'the next process is gone before it has begun to take over');
  assert.equal((await fetch(`http://${row.ip}:${PORTS.http}/`)).status, 200);
  // The sockets of both names are free again.
  await row.takeOver();
});

test('a place whose name is too long for a socket is refused with the length that it may have', async () => {
  const socketPath = `/tmp/${'p'.repeat(93)}`;
  const refused = await runWeir(['--base-id', '7', '--socket-path', socketPath, '--config-yaml', '{}']);
  assert.equal(refused.code, 1);
  const text = `socket-path '${socketPath}' is too long: it may have 97 bytes, which are 107 with '_parent_70' behind it, and has 98`;
  assert.ok(refused.stderr.includes(text), refused.stderr);
  // None of the ids would do.
  const dynamic = ['--use-dynamic-base-id', '--socket-path', `/tmp/${'p'.repeat(103)}`, '--config-yaml', '{}'];
  assert.match((await runWeir(dynamic)).stderr, /socket-path '.*' is too long/);
});
