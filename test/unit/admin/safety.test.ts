// Who may ask the admin interface for what, and what an answer may cost it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { NumericStatView, StatsView } from '../../../src/admin/index.ts';
import { statsFixture } from '../../support/stats.ts';
import { call, startAdmin } from './fixture.ts';

describe('paths that the configuration does not allow', () => {
  it('answer 403, whether or not they exist, and change nothing', async () => {
    const allowsPath = (asked: string): boolean => asked === '/ready' || asked.startsWith('/stats');
    await using server = await startAdmin({ allowsPath });
    assert.equal((await call(`${server.url}/ready`)).status, 200);
    assert.equal((await call(`${server.url}/stats?filter=live`)).body, 'server.live: 1\n');
    assert.deepEqual(await call(`${server.url}/clusters`), {
      status: 403,
      body: 'request to path /clusters not allowed',
    });
    assert.equal((await call(`${server.url}/nothing?x=/ready`)).body, 'request to path /nothing not allowed');
    assert.equal((await call(server.url, { path: 'http://localhost/help' })).status, 403);
    assert.equal((await call(`${server.url}/reset_counters`, { method: 'POST' })).status, 403);
    assert.equal(server.world.resets, 0);
  });
});

describe('a read-only admin interface', () => {
  it('refuses what changes the server, and shows the rest', async () => {
    await using server = await startAdmin({ isReadOnly: true });
    const refused = { status: 403, body: 'the admin interface is read-only\n' };
    for (const name of ['quitquitquit', 'reset_counters', 'logging', 'healthcheck/fail', 'stats/recentlookups/clear']) {
      assert.deepEqual(await call(`${server.url}/${name}`, { method: 'POST' }), refused, name);
    }
    assert.equal((await call(`${server.url}/reset_counters`)).status, 400);
    assert.deepEqual([server.world.quits, server.world.resets], [0, 0]);
    for (const name of ['', 'stats', 'clusters', 'server_info', 'help']) {
      assert.equal((await call(`${server.url}/${name}`)).status, 200, name);
    }
  });
});

