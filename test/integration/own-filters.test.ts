// Filters that users write: given to createProxy, or modules that a bootstrap names; over real sockets, in worker threads.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import type {
  HttpFilterDefinition,
  HttpFilterFactory,
  ProxyOptions,
  Proxy as WeirProxy,
} from '../../src/library/index.ts';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, ConfigError, clusterAt, createProxy, WeirError } from '../support/embedded.ts';
import { filteredListener, routeTo } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';

const MODULE = 'type.googleapis.com/envoy.extensions.filters.http.module.v3.Module';
const PER_ROUTE = 'type.googleapis.com/envoy.extensions.filters.http.module.v3.ModulePerRoute';
const FOLDER = path.join(import.meta.dirname, 'own-filters');
const STAMP = path.join(FOLDER, 'stamp.mjs');

interface Echo {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

type Filters = NonNullable<ProxyOptions['httpFilters']>;

let upstream: Server;
let web: JsonObject;

before(async () => {
  upstream = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { url, headers } = request;
    response.end(JSON.stringify({ url, headers, body: Buffer.concat(parts).toString() }));
  });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  web = clusterAt('web', (upstream.address() as AddressInfo).port);
});

after(() => {
  upstream.close();
  upstream.closeAllConnections();
});

function own(name: string, config: JsonObject = {}, module?: string): JsonObject {
  return { name, typed_config: { '@type': MODULE, config, ...(module === undefined ? {} : { module }) } };
}

async function start(
  filters: readonly JsonObject[],
  httpFilters: Filters = {},
  options: ProxyOptions = {},
  routes: readonly JsonObject[] = [routeTo('/')],
): Promise<WeirProxy> {
  return createProxy(bootstrapOf([filteredListener(filters, routes)], [web]), { httpFilters, ...options });
}

/** A proxy whose one filter is this. */
async function run(create: HttpFilterFactory | HttpFilterDefinition, log: string[] = []): Promise<WeirProxy> {
  return start([own('my.filter')], { 'my.filter': create }, { logLevel: 'error', log: (line) => log.push(line) });
}

function urlOf(proxy: WeirProxy, path = '/'): string {
  return `${proxy.listeners.get('main')!.url}${path}`;
}

async function echo(proxy: WeirProxy, path = '/', init: RequestInit = {}): Promise<Echo> {
  const response = await fetch(urlOf(proxy, path), init);
  assert.equal(response.status, 200);
  return (await response.json()) as Echo;
}

