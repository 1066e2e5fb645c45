// The real program with fewer descriptors than clients want: whoever is there is served, others wait, and the operator
// always gets an answer.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { Agent, createServer, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it, type TestContext } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { limitDescriptors } from '../support/descriptor-limit.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const DESCRIPTORS = 200;
const CROWD = 300;
const WORKERS = 2;
const REQUEST = 'GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n';
const LISTENER = 'listener.main';
const ANY_PORT = socketAddress('127.0.0.1', 0);
/** What an operator asks of a proxy in trouble. */
const QUESTIONS = [
  ['GET', '/stats'],
  ['GET', '/clusters'],
  ['GET', '/server_info'],
  ['POST', '/healthcheck/fail'],
  ['POST', '/healthcheck/ok'],
  ['POST', '/logging?level=warning'],
] as const;

function bootstrapWith(route: JsonObject, accessLog: string, upstreamPort: number): string {
  const type = 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog';
  const filter = httpFilter({
    access_log: [{ name: 'file', typed_config: { '@type': type, path: accessLog } }],
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, ...route }] }] },
  });
  const endpoint = { endpoint: { address: socketAddress('127.0.0.1', upstreamPort) } };
  return JSON.stringify({
    admin: { address: ANY_PORT },
    stats_flush_interval: '0.02s',
    static_resources: {
      listeners: [listenerWith([filter], { address: ANY_PORT, stat_prefix: 'main' })],
      clusters: [{ name: 'web', load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] } }],
    },
  });
}

interface Running {
  readonly weir: WeirProcess;
  readonly port: number;
  readonly accessLog: string;
}

async function start(
  t: TestContext,
  { descriptorLimit = DESCRIPTORS, level = 'warning', route = {} as JsonObject, upstreamPort = 1 },
): Promise<Running> {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-descriptors-'));
  const accessLog = path.join(folder, 'access.log');
  const configYaml = bootstrapWith({ direct_response: { status: 200 }, ...route }, accessLog, upstreamPort);
  const args = ['--concurrency', String(WORKERS), '-l', level, '--file-flush-interval-msec', '10'];
  const weir = await startWeir({ configYaml, descriptorLimit, args });
  t.after(() => weir.stop());
  t.after(() => rmSync(folder, { recursive: true }));
  return { weir, port: (await weir.listeners()).get('main')!.port, accessLog };
}

async function crowdOf(t: TestContext, count: number, port: number): Promise<Socket[]> {
  const clients = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
  t.after(() => {
    for (const client of clients) client.destroy();
  });
  await Promise.all(clients.map((client) => once(client, 'connect')));
  return clients;
}

/** @param agent  that of a connection which is open already; without one each question opens its own. */
async function ask(weir: WeirProcess, method: string, target: string, agent?: Agent): Promise<number> {
  const asking = request(`${weir.adminUrl}${target}`, { method, agent: agent ?? false });
  asking.end();
  const [response] = await once(asking, 'response');
  await text(response);
  return response.statusCode;
}

async function expectAnswers(weir: WeirProcess, agent?: Agent): Promise<void> {
  for (const [method, target] of QUESTIONS) assert.equal(await ask(weir, method, target, agent), 200, target);
}

/** SIGUSR1 does its work: entries go to a new file. */
async function expectRotation({ weir, accessLog }: Running, client: WireClient): Promise<void> {
  await untilEqual(true, () => existsSync(accessLog), 'the access log');
  renameSync(accessLog, `${accessLog}.1`);
  process.kill(weir.pid, 'SIGUSR1');
  const look = async (): Promise<boolean> => {
    await expectService(client);
    return existsSync(accessLog);
  };
  await untilEqual(true, look, 'the new access log');
}

async function expectService(client: WireClient): Promise<void> {
  assert.match(await client.write(REQUEST).until('\r\n\r\n'), /^HTTP\/1\.1 200 /);
}

async function expectCleanEnd(weir: WeirProcess): Promise<void> {
  assert.equal(await weir.stat('server.worker_restarts'), 0);
  assert.equal(await weir.stat('server.contained_faults'), 0);
  const { code, stderr } = await weir.stop();
  assert.equal(code, 0, stderr);
}

