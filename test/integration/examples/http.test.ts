// The examples of HTTP as they stand: each does what its first lines promise, with servers of the test behind it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request, type Server } from 'node:http';
import { it, type TestContext } from 'node:test';
import { WebSocket, WebSocketServer } from 'ws';
import { untilEqual } from '../../support/eventually.ts';
import { portOf, startExample } from '../../support/examples.ts';
import type { WeirProcess } from '../../support/weir-process.ts';

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Answers with its name, and what it was asked. */
function named(name: string, seen: IncomingHttpHeaders[] = []): Server {
  return createServer((message, response) => {
    seen.push(message.headers);
    message.resume();
    response.end(`${name} ${message.method} ${message.url}`);
  });
}

async function listenerOf(weir: WeirProcess): Promise<number> {
  return (await weir.listeners()).get('web')!.port;
}

async function ask(
  port: number,
  path = '/',
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false }).end();
  const [response] = await once(sent, 'response');
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return { status: response.statusCode, headers: response.headers, text: Buffer.concat(parts).toString() };
}

/** A gauge or counter, as /stats has it. */
async function stat(weir: WeirProcess, name: string): Promise<number> {
  const text = await (await fetch(`${weir.adminUrl}/stats?filter=^${name}$`)).text();
  return Number(/: (\d+)/.exec(text)?.[1] ?? 0);
}

async function start(t: TestContext, name: string, servers: Readonly<Record<number, Server>>, more = {}) {
  const ports: Record<string, number> = {};
  for (const [port, server] of Object.entries(servers)) ports[port] = await portOf(t, server);
  return await startExample(name, ports, undefined, more);
}

it('front-proxy.yaml: two services by path, one of them asked whether it is well', async (t) => {
  await using weir = await start(t, 'front-proxy.yaml', {
    9090: named('orders'),
    9092: named('orders'),
    9091: named('pages'),
  });
  const port = await listenerOf(weir);
  assert.equal((await ask(port, '/orders/7?x')).text, 'orders GET /v1/orders/7?x');
  assert.equal((await ask(port, '/ordersheet')).text, 'pages GET /ordersheet');
  const line = /^GET \/orders\/7\?x 200 - \d+ ms by orders$/m;
  await untilEqual(true, () => line.test(weir.output.stdout), 'a line of the log');
  assert.ok((await stat(weir, 'cluster.orders.health_check.success')) > 0);
});

it('front-proxy.yaml: a host that is not well is not asked', async (t) => {
  const ill = createServer((message, response) => {
    response.statusCode = message.url === '/health' ? 500 : 200;
    response.end('ill');
  });
  await using weir = await start(t, 'front-proxy.yaml', { 9090: ill, 9092: named('well'), 9091: named('pages') });
  await untilEqual(1, () => stat(weir, 'cluster.orders.membership_healthy'), 'one that is well');
  const port = await listenerOf(weir);
  for (let at = 0; at < 4; at += 1) assert.equal((await ask(port, '/orders')).text, 'well GET /v1/orders');
});

it('websocket.yaml: upgrades where the route has them, and nowhere else', async (t) => {
  const server = named('page');
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => socket.on('message', (text) => socket.send(`heard ${String(text)}`)));
  t.after(() => sockets.close());
  await using weir = await start(t, 'websocket.yaml', { 9090: server });
  const port = await listenerOf(weir);
  const socket = new WebSocket(`ws://127.0.0.1:${port}/live`);
  await once(socket, 'open');
  socket.send('hello');
  const [heard] = await once(socket, 'message');
  assert.equal(String(heard), 'heard hello');
  socket.terminate();
  const refused = new WebSocket(`ws://127.0.0.1:${port}/elsewhere`);
  const [error] = await once(refused, 'error');
  assert.match(String(error), /403/);
  assert.equal((await ask(port, '/live')).text, 'page GET /live');
});

it('faults.yaml: by header, by the runtime', async (t) => {
  await using weir = await start(
    t,
    'faults.yaml',
    { 9090: named('stock') },
    { 'fixed_delay: 2s': 'fixed_delay: 0.01s' },
  );
  const port = await listenerOf(weir);
  const aborted = await ask(port, '/', { headers: { 'x-envoy-fault-abort-request': '507' } });
  assert.equal(aborted.status === 507 || aborted.status === 503, true);
  const turn = async (percent: number): Promise<void> => {
    const url = `${weir.adminUrl}/runtime_modify?fault.http.abort.abort_percent=${percent}`;
    assert.equal((await fetch(url, { method: 'POST' })).status, 200);
  };
  await turn(100);
  await untilEqual(503, async () => (await ask(port)).status, 'every request fails');
  await turn(0);
  await untilEqual(200, async () => (await ask(port)).status, 'none fails');
});

it('ext-authz.yaml: the guard names the user, turns others away, and nobody gets in without it', async (t) => {
  const seen: IncomingHttpHeaders[] = [];
  const guard = createServer((message, response) => {
    if (message.headers.authorization === 'Bearer tulip') response.setHeader('x-user', 'ada');
    else response.writeHead(401, { 'www-authenticate': 'Bearer' });
    response.end();
  });
  await using weir = await start(t, 'ext-authz.yaml', { 9090: named('bank', seen), 9191: guard });
  const port = await listenerOf(weir);
  const refused = await ask(port, '/account');
  assert.deepEqual([refused.status, refused.headers['www-authenticate']], [401, 'Bearer']);
  assert.equal((await ask(port, '/account', { headers: { authorization: 'Bearer tulip' } })).text, 'bank GET /account');
  assert.equal(seen[0]!['x-user'], 'ada');
  guard.close();
  guard.closeAllConnections();
  assert.equal((await ask(port, '/account', { headers: { authorization: 'Bearer tulip' } })).status, 503);
  assert.equal((await ask(port, '/pictures/1')).status, 200);
});