describe('a page whose name was made to resolve to this machine', () => {
  const asked: [host: string, status: number][] = [
    ['evil.example', 403],
    ['evil.example:9901', 403],
    ['EVIL.EXAMPLE.', 403],
    ['127.0.0.1.evil.example', 403],
    ['localhost.evil.example', 403],
    ['127.0.0.1:9901', 200],
    ['[::1]:9901', 200],
    ['10.1.2.3', 200],
    ['LocalHost:1', 200],
    ['localhost.', 200],
    ['weir.localhost', 200],
    // Nobody in the internet has such a name.
    ['weir-admin', 200],
  ];
  for (const [host, status] of asked) {
    it(`gets ${status} as '${host}', for reading, too`, async () => {
      await using server = await startAdmin();
      const answer = await call(`${server.url}/ready`, { headers: { host } });
      assert.equal(answer.status, status, answer.body);
      if (status === 403) {
        assert.match(answer.body, /^host '.*' is not a name of this address; .*--admin-name\n$/);
        assert.match(server.world.records.at(-1)!.message, /^admin path "\/ready" refused: host '/);
      }
    });
  }

  it('may not take a name that looks like one that is allowed', async () => {
    await using server = await startAdmin({ names: ['Proxy.Internal'] });
    const as = async (host: string, method = 'GET'): Promise<number> =>
      (await call(`${server.url}/${method === 'GET' ? 'ready' : 'reset_counters'}`, { method, headers: { host } }))
        .status;
    assert.deepEqual(
      [await as('proxy.internal:80'), await as('PROXY.internal'), await as('localhost')],
      [200, 200, 200],
    );
    assert.deepEqual([await as('x.proxy.internal'), await as('proxy.internal.evil.example')], [403, 403]);
    assert.deepEqual([await as('proxy.internal', 'POST'), await as('other', 'POST')], [200, 403]);
  });

  it('is judged behind every binding where names are listed', async () => {
    await using server = await startAdmin({
      address: { kind: 'ip', ip: '0.0.0.0', port: 0 },
      names: ['proxy.internal'],
    });
    const { address } = server.admin;
    const url = `http://127.0.0.1:${address.kind === 'ip' ? address.port : 0}`;
    const as = async (host: string): Promise<number> => (await call(`${url}/ready`, { headers: { host } })).status;
    assert.deepEqual([await as('evil.example'), await as('proxy.internal'), await as('127.0.0.1')], [403, 200, 200]);
  });
});

describe('the binding of the admin interface', () => {
  it('is warned of when other machines may reach it', async () => {
    await using open = await startAdmin({ address: { kind: 'ip', ip: '0.0.0.0', port: 0 } });
    await using local = await startAdmin({ address: { kind: 'ip', ip: '127.0.0.2', port: 0 } });
    const warnings = (records: typeof open.world.records): readonly string[] =>
      records.filter(({ level }) => level === 'warning').map(({ message }) => message.replace(/:\d+/, ''));
    assert.deepEqual(warnings(open.world.records), [
      'the admin interface at 0.0.0.0 has no passwords, and other machines may reach it',
    ]);
    assert.deepEqual(warnings(local.world.records), []);
  });

  it('may be a socket of a mode, which nobody can connect to before it has it', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'weir-admin-'));
    try {
      const socketPath = path.join(folder, 'admin.sock');
      for (const mode of [0o600, 0o660]) {
        await using server = await startAdmin({ address: { kind: 'pipe', path: socketPath, mode } });
        assert.equal((await stat(socketPath)).mode & 0o777, mode);
        assert.equal((await call('http://localhost/ready', { socketPath })).body, 'LIVE\n');
        assert.deepEqual(
          server.world.records.filter(({ level }) => level === 'warning'),
          [],
        );
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('a client that says nothing more', () => {
  const cases: readonly (readonly [what: string, bytes: string, answer: RegExp])[] = [
    ['of the head of its request', 'GET /ready HTTP/1.1\r\nho', /^HTTP\/1\.1 408 Request Timeout\r\n/],
    [
      'of the body of its request',
      'POST /logging HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\na',
      /^HTTP\/1\.1 408 /,
    ],
    ['at all', '', /^$/],
    [
      'behind an answer',
      'GET /ready HTTP/1.1\r\nhost: localhost\r\n\r\n',
      /^HTTP\/1\.1 200 (?!.*408).*\r\n\r\nLIVE\n$/s,
    ],
  ];
  for (const [what, bytes, answer] of cases) {
    it(`${what} is ${what.startsWith('of') ? 'told so' : 'cut off'}`, async () => {
      await using server = await startAdmin({ limits: { mostLongAnswers: 2, stallMs: 200 } });
      const { address } = server.admin;
      const client = connect(address.kind === 'ip' ? address.port : 0, '127.0.0.1').setEncoding('utf8');
      client.write(bytes);
      let text = '';
      for await (const part of client) text += String(part);
      assert.match(text, answer);
    });
  }
});

describe('long answers', () => {
  const limits = { mostLongAnswers: 2, stallMs: 60_000 };

  it('are a few at once; others are told to come again', async () => {
    const release = Promise.withResolvers<void>();
    await using server = await startAdmin({ stats: await statsThatWait(release.promise), limits });
    const running = [call(`${server.url}/stats`), call(`${server.url}/stats`)];
    await until(() => server.world.flushes === 2);
    assert.deepEqual(await call(`${server.url}/stats?usedonly`), {
      status: 503,
      body: '2 long answers are under way; ask again later\n',
    });
    assert.equal((await call(`${server.url}/ready`)).status, 200);
    release.resolve();
    for (const { status } of await Promise.all(running)) assert.equal(status, 200);
    assert.equal((await call(`${server.url}/stats`)).status, 200);
  });

  it('do not count any more once their client is gone', async () => {
    await using server = await startAdmin({ stats: await statsThatWait(new Promise(() => {})), limits });
    const leavers = [request(`${server.url}/stats`), request(`${server.url}/stats`)];
    for (const leaver of leavers) {
      leaver.on('error', () => {}).end();
      const [response] = (await once(leaver, 'response')) as [IncomingMessage];
      response.on('error', () => {});
    }
    assert.equal((await call(`${server.url}/stats`)).status, 503);
    for (const leaver of leavers) leaver.destroy();
    await until(() => server.world.traffic.filter((event) => event === 'end 0').length === 2);
    const again = request(`${server.url}/stats`).on('error', () => {});
    again.end();
    const [response] = (await once(again, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, 200);
    response.on('error', () => {});
    again.destroy();
  });

  it('are cut off when their client takes nothing of them', async () => {
    await using server = await startAdmin({ stats: await manyStats(200_000), limits: { ...limits, stallMs: 300 } });
    const { address } = server.admin;
    const client = connect(address.kind === 'ip' ? address.port : 0, '127.0.0.1');
    client.on('error', () => {});
    client.write('GET /stats HTTP/1.1\r\nhost: x\r\n\r\n');
    await until(() => server.world.traffic.includes('end 0'));
    client.destroy();
  });

  it('may be silent for longer than that', async () => {
    const release = Promise.withResolvers<void>();
    const stallMs = 100;
    await using server = await startAdmin({
      stats: await statsThatWait(release.promise),
      limits: { ...limits, stallMs },
    });
    const asking = request(`${server.url}/stats`);
    asking.end();
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    await silence(response.socket, 5 * stallMs);
    release.resolve();
    response.resume();
    await once(response, 'end');
  });
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Ends when the socket has been open for the time. */
function silence(socket: Socket, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    socket.once('close', () => {
      clearTimeout(timer);
      reject(new Error('closed while it was silent'));
    });
  });
}

/** Stats of which the first come at once, and the others later. */
async function statsThatWait(released: Promise<void>): Promise<StatsView> {
  const { store } = statsFixture();
  const counter = (name: string): NumericStatView => ({ name, kind: 'counter', value: 1, isUsed: true });
  return Object.assign(Object.create(store) as StatsView, {
    histograms: () => store.histograms(),
    textReadouts: () => [],
    async *countersAndGauges() {
      yield Array.from({ length: 5000 }, (_, at) => counter(`first.${at}`));
      await released;
      yield [counter('last')];
    },
  });
}

async function manyStats(count: number): Promise<StatsView> {
  const { store } = statsFixture();
  return Object.assign(Object.create(store) as StatsView, {
    histograms: () => store.histograms(),
    textReadouts: () => [],
    async *countersAndGauges() {
      for (let at = 0; at < count; at += 1000) {
        yield Array.from({ length: 1000 }, (_, of) => ({
          name: `a.counter.with.a.name.that.fills.sockets.${at + of}`,
          kind: 'counter' as const,
          value: 1,
          isUsed: true,
        }));
      }
    },
  });
}
