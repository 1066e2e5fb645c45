// Where the admin server listens, and how it ends.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { Agent } from 'node:http';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { AdminServer, type AdminServerOptions, type RequestEnd, type StatsView } from '../../../src/admin/index.ts';
import { ANY_PORT, call, NO_STATS, startAdmin } from './fixture.ts';

describe('the address of the admin server', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'weir-admin-'));
  });
  after(() => rm(folder, { recursive: true }));

  it('is the real port where 0 was asked for, logged and written to a file', async () => {
    await using server = await startAdmin();
    const file = path.join(folder, 'address');
    await server.admin.writeAddressFile(file);
    assert.equal(await readFile(file, 'utf8'), server.url.slice('http://'.length));
    assert.deepEqual(
      server.world.records.map(({ message }) => message),
      [`admin address: ${server.url.slice(7)}`],
    );
    assert.notEqual(server.url, 'http://127.0.0.1:0');
  });

  it('is not fatal when its file cannot be written', async () => {
    await using server = await startAdmin();
    await server.admin.writeAddressFile(folder);
    const { level, message } = server.world.records.at(-1)!;
    assert.equal(`${level} ${message}`, `critical cannot open admin address output file ${folder} for writing.`);
  });

  it('is refused when something else has it', async () => {
    await using server = await startAdmin();
    const address = server.admin.address;
    await assert.rejects(startAdmin({ address }), {
      code: 'WEIR_ADMIN_LISTEN',
      message: new RegExp(`^cannot bind admin address '${server.url.slice(7)}': .*EADDRINUSE`),
    });
  });

  it('may be a unix socket, also over one that an earlier process left behind', async () => {
    const socketPath = path.join(folder, 'admin.sock');
    const left = createServer().listen(socketPath);
    await once(left, 'listening');
    await using server = await startAdmin({ address: { kind: 'pipe', path: socketPath, mode: 0o600 } });
    assert.deepEqual(await call('http://x/ready', { socketPath }), { status: 200, body: 'LIVE\n' });
    const headers = { host: 'any.name' };
    assert.equal((await call('http://x/reset_counters', { socketPath, method: 'POST', headers })).status, 200);
    assert.equal((await stat(socketPath)).mode & 0o777, 0o600);
    assert.equal(server.admin.address.kind, 'pipe');
    left.close();
  });

  it('may be in the abstract namespace', { skip: process.platform !== 'linux' }, async () => {
    const name = `weir-admin-${process.pid}`;
    await using server = await startAdmin({ address: { kind: 'pipe', path: `@${name}`, mode: 0 } });
    assert.deepEqual(await call('http://x/ready', { socketPath: `\0${name}` }), { status: 200, body: 'LIVE\n' });
    assert.equal(server.world.records.length, 1);
  });
});

describe('closing the admin server', () => {
  it('ends idle connections and may be repeated', async () => {
    const server = await startAdmin();
    const agent = new Agent({ keepAlive: true });
    await call(`${server.url}/ready`, { agent });
    await server.admin.close(60_000);
    await server.admin.close(60_000);
    await assert.rejects(call(`${server.url}/ready`), { code: 'ECONNREFUSED' });
    agent.destroy();
  });

  it('cuts off answers that nobody reads', async () => {
    const stats: StatsView = {
      ...NO_STATS,
      async *countersAndGauges() {
        const batch = Array.from({ length: 256 }, (_, i) => ({
          name: `c${i}`,
          kind: 'counter' as const,
          value: i,
          isUsed: true,
        }));
        while (true) yield batch;
      },
    };
    const ended = Promise.withResolvers<RequestEnd>();
    const none = () => {};
    const server = await startAdmin({
      stats,
      traffic: {
        connectionOpened: none,
        connectionClosed: none,
        connectionRefused: none,
        bytesMoved: none,
        requestStarted: none,
        requestEnded: ended.resolve,
      },
    });
    const { address } = server.admin;
    const client = connect(address.kind === 'ip' ? address.port : 0, '127.0.0.1');
    client.on('error', none);
    client.write('GET /stats HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(client, 'readable');
    await server.admin.close(1);
    client.destroy();
    assert.equal((await ended.promise).status, 0);
  });

  it('is possible before it has listened', async () => {
    await using server = await startAdmin();
    const { loggers } = server.world;
    const { clock, faults } = server.options;
    const unused = {} as AdminServerOptions;
    await new AdminServer({ ...unused, clock, faults, loggers, address: ANY_PORT }).close();
  });
});
