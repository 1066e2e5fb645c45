// Responses that are kept and given to others, through the whole proxy: what is, for how long, and who gets it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { runProgram } from '../support/child-process.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { eventually, untilEqual } from '../support/eventually.ts';

const SIMPLE = 'type.googleapis.com/envoy.extensions.http.cache.simple_http_cache.v3.SimpleHttpCacheConfig';
const LONG = { 'cache-control': 'max-age=1000' };

type Fields = Readonly<Record<string, string>>;
type Script = (message: IncomingMessage) => {
  isCut?: boolean;
  /** The answer ends behind that, without a length. */
  held?: Promise<void>;
  status?: number;
  headers?: OutgoingHttpHeaders;
  body?: string | Buffer;
};

const cacheOf = (fields: JsonObject = {}): JsonObject =>
  filterOf('cache.v3.CacheConfig', { typed_config: { '@type': SIMPLE }, ...fields });

describe('the cache filter', () => {
  let server: Server;
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  /** What the upstream was asked, each with its body. */
  let asked: IncomingMessage[] = [];
  let script: Script = () => ({});
  /** A path that no other test has used. */
  let path = '';
  let tests = 0;

  before(async () => {
    server = createServer((message, response) => {
      asked.push(message);
      const { isCut = false, held, status = 200, headers = {}, body = '' } = script(message);
      message.resume().on('end', () => {
        response.writeHead(status, headers);
        if (isCut) response.write(body, () => response.socket!.destroy());
        if (isCut) return;
        if (held !== undefined) {
          response.write(body);
          held.then(() => response.end());
          return;
        }
        response.end(status === 304 ? undefined : body);
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const edits = { request_headers_to_add: [] };
    const gate = filterOf('header_mutation.v3.HeaderMutation', {
      mutations: { response_mutations: [{ append: { header: { key: 'x-behind', value: '1' } } }] },
    });
    const front = filterOf('header_mutation.v3.HeaderMutation', {
      mutations: { response_mutations: [{ append: { header: { key: 'x-front', value: '1' } } }] },
    });
    const routes = [
      {
        match: { prefix: '/off' },
        route: { cluster: 'web' },
        typed_per_filter_config: {
          'envoy.filters.http.cache': {
            '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig',
            disabled: true,
          },
        },
      },
      { match: { prefix: '/', headers: [{ name: 'x-other', present_match: true }] }, route: { cluster: 'other' } },
      routeTo('/', {}, edits),
    ];
    const mapper = {
      filter: { status_code_filter: { comparison: { op: 'GE', value: { default_value: 400, runtime_key: 'a' } } } },
      status_code: 599,
    };
    const listeners = [
      filteredListener(
        [
          { ...front, name: 'front' },
          cacheOf({ allowed_vary_headers: [{ exact: 'accept' }, { prefix: 'x-v' }] }),
          gate,
        ],
        routes,
        {
          listener: { name: 'main' },
          manager: { local_reply_config: { mappers: [mapper] } },
        },
      ),
      filteredListener(
        [
          cacheOf({
            ignore_request_cache_control_header: true,
            max_body_bytes: 40,
            key_creator_params: {
              exclude_host: true,
              query_parameters_excluded: [{ name: 'utm', present_match: true }],
            },
          }),
        ],
        [routeTo('/')],
        { listener: { name: 'own' } },
      ),
      filteredListener(
        [
          cacheOf({
            key_creator_params: { query_parameters_included: [{ name: 'id', string_match: { prefix: '1' } }] },
          }),
        ],
        [routeTo('/')],
        { listener: { name: 'included' } },
      ),
      filteredListener([filterOf('cache.v3.CacheConfig', { disabled: true })], [routeTo('/')], {
        listener: { name: 'disabled' },
      }),
    ];
    const { port } = server.address() as AddressInfo;
    proxy = await createProxy(
      bootstrapOf(listeners, [clusterAt('web', port), clusterAt('other', port)], { stats_flush_on_admin: true }),
    );
  });

  after(async () => {
    await proxy?.close();
    server?.closeAllConnections();
    server?.close();
  });

  beforeEach(() => {
    asked = [];
    tests += 1;
    path = `/t${tests}`;
  });

  const portOf = (listener: string): number => proxy.listeners.get(listener)!.port;

  async function send(target: string, headers: Fields = {}, { method = 'GET', listener = 'main', body = '' } = {}) {
    const sent = request({ port: portOf(listener), host: '127.0.0.1', path: target, method, agent: false, headers });
    sent.on('error', () => {}).end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const parts: Buffer[] = [];
    for await (const part of answer) parts.push(part as Buffer);
    return { status: answer.statusCode, body: Buffer.concat(parts).toString(), headers: answer.headers };
  }

  /** How often the upstream was asked for that many requests, and what came last. */
  async function twice(headers: Fields = {}, again: Fields = headers) {
    await send(path, headers);
    const last = await send(path, again);
    return { ...last, asked: asked.length };
  }

  const stat = (name: string): number => proxy.stats.value(`http.main.cache.${name}`) ?? 0;

  it('answers with what it has kept, its age and its fields, and asks nobody', async () => {
    const before = ['hit', 'miss', 'inserted'].map(stat);
    script = () => ({
      headers: { ...LONG, etag: '"a"', 'x-many': ['1', '2'], connection: 'x-own', 'x-own': 'gone', age: '7' },
      body: 'kept',
    });
    const first = await send(path);
    assert.deepEqual([first.status, first.body, first.headers.age], [200, 'kept', '7']);
    const { status, body, headers } = await send(path);
    assert.equal(asked.length, 1);
    assert.deepEqual([status, body, headers['content-length'], headers.etag], [200, 'kept', '4', '"a"']);
    assert.deepEqual([headers['x-many'], headers['x-own'], headers.date], ['1, 2', undefined, first.headers.date]);
    assert.ok(Number(headers.age) >= 7 && Number(headers.age) < 70, String(headers.age));
    // Filters behind have said theirs once, those before say it each time.
    assert.deepEqual([headers['x-behind'], headers['x-front']], ['1', '1']);
    const counts = ['hit', 'miss', 'inserted'].map(stat);
    assert.deepEqual(
      counts.map((count, at) => count - before[at]!),
      [1, 1, 1],
    );
  });

  it('collects no more of bodies on their way than it would keep, and all of it anew when their clients have left', async () => {
    const body = Buffer.alloc(4 * 1024 * 1024 - 65_536, 'x');
    const begin = async (target: string) => {
      const sent = request({ port: portOf('main'), host: '127.0.0.1', path: target, agent: false });
      sent.on('error', () => {}).end();
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      answer.on('error', () => {});
      let left = body.length;
      const hasAll = new Promise<void>((resolve) => {
        answer.on('data', ({ length }: Buffer) => {
          left -= length;
          if (left === 0) resolve();
        });
      });
      await hasAll;
      return { answer, sent };
    };
    const insertedBy = async (targets: readonly string[], isLeft: boolean): Promise<number> => {
      const before = stat('inserted');
      const { promise: held, resolve: release } = Promise.withResolvers<void>();
      script = () => ({ headers: LONG, body, held });
      const clients = await Promise.all(targets.map(begin));
      const ends = clients.map(({ answer }) => new Promise((resolve) => answer.once('close', resolve)));
      const areOver = (): Promise<void> =>
        untilEqual(0, () => proxy.stats.value('http.main.downstream_rq_active'), 'requests that run');
      if (isLeft) for (const { sent } of clients) sent.destroy();
      // A body that ends before the proxy has seen its client leave is whole.
      if (isLeft) await areOver();
      release();
      await Promise.all(ends);
      await areOver();
      return stat('inserted') - before;
    };
    const all = Array.from({ length: 9 }, (_, at) => `${path}/${at}`);
    // 32 MiB hold eight of them.
    assert.equal(await insertedBy(all, false), 8);
    assert.equal(await insertedBy(all.map((each) => `${each}/left`).slice(0, 8), true), 0);
    assert.equal(
      await insertedBy(
        all.map((each) => `${each}/again`),
        false,
      ),
      8,
    );
  });

  it('keeps what says for how long, and nothing else', async () => {
    const date = new Date().toUTCString();
    const later = new Date(Date.now() + 100_000).toUTCString();
    const kept: OutgoingHttpHeaders[] = [
      LONG,
      { 'cache-control': 's-maxage=100, max-age=0' },
      { 'cache-control': 'public, MAX-AGE="100"' },
      { date, expires: later },
    ];
    const refused: OutgoingHttpHeaders[] = [
      {},
      { 'cache-control': 'max-age=0' },
      { 'cache-control': 'max-age=100, max-age=0' },
      { 'cache-control': 'max-age=many' },
      { 'cache-control': 'no-store, max-age=100' },
      { 'cache-control': 'private, max-age=100' },
      { 'cache-control': 'private="x", max-age=100' },
      { 'cache-control': 's-maxage=0, max-age=100' },
      { date, expires: '0' },
      { date, expires: date },
      { ...LONG, vary: '*' },
      { ...LONG, vary: 'accept, cookie' },
      { ...LONG, 'set-cookie': 'a=b' },
    ];
    for (const [index, headers] of [...kept, ...refused].entries()) {
      asked = [];
      path = `/kept${index}`;
      script = () => ({ headers, body: 'a' });
      assert.equal((await twice()).asked, index < kept.length ? 1 : 2, JSON.stringify(headers));
    }
  });

  it('gives what is stale to all others while one asks, as long as the response says', async () => {
    const headers = { 'cache-control': 'max-age=10, stale-while-revalidate=1000', age: '50' };
    for (const etag of [{}, { etag: '"a"' }]) {
      path += '/s';
      asked = [];
      const before = stat('stale_while_revalidate');
      script = () => ({ headers: { ...headers, ...etag }, body: 'old' });
      await send(path);
      const { promise: held, resolve: release } = Promise.withResolvers<void>();
      script = () => ({ headers, body: 'new', held });
      const asking = send(path);
      await eventually(() => asked.length === 2, 'the upstream is asked');
      for (let other = 0; other < 2; other += 1) {
        const { status, body, headers: told } = await send(path);
        assert.deepEqual([status, body, Number(told.age) >= 50], [200, 'old', true]);
      }
      const impatient = send(path, { 'cache-control': 'max-age=5' });
      await eventually(() => asked.length === 3, 'who wants news has the upstream asked');
      release();
      assert.deepEqual([(await asking).body, (await impatient).body], ['new', 'new']);
      assert.deepEqual([asked.length, stat('stale_while_revalidate') - before], [3, 2]);
      script = () => ({ headers: LONG, body: 'newer' });
      assert.equal((await send(path)).body, 'newer', 'the next one asks');
    }
    // One whose client leaves lets others ask.
    script = () => ({ headers, body: 'old' });
    await send(`${path}/left`);
    script = () => ({ headers, body: 'new', held: new Promise(() => {}) });
    const leaving = request({ port: portOf('main'), host: '127.0.0.1', path: `${path}/left`, agent: false });
    leaving.on('error', () => {}).end();
    await once(leaving, 'response');
    leaving.destroy();
    script = () => ({ headers: LONG, body: 'newer' });
    await untilEqual('newer', async () => (await send(`${path}/left`)).body, 'what is given');
  });

  it('gives what is stale where the upstream fails, as long as the response or the request says', async () => {
    const control = 'max-age=10, stale-if-error=1000';
    const fails = (status: number) => () => ({ status, body: 'failed' });
    const stale = { 'cache-control': 'stale-if-error=1000' };
    let cases = 0;
    for (const [kept, asking, script2, expected] of [
      [control, {}, fails(500), 'old'],
      [control, {}, fails(502), 'old'],
      [control, {}, fails(503), 'old'],
      [control, {}, fails(504), 'old'],
      ['max-age=10', stale, fails(503), 'old'],
      ['max-age=0, stale-if-error=1000', {}, fails(503), 'old'],
      [control, {}, fails(501), 'failed'],
      [control, {}, fails(404), 'failed'],
      ['max-age=10', {}, fails(503), 'failed'],
      ['max-age=10, stale-if-error=20', {}, fails(503), 'failed'],
      ['max-age=10, stale-while-revalidate=1000', {}, fails(503), 'failed'],
      [`${control}, must-revalidate`, {}, fails(503), 'failed'],
      [`${control}, proxy-revalidate`, stale, fails(503), 'failed'],
      [control, { 'cache-control': 'no-cache' }, fails(503), 'failed'],
      [control, { 'cache-control': 'max-age=5' }, fails(503), 'failed'],
      [control, { 'cache-control': 'only-if-cached' }, fails(503), ''],
    ] as const) {
      for (const etag of [{}, { etag: '"a"' }]) {
        cases += 1;
        const target = `${path}/${cases}`;
        const before = stat('stale_if_error');
        script = () => ({ headers: { 'cache-control': kept, age: '50', ...etag }, body: 'old' });
        await send(target);
        script = script2;
        const { status, body, headers } = await send(target, asking);
        const what = `${kept} ${JSON.stringify(asking)} ${JSON.stringify(etag)}`;
        assert.equal(body, expected, what);
        assert.equal(status === 200, expected === 'old', what);
        assert.equal(stat('stale_if_error') - before, expected === 'old' ? 1 : 0, what);
        if (expected !== 'old') continue;
        assert.ok(Number(headers.age) >= 50, what);
        assert.deepEqual([headers['x-behind'], headers['x-front'], headers['content-length']], ['1', '1', '3'], what);
      }
    }
  });

  it('gives what is stale where the upstream cannot be reached', async () => {
    // By the status that local_reply_config leaves such replies.
    for (const [listener, status] of [
      ['included', 200],
      ['main', 599],
    ] as const) {
      script = () => ({ headers: { 'cache-control': 'max-age=10, stale-if-error=1000', age: '50' }, body: 'old' });
      await send(path, {}, { listener });
      script = (message) => {
        message.socket.destroy();
        return {};
      };
      const found = await send(path, {}, { listener });
      assert.equal(found.status, status);
      assert.equal(found.body === 'old', status === 200);
    }
  });

  it('keeps statuses that it understands, and rewords none', async () => {
    const statuses = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 451, 501];
    for (const status of [...statuses, 201, 202, 206, 302, 307, 400, 500, 503]) {
      asked = [];
      path = `/status${status}`;
      script = () => ({ status, headers: { ...LONG, location: '/x', 'content-type': 'text/x' } });
      const answer = await twice();
      assert.deepEqual(
        [answer.status, answer.headers.location, answer.headers['content-type']],
        [status, '/x', 'text/x'],
      );
      assert.equal(answer.asked, statuses.includes(status) ? 1 : 2, String(status));
    }
  });

  it('lets requests say what they take', async () => {
    script = () => ({ headers: LONG, body: 'a' });
    for (const headers of [
      { 'cache-control': 'no-cache' },
      { pragma: 'no-cache' },
      { 'cache-control': 'no-store' },
      { 'cache-control': 'min-fresh=2000' },
      { 'cache-control': 'max-age=0, max-stale' },
    ] as Fields[]) {
      asked = [];
      path += 'x';
      await send(path);
      if (headers['cache-control'] === 'max-age=0, max-stale') continue;
      await send(path, headers);
      assert.equal(asked.length, 2, JSON.stringify(headers));
    }
    asked = [];
    path += 'y';
    const unknown = await send(path, { 'cache-control': 'only-if-cached' });
    assert.deepEqual([unknown.status, asked.length], [599, 0]);
    await send(path);
    assert.equal((await send(path, { 'cache-control': 'only-if-cached' })).status, 200);
    assert.equal(asked.length, 1);
    path += 'z';
    await send(path, { 'cache-control': 'no-store' });
    await send(path);
    assert.equal(asked.length, 3);
    for (const cacheControl of ['no-cache', 'no-store']) {
      asked = [];
      assert.equal((await send(`${path}${cacheControl}`, {}, { listener: 'own' })).status, 200);
      await send(`${path}${cacheControl}`, { 'cache-control': cacheControl }, { listener: 'own' });
      assert.equal(asked.length, 1, 'clients have no say');
    }
  });

  it('tells clients apart that a response varies by', async () => {
    script = ({ headers }) => ({ headers: { ...LONG, vary: 'Accept, X-Variant' }, body: `${headers.accept}` });
    for (const round of [1, 2]) {
      for (const accept of ['text/html', 'text/plain']) {
        assert.equal((await send(path, { accept })).body, accept);
      }
      assert.equal(asked.length, 2, `round ${round}`);
    }
    await send(path, { accept: 'text/html', 'x-variant': '2' });
    assert.equal(asked.length, 3);
    await send(path, { accept: 'text/html', 'x-other': '2' });
    assert.equal(asked.length, 4, 'another cluster');
    await send(path, { accept: 'text/html', cookie: 'any' });
    assert.equal(asked.length, 4);
  });

  it('gives what came with credentials to others only where the response lets it', async () => {
    const authorization = 'Basic YTpi';
    script = () => ({ headers: LONG, body: 'own' });
    await send(path, { authorization });
    await send(path);
    await send(path, { authorization });
    assert.equal(asked.length, 3);
    for (const directive of ['public', 'must-revalidate', 's-maxage=100']) {
      asked = [];
      path += 'x';
      script = () => ({ headers: { 'cache-control': `max-age=100, ${directive}` }, body: 'shared' });
      assert.equal((await twice({ authorization })).asked, 1, directive);
    }
  });

  it('asks whether it still holds, and answers with what it has kept', async () => {
    const validators = { etag: '"v1"', 'last-modified': 'Sun, 06 Nov 1994 08:49:37 GMT' };
    script = ({ headers }) =>
      headers['if-none-match'] === '"v1"'
        ? {
            status: 304,
            headers: {
              'cache-control': 'max-age=0',
              etag: '"v1"',
              'x-new': '2',
              'content-length': 19,
              'content-type': 'no/matter',
            },
          }
        : {
            headers: { 'cache-control': 'max-age=0', ...validators, 'x-new': '1', 'content-type': 'text/a' },
            body: 'body of some length',
          };
    assert.equal((await send(path)).headers['x-new'], '1');
    const before = stat('validated');
    const again = await send(path, {
      'if-none-match': '"other"',
      'if-modified-since': 'Sun, 06 Nov 1990 08:49:37 GMT',
    });
    assert.deepEqual(
      [
        again.status,
        again.body,
        again.headers['x-new'],
        again.headers['content-type'],
        again.headers['content-length'],
        again.headers['x-front'],
      ],
      [200, 'body of some length', '2', 'text/a', '19', '1'],
    );
    const { headers } = asked[1]!;
    assert.deepEqual(
      [headers['if-none-match'], headers['if-modified-since'], headers.range],
      ['"v1"', validators['last-modified'], undefined],
    );
    const same = await send(path, { 'if-none-match': '"x", W/"v1"' });
    assert.deepEqual([same.status, same.body, same.headers.etag], [304, '', '"v1"']);
    const part = await send(path, { range: 'bytes=5-6' });
    assert.deepEqual(
      [part.status, part.body, part.headers['content-range'], part.headers['content-length']],
      [206, 'of', 'bytes 5-6/19', '2'],
    );
    const head = await send(path, {}, { method: 'HEAD' });
    assert.deepEqual([head.status, head.body, head.headers['content-length']], [200, '', '19']);
    assert.equal(asked.length, 5);
    assert.equal(stat('validated') - before, 4);
    script = () => ({ headers: { ...LONG, etag: '"v2"' }, body: 'new' });
    const failed = stat('failed_validation');
    assert.equal((await send(path)).body, 'new');
    assert.equal((await send(path)).body, 'new');
    assert.equal(asked.length, 6);
    assert.equal(stat('failed_validation') - failed, 1);
  });

  it('is fresh again for as long as a 304 says', async () => {
    script = ({ headers }) =>
      headers['if-none-match'] === undefined
        ? { headers: { 'cache-control': 'no-cache', etag: '"a"' }, body: 'a' }
        : { status: 304, headers: { 'cache-control': 'max-age=100' } };
    await send(path);
    assert.equal((await send(path)).body, 'a');
    assert.equal((await send(path)).body, 'a');
    assert.equal(asked.length, 2);
  });

  it('answers conditions and ranges of what is fresh by itself', async () => {
    const modified = 'Sun, 06 Nov 1994 08:49:37 GMT';
    script = () => ({
      headers: { ...LONG, etag: 'W/"a"', 'last-modified': modified, 'content-type': 'text/a' },
      body: '0123456789',
    });
    await send(path);
    const cases: [Fields, number, string, string?][] = [
      [{ 'if-none-match': '"a"' }, 304, ''],
      [{ 'if-none-match': '*' }, 304, ''],
      [{ 'if-none-match': '"b"', 'if-modified-since': modified }, 200, '0123456789'],
      [{ 'if-modified-since': modified }, 304, ''],
      [{ 'if-modified-since': 'Sun, 06 Nov 1993 08:49:37 GMT' }, 200, '0123456789'],
      [{ 'if-modified-since': 'yesterday' }, 200, '0123456789'],
      [{ range: 'bytes=0-0' }, 206, '0', 'bytes 0-0/10'],
      [{ range: 'bytes=8-100' }, 206, '89', 'bytes 8-9/10'],
      [{ range: 'bytes=-3' }, 206, '789', 'bytes 7-9/10'],
      [{ range: 'bytes=-30' }, 206, '0123456789', 'bytes 0-9/10'],
      [{ range: 'bytes=4-' }, 206, '456789', 'bytes 4-9/10'],
      [{ range: 'bytes=10-' }, 416, '', 'bytes */10'],
      [{ range: 'bytes=-0' }, 416, '', 'bytes */10'],
      [{ range: 'bytes=5-4' }, 200, '0123456789'],
      [{ range: 'bytes=0-1,3-4' }, 200, '0123456789'],
      [{ range: 'lines=0-1' }, 200, '0123456789'],
      [{ range: 'bytes=0-1', 'if-none-match': '"a"' }, 304, ''],
    ];
    for (const [headers, status, body, range] of cases) {
      const answer = await send(path, headers);
      assert.deepEqual(
        [answer.status, answer.body, answer.headers['content-range']],
        [status, body, range],
        JSON.stringify(headers),
      );
    }
    const head = await send(path, { range: 'bytes=0-1' }, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers['content-length'], head.body], [200, '10', '']);
    assert.equal(asked.length, 1);
    for (const name of ['if-match', 'if-range', 'if-unmodified-since'])
      await send(path, { [name]: '"a"', range: 'bytes=0-1' });
    assert.equal(asked.length, 4, 'the upstream judges');
  });

  it('forgets what a request may have changed, unless that failed', async () => {
    for (const [method, status, count] of [
      ['POST', 200, 3],
      ['PUT', 204, 3],
      ['DELETE', 303, 3],
      ['PATCH', 400, 2],
      ['POST', 503, 2],
      ['OPTIONS', 200, 2],
    ] as const) {
      asked = [];
      path += 'x';
      script = (message) => (message.method === 'GET' ? { headers: LONG, body: 'a' } : { status });
      await send(path);
      await send(path, {}, { method });
      await send(path);
      assert.equal(asked.length, count, `${method} ${status}`);
    }
  });

  it('keeps no answer to HEAD, to a GET with a body, none that is cut short, and none that is too long', async () => {
    script = () => ({ headers: LONG, body: 'a' });
    await send(path, {}, { method: 'HEAD' });
    await send(path);
    assert.equal(asked.length, 2);
    await send(path, { 'content-length': '1' }, { body: 'b' });
    assert.equal(asked.length, 3);
    asked = [];
    script = () => ({ isCut: true, headers: { ...LONG, 'content-length': 100 }, body: 'a' });
    await assert.rejects(send(`${path}cut`));
    script = () => ({ headers: LONG, body: 'whole' });
    assert.equal((await send(`${path}cut`)).body, 'whole');
    asked = [];
    for (const chunked of [false, true]) {
      script = () => ({
        headers: { ...LONG, ...(chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': 41 }) },
        body: 'x'.repeat(41),
      });
      for (const _ of [1, 2]) await send(`${path}${chunked}`, {}, { listener: 'own' });
    }
    assert.equal(asked.length, 4);
    script = () => ({ headers: { ...LONG, 'transfer-encoding': 'chunked' }, body: 'y'.repeat(40) });
    for (const _ of [1, 2]) assert.equal((await send(`${path}ten`, {}, { listener: 'own' })).body, 'y'.repeat(40));
    assert.equal(asked.length, 5);
  });

  it('goes by scheme, host and query as far as it is told to', async () => {
    script = ({ url, headers }) => ({ headers: LONG, body: `${headers.host}${url}` });
    const ask = async (query: string, host: string, listener: string) =>
      (await send(`${path}${query}`, { host }, { listener })).body;
    for (const query of ['', '?a=1', '?a=2', '?a=1&utm=2']) {
      assert.equal(await ask(query, 'a.example', 'main'), `a.example${path}${query}`);
      assert.equal(await ask(query, 'b.example', 'main'), `b.example${path}${query}`);
    }
    assert.equal(asked.length, 8);
    assert.equal(await ask('', 'A.EXAMPLE', 'main'), `a.example${path}`);
    await send(path, { host: 'a.example', 'x-forwarded-proto': 'https' });
    assert.equal(asked.length, 9);
    assert.equal(await ask('?a=1', 'a.example', 'own'), `a.example${path}?a=1`);
    for (const query of ['?a=1&utm=2', '?utm&a=1'])
      assert.equal(await ask(query, 'b.example', 'own'), `a.example${path}?a=1`);
    assert.equal(await ask('?a=1', 'a.example', 'included'), `a.example${path}?a=1`);
    assert.equal(await ask('?b&id=2', 'a.example', 'included'), `a.example${path}?a=1`);
    assert.equal(await ask('?b&id=12', 'a.example', 'included'), `a.example${path}?b&id=12`);
  });

  it('takes no part where a route or its configuration turns it off', async () => {
    script = () => ({ headers: LONG, body: 'a' });
    for (const _ of [1, 2]) await send('/off/a');
    for (const _ of [1, 2]) await send(path, {}, { listener: 'disabled' });
    assert.equal(asked.length, 4);
  });

  it('serves HTTP/2 and curl', async () => {
    script = () => ({ headers: { ...LONG, etag: '"c"' }, body: Buffer.alloc(300_000, 'c') });
    const url = `http://127.0.0.1:${portOf('main')}${path}`;
    const options = ['-sS', '-o', '/dev/null', '-w', '%{http_code} %{size_download}', url];
    assert.equal((await runProgram('curl', options)).stdout, '200 300000');
    assert.equal((await runProgram('curl', options)).stdout, '200 300000');
    assert.equal((await runProgram('curl', ['--http2-prior-knowledge', ...options])).stdout, '200 300000');
    assert.equal((await runProgram('curl', ['-r', '10-19', ...options])).stdout, '206 10');
    assert.equal((await runProgram('curl', ['-H', 'if-none-match: "c"', ...options])).stdout, '304 0');
    assert.equal(asked.length, 1);
  });
});
