// The examples whose proxies ask others about requests, as they stand: each does what its first lines promise.

import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { it } from 'node:test';
import { CertificateFolder } from '../../support/certificates.ts';
import { runProgram } from '../../support/child-process.ts';
import { OtlpCollector } from '../../support/collectors.ts';
import { eventually, untilEqual } from '../../support/eventually.ts';
import { portOf, startExample } from '../../support/examples.ts';
import { OK, OVER_LIMIT, RateLimitService } from '../../support/rate-limit-service.ts';
import { curveSigner, keySet, tokenOf } from '../../support/tokens.ts';
import type { WeirProcess } from '../../support/weir-process.ts';
import { unusedPort } from '../../support/wire.ts';

/** Kinds of spans. */
const [SERVER, CLIENT] = [2, 3];

it('jwt.yaml: who has a token gets in by name, and changes something only with one for that', async (t) => {
  const seen: IncomingHttpHeaders[] = [];
  const bank = createServer((message, response) => {
    seen.push(message.headers);
    response.end('bank');
  });
  const signer = curveSigner('ES256');
  const accounts = createServer((_, response) => response.end(keySet(signer)));
  const ports = { 9090: await portOf(t, bank), 9191: await portOf(t, accounts) };
  await using weir = await startExample('jwt.yaml', ports);
  const url = `http://127.0.0.1:${(await weir.listeners()).get('web')!.port}`;
  const exp = Math.floor(Date.now() / 1000) + 600;
  const bearer = (aud: string): string =>
    `Bearer ${tokenOf(signer, { iss: 'https://accounts.example.com', sub: 'ada', aud, exp })}`;
  const ask = async (path: string, method: string, authorization: string): Promise<number> => {
    const headers = { authorization, 'x-user': 'root', connection: 'close' };
    const response = await fetch(`${url}${path}`, { method, headers });
    await response.text();
    return response.status;
  };
  assert.equal(await ask('/account', 'GET', bearer('bank')), 200);
  assert.deepEqual([seen[0]!['x-user'], seen[0]!.authorization], ['ada', undefined]);
  assert.equal(await ask('/account', 'GET', ''), 401);
  assert.deepEqual(
    [await ask('/account', 'POST', bearer('bank')), await ask('/account', 'POST', bearer('bank-write'))],
    [403, 200],
  );
  assert.equal(await ask('/pictures/1', 'GET', ''), 200);
});

it('rate-limit.yaml: the service is told of keys, else of addresses, and says who goes too far', async (t) => {
  const catalogue = createServer((_, response) => response.end('catalogue'));
  await using service = await RateLimitService.start();
  const ports = { 9090: await portOf(t, catalogue), 9191: service.port };
  // Half a second is little where many programs run.
  await using weir = await startExample('rate-limit.yaml', ports, undefined, { 'timeout: 0.5s': 'timeout: 30s' });
  const url = `http://127.0.0.1:${(await weir.listeners()).get('web')!.port}`;
  const ask = async (path: string) =>
    await fetch(`${url}${path}`, { headers: { 'x-api-key': 'tulip', connection: 'close' } });
  service.answer = OK;
  assert.equal((await ask('/search')).status, 200);
  assert.deepEqual(service.last.descriptors, [
    {
      entries: [
        { key: 'generic_key', value: 'search' },
        { key: 'key', value: 'tulip' },
      ],
    },
  ]);
  assert.equal((await ask('/')).status, 200);
  assert.deepEqual(service.last.descriptors, [{ entries: [{ key: 'remote_address', value: '127.0.0.1' }] }]);
  const current_limit = { requests_per_unit: 5, unit: 1 };
  service.answer = { ...OVER_LIMIT, statuses: [{ code: 2, current_limit, duration_until_reset: { seconds: 1 } }] };
  const refused = await ask('/search');
  assert.deepEqual([refused.status, refused.headers.get('x-ratelimit-limit')], [429, '5, 5;w=1']);
  await service[Symbol.asyncDispose]();
  assert.equal((await ask('/search')).status, 200);
});