it('rbac.yaml: reading for all, writing for the office, administration from here, and rules that are tried', async (t) => {
  await using weir = await start(t, 'rbac.yaml', { 9090: named('articles') });
  const port = await listenerOf(weir);
  const status = async (method: string, path: string): Promise<number> => (await ask(port, path, { method })).status;
  assert.deepEqual([await status('GET', '/articles'), await status('POST', '/articles')], [200, 403]);
  assert.deepEqual([await status('GET', '/admin'), await status('POST', '/admin/users')], [200, 200]);
  assert.equal(await status('GET', '/drafts/1'), 200);
  await untilEqual(1, () => stat(weir, 'http.web.rbac.shadow_denied'), 'what would be refused');
});

it('local-rate-limit.yaml: five searches by one key, and others beside it', async (t) => {
  await using weir = await start(t, 'local-rate-limit.yaml', { 9090: named('catalogue') });
  const port = await listenerOf(weir);
  const search = async (key: string): Promise<Answer> => ask(port, '/search', { headers: { 'x-api-key': key } });
  for (let at = 0; at < 5; at += 1) assert.equal((await search('tulip')).status, 200);
  const { status, headers } = await search('tulip');
  assert.deepEqual([status, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']], [429, '5', '0']);
  assert.equal((await search('rose')).status, 200);
  assert.equal((await ask(port)).status, 200);
});

it('mirroring.yaml: the new version sees a share of the requests, and the old one serves', async (t) => {
  const seen: IncomingHttpHeaders[] = [];
  await using weir = await start(t, 'mirroring.yaml', { 9090: named('old'), 9091: named('new', seen) });
  const port = await listenerOf(weir);
  for (let at = 0; at < 200; at += 1) assert.equal((await ask(port)).text, 'old GET /');
  await untilEqual(true, () => seen.length > 0, 'a copy');
  assert.ok(seen.length < 100, String(seen.length));
  assert.equal(seen[0]!.host, `127.0.0.1-shadow:${port}`);
});

it('canary.yaml: a share for the new version, and testers who choose it', async (t) => {
  await using weir = await start(t, 'canary.yaml', { 9090: named('old'), 9091: named('new') });
  const port = await listenerOf(weir);
  const counts = { old: 0, new: 0 };
  for (let at = 0; at < 400; at += 1) {
    const { headers, text } = await ask(port);
    const version = headers['x-version'] as 'old' | 'new';
    assert.equal(text, `${version} GET /`);
    counts[version] += 1;
  }
  assert.ok(counts.new > 0 && counts.new < counts.old, JSON.stringify(counts));
  const tester = await ask(port, '/', { headers: { 'x-canary': 'yes' } });
  assert.deepEqual([tester.text, tester.headers['x-version']], ['new GET /', 'new']);
});

it('sticky-sessions.yaml: whoever comes back gets the host of the first visit', async (t) => {
  await using weir = await start(t, 'sticky-sessions.yaml', { 9090: named('a'), 9091: named('b'), 9092: named('c') });
  const port = await listenerOf(weir);
  const hosts = new Set<string>();
  for (let visitor = 0; visitor < 30; visitor += 1) {
    const { headers, text } = await ask(port);
    const [cookie] = headers['set-cookie']![0]!.split(';');
    assert.match(headers['set-cookie']![0]!, /^seat="?\w+"?; Max-Age=3600; Path=\/; HttpOnly$/);
    hosts.add(text);
    for (let visit = 0; visit < 3; visit += 1) {
      const again = await ask(port, '/', { headers: { cookie: cookie! } });
      assert.deepEqual([again.text, again.headers['set-cookie']], [text, undefined]);
    }
  }
  assert.equal(hosts.size, 3);
});

it('zones.yaml: the own zone serves, and the other one when it cannot', async (t) => {
  const [east, west] = [named('east'), named('west')];
  const ports = { 9090: await portOf(t, east), 9091: await portOf(t, west) };
  await using weir = await startExample('zones.yaml', ports, undefined, {}, ['--service-zone', 'east']);
  const port = await listenerOf(weir);
  for (let at = 0; at < 20; at += 1) assert.equal((await ask(port)).text, 'east GET /');
});

it('own-filter.yaml: keys of clients, by a module', async (t) => {
  const seen: IncomingHttpHeaders[] = [];
  await using weir = await start(t, 'own-filter.yaml', { 9090: named('api', seen) });
  const port = await listenerOf(weir);
  const refused = await ask(port);
  assert.deepEqual([refused.status, refused.text], [401, 'who are you?\n']);
  assert.equal((await ask(port, '/', { headers: { 'x-api-key': 'rose' } })).text, 'api GET /');
  assert.deepEqual([seen[0]!['x-client'], seen[0]!['x-api-key']], ['florist', undefined]);
  await untilEqual(1, () => stat(weir, 'http.web.api-key.refused'), 'a count');
});