describe('a module that a bootstrap names', () => {
  it('sees requests, changes them and their responses, and counts', async () => {
    await using proxy = await start([own('stamp', { word: 'hello' }, STAMP)]);
    const response = await fetch(urlOf(proxy, '/a?b'));
    assert.equal(response.headers.get('x-seen'), '200');
    const text = await response.text();
    assert.equal(text, text.toUpperCase());
    assert.match(text, /"X-STAMP":"HELLO GET \/A\?B"/);
    await untilEqual(1, () => proxy.stats.value('http.main.stamp.stamped') ?? 0, 'a count');
  });

  it('answers by itself', async () => {
    await using proxy = await start([own('stamp', { word: 'hello' }, STAMP)]);
    const response = await fetch(urlOf(proxy), { headers: { 'x-deny': '1' } });
    assert.equal(response.status, 403);
    assert.equal(response.headers.get('content-type'), 'text/x-no');
    assert.equal(response.headers.get('x-why'), 'denied');
    assert.equal(response.headers.get('x-seen'), '403');
    assert.equal(await response.text(), 'no\n');
  });

  it('hears what a route says to it', async () => {
    const said = { '@type': PER_ROUTE, config: { word: 'route' } };
    const routes = [{ ...routeTo('/r'), typed_per_filter_config: { stamp: said } }, routeTo('/')];
    await using proxy = await start([own('stamp', { word: 'hello' }, STAMP)], {}, {}, routes);
    assert.match(await (await fetch(urlOf(proxy, '/r'))).text(), /"X-STAMP":"ROUTE GET/);
    assert.match(await (await fetch(urlOf(proxy, '/'))).text(), /"X-STAMP":"HELLO GET/);
  });

  it('may be a URL, a path from the working directory, or CommonJS', async () => {
    const relative = `./${path.relative(process.cwd(), STAMP)}`;
    for (const module of [pathToFileURL(STAMP).href, relative]) {
      await using proxy = await start([own('stamp', { word: 'hello' }, module)]);
      assert.match(await (await fetch(urlOf(proxy))).text(), /"X-STAMP"/);
    }
    await using proxy = await start([own('c', {}, path.join(FOLDER, 'commonjs.cjs'))]);
    assert.equal((await echo(proxy)).headers['x-commonjs'], 'yes');
  });

  const wrong: readonly [what: string, filter: JsonObject, at: string, message: RegExp][] = [
    ['that is not there', own('a', {}, './nowhere.mjs'), 'module', /Cannot find module .*nowhere\.mjs/],
    ['with await outside of functions', own('a', {}, path.join(FOLDER, 'awaits.mjs')), 'module', /await outside/],
    ['that takes another config', own('a', { word: 3 }, STAMP), 'config', /word: expected a string/],
    ['that exports something else', own('a', {}, 'node:fs'), 'module', /create: expected a function, got undefined/],
    ['that nobody has given', own('a'), 'module', /no filter called "a" was given to createProxy/],
  ];
  for (const [what, filter, at, message] of wrong) {
    it(`${what} is a fault of the configuration`, async () => {
      const started = start([filter]);
      await assert.rejects(started, (error) => {
        assert.ok(error instanceof ConfigError);
        const [fault] = error.faults;
        assert.ok(fault!.path.endsWith(`http_filters[0].typed_config.${at}`), fault!.path);
        assert.match(fault!.message, message);
        return true;
      });
    });
  }
});

describe('a filter given to createProxy', () => {
  it('runs in the workers, with the config that the bootstrap has for it', async () => {
    const given: HttpFilterFactory = (config, context) => () => ({
      decodeHeaders(headers) {
        headers.set('x-config', JSON.stringify(config));
        headers.set('x-name', context.name);
      },
    });
    await using proxy = await start([own('first', { a: [1] }), own('second', { b: null })], {
      first: given,
      second: { create: given },
    });
    const { headers } = await echo(proxy);
    assert.deepEqual([headers['x-config'], headers['x-name']], ['{"b":null}', 'second']);
  });

  it('may be written as a method, and be async', async () => {
    await using proxy = await run({
      create() {
        return (stream) => ({
          async decodeHeaders(headers) {
            await new Promise((resolve) => setImmediate(resolve));
            headers.set('x-late', headers.get('x-early') ?? '');
            headers.remove('x-early');
            headers.append('x-late', stream.protocol);
            headers.path = '/moved';
            headers.authority = 'moved.example';
            assertIs(headers.get('x-late'), 'early, HTTP/1.1');
            function assertIs(actual: unknown, expected: unknown): void {
              if (actual !== expected) throw new Error(`${String(actual)} instead of ${String(expected)}`);
            }
          },
        });
      },
    });
    const { url, headers, body } = await echo(proxy, '/', {
      method: 'POST',
      headers: { 'x-early': 'early' },
      body: 'b'.repeat(100_000),
    });
    assert.deepEqual([url, headers.host, headers['x-early']], ['/moved', 'moved.example', undefined]);
    assert.equal(headers['x-late'], 'early, HTTP/1.1');
    assert.equal(body.length, 100_000);
  });

  it('waits with responses as with requests', async () => {
    await using proxy = await run(() => () => ({
      async encodeHeaders(headers) {
        await new Promise((resolve) => setImmediate(resolve));
        headers.set('x-late', String(headers.status));
        headers.status = 202;
      },
    }));
    const response = await fetch(urlOf(proxy));
    assert.deepEqual([response.status, response.headers.get('x-late')], [202, '200']);
    assert.equal(((await response.json()) as Echo).url, '/');
  });

  it('changes path, authority and status while it is told of them', async () => {
    await using proxy = await run(() => () => ({
      decodeHeaders(headers) {
        headers.path = `/new${headers.path}`;
        headers.authority = 'new.example';
        headers.set('x-path', headers.path);
      },
      encodeHeaders(headers) {
        headers.status = 299;
      },
    }));
    const response = await fetch(urlOf(proxy, '/old'));
    assert.equal(response.status, 299);
    const { url, headers } = (await response.json()) as Echo;
    assert.deepEqual([url, headers.host, headers['x-path']], ['/new/old', 'new.example', '/new/old']);
  });

  it('has the route chosen anew when it asks for it, at once or later', async () => {
    const chooses: HttpFilterFactory = () => (stream) => ({
      decodeHeaders(headers) {
        headers.set('x-tenant', 'b');
        if (headers.has('x-anew')) stream.clearRouteCache();
        if (!headers.has('x-late')) return undefined;
        return new Promise<void>((resolve) => setImmediate(resolve)).then(() => stream.clearRouteCache());
      },
    });
    const toB = {
      match: { prefix: '/', headers: [{ name: 'x-tenant', string_match: { exact: 'b' } }] },
      direct_response: { status: 299 },
    };
    await using proxy = await start([own('f')], { f: chooses }, {}, [toB, routeTo('/')]);
    const ask = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(urlOf(proxy), { headers })).status;
    assert.deepEqual([await ask({}), await ask({ 'x-anew': '1' }), await ask({ 'x-late': '1' })], [200, 299, 299]);
  });

  it('calls clusters', async () => {
    await using proxy = await run(() => (stream) => ({
      async decodeHeaders(headers) {
        const answer = await stream.call({
          cluster: 'web',
          method: 'POST',
          path: '/ask',
          headers: { 'X-Question': 'who' },
          body: headers.path,
        });
        const { url, body } = JSON.parse(answer.body.toString()) as { readonly url: string; readonly body: string };
        headers.set('x-answer', `${answer.status} ${url} ${body}`);
        const failure: unknown = await stream.call({ cluster: 'nowhere' }).catch((error: unknown) => error);
        headers.set('x-failure', (failure as { readonly code: string }).code);
      },
    }));
    const { headers } = await echo(proxy, '/here');
    assert.deepEqual([headers['x-answer'], headers['x-failure']], ['200 /ask /here', 'WEIR_CALL_FAILED']);
  });

  it('is answered for when it throws, and the next request goes on', async () => {
    const log: string[] = [];
    await using proxy = await run(
      () => (stream) => {
        if (stream.routeCluster === '') throw new Error('no route');
        return {
          decodeHeaders(headers) {
            if (headers.path === '/sync') throw new Error('at once');
            if (headers.path === '/async') return Promise.reject(new Error('later'));
            if (headers.path === '/status') return 'halt' as never;
            if (headers.path === '/header') headers.set('x', 'a\r\nb: c');
            if (headers.path === '/framing') headers.set('Content-Length', '3');
            return undefined;
          },
          encodeHeaders(headers) {
            if (headers.get('content-type') === null) throw new Error('never');
          },
        };
      },
      log,
    );
    for (const path of ['/sync', '/async', '/status', '/header', '/framing']) {
      const response = await fetch(urlOf(proxy, path));
      assert.equal(response.status, 500, path);
    }
    await echo(proxy);
    const faults = log.filter((line) => line.includes('fault in decodeHeaders of filter my.filter'));
    assert.equal(faults.length, 5, log.join('\n'));
    for (const reason of ['at once', 'later', '"halt"', 'cannot stand in a header', '"content-length"']) {
      assert.ok(
        faults.some((line) => line.includes(reason)),
        reason,
      );
    }
  });

  it('that cannot use a name of its surroundings says so', async () => {
    const surroundings = 'here';
    const log: string[] = [];
    await using proxy = await run(() => () => ({ decodeHeaders: (headers) => headers.set('x', surroundings) }), log);
    assert.equal((await fetch(urlOf(proxy))).status, 500);
    assert.ok(
      log.some((line) => line.includes('surroundings is not defined')),
      log.join('\n'),
    );
  });

  it('that fails to be made ends the start with its reason', async () => {
    await assert.rejects(
      run((config) => {
        throw new Error(`cannot be made of ${JSON.stringify(config)}`);
      }),
      /filter my\.filter: cannot be made of \{\}/,
    );
  });

  it('hears of the end of a stream that it keeps waiting, and has others go on', async () => {
    const log: string[] = [];
    await using proxy = await run(
      (_config, context) => (stream) => ({
        async decodeHeaders(headers) {
          if (headers.path !== '/wait') return;
          await new Promise((resolve) => stream.signal.addEventListener('abort', resolve));
          context.counter('aborted').add();
          // What comes too late does nothing.
          stream.reply({ status: 200 });
          stream.continueDecoding();
          headers.set('x-late', '1');
        },
        onDestroy() {
          context.counter('ended').add();
        },
      }),
      log,
    );
    const client = connect(proxy.listeners.get('main')!.port, '127.0.0.1');
    client.write('GET /wait HTTP/1.1\r\nhost: a\r\n\r\n');
    await once(client, 'connect');
    await echo(proxy);
    client.destroy();
    await untilEqual(1, () => proxy.stats.value('http.main.my.filter.aborted') ?? 0, 'an end');
    await untilEqual(2, () => proxy.stats.value('http.main.my.filter.ended') ?? 0, 'both ends');
    assert.deepEqual(log, []);
  });

  it('edits bodies and trailers part by part', async () => {
    await using proxy = await run({
      requestBody: 'edits',
      create: () => () => ({
        decodeData(data) {
          data.bytes = new TextEncoder().encode(`<${String(data.bytes)}>`);
        },
      }),
    });
    const { body, headers } = await echo(proxy, '/', { method: 'POST', body: 'abc' });
    assert.equal(body, '<abc>');
    assert.equal(headers['content-length'] ?? '5', '5');
  });

  const wrong: readonly [what: string, given: unknown, message: RegExp][] = [
    ['is no filter', 7, /httpFilters: a: expected a definition/],
    ['has no create', {}, /httpFilters: a: create: expected a function/],
    [
      'has another use of bodies',
      { create: () => () => ({}), requestBody: 'writes' },
      /requestBody: expected none, reads/,
    ],
    ['is made by the engine', Math.max, /httpFilters: a: create has no text/],
    ['is a module that is not there', './nowhere.mjs', /httpFilters: a: Cannot find module/],
  ];
  for (const [what, given, message] of wrong) {
    it(`that ${what} is a wrong option`, async () => {
      await assert.rejects(start([], { a: given } as Filters), (error) => {
        assert.ok(error instanceof WeirError);
        assert.equal(error.code, 'WEIR_OPTIONS');
        assert.match(error.message, message);
        return true;
      });
    });
  }
});