it('tracing.yaml: a request and each of its attempts have spans in the trace that it brings, and a collector that is away costs nothing', async (t) => {
  const seen: IncomingHttpHeaders[] = [];
  const shop = createServer((message, response) => {
    seen.push(message.headers);
    response.writeHead(seen.length === 1 ? 503 : 200).end('shop');
  });
  const port = await portOf(t, shop);
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const ask = async (weir: WeirProcess) => {
    const url = `http://127.0.0.1:${(await weir.listeners()).get('web')!.port}/cart`;
    const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
    const response = await fetch(url, { headers: { traceparent, 'x-tenant': 'ada', connection: 'close' } });
    await response.text();
    return response.status;
  };
  {
    await using collector = await OtlpCollector.start();
    await using weir = await startExample('tracing.yaml', { 9090: port, 4317: collector.port });
    assert.equal(await ask(weir), 200);
    await untilEqual(3, () => collector.spans.length, 'spans');
    const { spans } = collector;
    assert.ok(spans.every((span) => span.traceId === traceId));
    const whole = spans.find(({ kind }) => kind === SERVER)!;
    assert.deepEqual([whole.parentId, whole.name, whole.tags.tenant], ['b7ad6b7169203331', 'shop', 'ada']);
    const attempts = spans.filter(({ kind }) => kind === CLIENT);
    assert.deepEqual(
      attempts.map(({ parentId, tags }) => [parentId, tags['http.status_code'], tags['retry.count']]),
      [
        [whole.spanId, '503', undefined],
        [whole.spanId, '200', '1'],
      ],
    );
    assert.deepEqual(
      seen.map(({ traceparent }) => traceparent),
      attempts.map(({ spanId }) => `00-${traceId}-${spanId}-01`),
    );
    // Lines are written when there are many, or at the end.
    const { stdout } = await weir.stop();
    assert.match(stdout, new RegExp(`^GET /cart 200 \\d+ trace=${traceId}$`, 'm'));
  }
  await using lonely = await startExample('tracing.yaml', { 9090: port, 4317: await unusedPort() });
  assert.equal(await ask(lonely), 200);
});

it('forward-proxy.yaml: users reach the sites of the lists, HTTPS through a tunnel, and nothing else', async (t) => {
  using folder = new CertificateFolder();
  const { certificate: cert, key, certificatePath } = await folder.make('localhost', { altNames: 'DNS:localhost' });
  const seen: IncomingHttpHeaders[] = [];
  const site = createServer((message, response) => {
    seen.push(message.headers);
    response.end('site');
  });
  const secured = createHttpsServer({ cert, key }, (_, response) => response.end('secured'));
  const [port, securedPort] = [await portOf(t, site), await portOf(t, secured)];
  const domains = { '*.example.org:443': `localhost:${securedPort}`, '*.example.org': `localhost:${port}` };
  await using weir = await startExample('forward-proxy.yaml', {}, undefined, domains, [
    '--file-flush-interval-msec',
    '50',
  ]);
  const address = `127.0.0.1:${(await weir.listeners()).get('way-out')!.port}`;
  const ask = async (user: string, url: string): Promise<string> => {
    const answer = ['-o', '-', '-w', ' %{http_connect} %{http_code}', '--max-time', '30'];
    const { stdout } = await runProgram('curl', [
      '-s',
      ...answer,
      '--cacert',
      certificatePath,
      '-x',
      `http://${user}${address}`,
      url,
    ]);
    return stdout.trim();
  };
  const [plain, tunnelled] = [`http://localhost:${port}/`, `https://localhost:${securedPort}/`];
  assert.equal(await ask('ada:change-me@', plain), 'site 000 200');
  assert.deepEqual([seen[0]!['proxy-authorization'], seen[0]!['x-user']], [undefined, undefined]);
  assert.equal(await ask('ada:change-me@', tunnelled), 'secured 200 200');
  assert.match(await ask('ada:guess@', plain), / 000 401$/);
  assert.match(await ask('', tunnelled), /^401 000$/);
  const lookups = () => weir.stat('dns_cache.outside.dns_query_attempt');
  const before = await lookups();
  assert.equal(await ask('ada:change-me@', 'http://elsewhere.test/'), 'not from here\n 000 403');
  // Tunnels lead to the port of HTTPS alone.
  assert.equal(await ask('ada:change-me@', 'https://localhost:1/'), '403 000');
  assert.equal(await lookups(), before);
  await eventually(() => weir.output.stdout.includes(`ada CONNECT localhost:1 403`), 'lines of the access log');
  assert.match(weir.output.stdout, new RegExp(`^ada GET localhost:${port} 200`, 'm'));
});