describe('weir with fewer descriptors than clients', () => {
  for (const level of ['warning', 'debug']) {
    it(`lets clients wait and serves the others, logging at level ${level}`, async (t) => {
      const running = await start(t, { level });
      const { weir, port } = running;
      const early = new WireClient(port);
      await expectService(early);
      const crowd = await crowdOf(t, CROWD, port);
      // A worker may have paused more than once: a descriptor was free for a moment.
      const allPaused = async (): Promise<boolean> => {
        const paused = (await weir.stat(`${LISTENER}.downstream_cx_accept_paused`))!;
        const resumed = (await weir.stat(`${LISTENER}.downstream_cx_accept_resumed`))!;
        return paused - resumed === WORKERS;
      };
      await untilEqual(true, allPaused, 'the pause of all workers');
      assert.ok((await weir.stat(`${LISTENER}.downstream_cx_active`))! < DESCRIPTORS);
      await expectAnswers(weir);
      await expectService(early);
      await expectRotation(running, early);
      // Those that wait are accepted when others leave, all of them.
      for (const client of crowd.slice(0, CROWD / 2)) client.destroy();
      for (const client of crowd.slice(CROWD / 2)) client.destroy();
      await weir.untilStat(`${LISTENER}.downstream_cx_total`, CROWD + 1);
      await weir.untilStat(`${LISTENER}.downstream_cx_active`, 1);
      const paused = (await weir.stat(`${LISTENER}.downstream_cx_accept_paused`))!;
      await weir.untilStat(`${LISTENER}.downstream_cx_accept_resumed`, paused);
      assert.equal(await weir.stat(`${LISTENER}.downstream_cx_overload_reject`), 0);
      const late = new WireClient(port);
      await expectService(late);
      for (const { socket } of [early, late]) socket.destroy();
      await expectCleanEnd(weir);
    });
  }

  it('answers 503 to requests whose upstream connection would take the last descriptors', async (t) => {
    const held: ServerResponse[] = [];
    const upstream = createServer((_request, response) => void held.push(response)).listen(0, '127.0.0.1');
    t.after(() => upstream.closeAllConnections());
    t.after(() => upstream.close());
    await once(upstream, 'listening');
    const { port: upstreamPort } = upstream.address() as AddressInfo;
    const { weir, port } = await start(t, {
      route: { direct_response: null, route: { cluster: 'web', timeout: '0s' } },
      upstreamPort,
    });
    const clients = Array.from({ length: CROWD }, () => new WireClient(port));
    t.after(() => {
      for (const { socket } of clients) socket.destroy();
    });
    await weir.untilStat(`${LISTENER}.downstream_cx_accept_paused`, WORKERS);
    for (const client of clients) client.write(REQUEST);
    const answers = clients.map((client) => client.until('\r\n\r\n'));
    assert.match(await Promise.any(answers), /^HTTP\/1\.1 503 /);
    await expectAnswers(weir);
    assert.ok((await weir.stat('cluster.web.upstream_cx_connect_fail'))! > 0);
    for (const { socket } of clients) socket.destroy();
    await weir.untilStat(`${LISTENER}.downstream_cx_active`, 0);
    // Their requests may still be on their way to the upstream; a later one is answered.
    for (const response of held) response.destroy();
    upstream.removeAllListeners('request').on('request', (_request, response) => response.end());
    const late = new WireClient(port);
    await expectService(late);
    late.socket.destroy();
    await Promise.allSettled(answers);
    await expectCleanEnd(weir);
  });

  it('refuses clients of the admin interface before they take the last descriptors', async (t) => {
    const running = await start(t, { descriptorLimit: 100 });
    const { weir, port } = running;
    const client = new WireClient(port);
    await expectService(client);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    await expectAnswers(weir, agent);
    const crowd = Array.from({ length: 100 }, () => connect(Number(new URL(weir.adminUrl).port), '127.0.0.1'));
    t.after(() => {
      for (const operator of crowd) operator.destroy();
    });
    await Promise.race(crowd.map((refused) => once(refused.on('error', () => {}).resume(), 'close')));
    await expectAnswers(weir, agent);
    await expectRotation(running, client);
    client.socket.destroy();
    for (const operator of crowd) operator.destroy();
    await untilEqual(200, () => ask(weir, 'GET', '/ready').catch(() => 0), 'an answer over a new connection');
    assert.ok((await weir.stat('listener.admin.downstream_cx_overload_reject'))! > 0);
    agent.destroy();
    await expectCleanEnd(weir);
  });

  it('goes on when the system has none left at all', async (t) => {
    const running = await start(t, {});
    const { weir, port } = running;
    const client = new WireClient(port);
    await expectService(client);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    await expectAnswers(weir, agent);
    const former = limitDescriptors(weir.pid, 3);
    const waiting = await crowdOf(t, 3, port);
    process.kill(weir.pid, 'SIGUSR1');
    for (let round = 0; round < 10; round += 1) {
      await expectAnswers(weir, agent);
      await expectService(client);
    }
    limitDescriptors(weir.pid, former);
    await expectRotation(running, client);
    await weir.untilStat(`${LISTENER}.downstream_cx_active`, 1 + waiting.length);
    for (const other of waiting) other.destroy();
    client.socket.destroy();
    agent.destroy();
    assert.equal(await weir.stat('server.worker_restarts'), 0);
    assert.equal((await weir.stop()).code, 0);
  });
});
