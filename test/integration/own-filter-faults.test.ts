// What becomes of requests whose filter, one that users have written, throws, never answers, answers twice or ends its thread; and what a filter
// does when its configuration goes. Over real sockets, in worker threads.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { HttpFilterDefinition, HttpFilterFactory, Proxy as WeirProxy } from '../../src/library/index.ts';
import { type JsonObject, socketAddress } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, routeTo } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';
import { type DumpedFilter, FiltersFile, filterResource } from '../support/filters-file.ts';

const MODULE = 'type.googleapis.com/envoy.extensions.filters.http.module.v3.Module';
const CHUNKED = 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n';
const BODY = '\r\n5\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n';

let upstream: Server;
let web: JsonObject;

before(async () => {
  upstream = createServer(async (request, response) => {
    let length = 0;
    for await (const part of request) length += (part as Buffer).length;
    response.writeHead(200, { trailer: 'x-end' });
    response.write(`got ${length}`);
    response.addTrailers({ 'x-end': '1' });
    response.end();
  });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  web = clusterAt('web', (upstream.address() as AddressInfo).port, {
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        explicit_http_config: { http_protocol_options: { enable_trailers: true } },
      },
    },
  });
});

after(() => {
  upstream.close();
  upstream.closeAllConnections();
});

function bootstrap(config: JsonObject = {}) {
  return bootstrapWith({ name: 'my.filter', typed_config: { '@type': MODULE, config } });
}

function bootstrapWith(filter: JsonObject) {
  const manager = { http_protocol_options: { enable_trailers: true } };
  return bootstrapOf([filteredListener([filter], [routeTo('/')], { manager })], [web]);
}

/** A proxy with one worker, whose one filter is this. */
function run(create: HttpFilterFactory | HttpFilterDefinition, log: string[] = []): Promise<WeirProxy> {
  const options = { concurrency: 1, logLevel: 'error', log: (line: string) => void log.push(line) } as const;
  return createProxy(bootstrap(), { httpFilters: { 'my.filter': create }, ...options });
}

/** All that comes back on a connection of its own, until its other end closes it. */
async function exchange(proxy: WeirProxy, text: string): Promise<string> {
  const socket = connect(proxy.listeners.get('main')!.port, '127.0.0.1');
  socket.setEncoding('latin1').write(text);
  let answer = '';
  for await (const part of socket) answer += part;
  return answer;
}

const post = (proxy: WeirProxy, lines = ''): Promise<string> =>
  exchange(proxy, `${CHUNKED}connection: close\r\n${lines}${BODY}`);
const stat = (proxy: WeirProxy, name: string): number => proxy.stats.value(`http.main.my.filter.${name}`) ?? 0;

describe('a filter that throws', () => {
  const throwing: HttpFilterDefinition = {
    requestBody: 'edits',
    responseBody: 'edits',
    create: (_config, context) => () => {
      let phase: string | undefined;
      const fail = (here: string) => {
        if (phase === here) throw new Error(`thrown in ${here}`);
      };
      return {
        decodeHeaders(headers) {
          phase = headers.get('x-phase');
          fail('decodeHeaders');
        },
        decodeData: () => fail('decodeData'),
        decodeTrailers: () => fail('decodeTrailers'),
        encodeHeaders: () => fail('encodeHeaders'),
        encodeData: () => fail('encodeData'),
        encodeTrailers: () => fail('encodeTrailers'),
        onDestroy() {
          context.counter('ended').add();
          fail('onDestroy');
        },
      };
    },
  };

  it('has its request answered with a 500 in every phase before the answer begins, and the next one goes on', async () => {
    const log: string[] = [];
    await using proxy = await run(throwing, log);
    let asked = 0;
    for (const phase of [
      'decodeHeaders',
      'decodeData',
      'decodeTrailers',
      'encodeHeaders',
      'encodeData',
      'encodeTrailers',
    ]) {
      const answer = await post(proxy, `x-phase: ${phase}\r\n`);
      // What has begun cannot be taken back: it is cut off before its end.
      if (answer.startsWith('HTTP/1.1 200')) assert.doesNotMatch(answer, /\r\n0\r\n/, phase);
      else assert.match(answer, /^HTTP\/1\.1 500 /, phase);
      if (phase.startsWith('decode')) assert.match(answer, /^HTTP\/1\.1 500 /, phase);
      assert.match(await post(proxy), /^HTTP\/1\.1 200 [\s\S]*got 5/, phase);
      asked += 2;
      await untilEqual(asked, () => stat(proxy, 'ended'), 'ends');
      const told = log.splice(0).filter((line) => line.includes(`thrown in ${phase}`));
      assert.equal(told.length, 1, phase);
      assert.match(told[0]!, new RegExp(`fault in ${phase} of filter my\\.filter`));
    }
  });

  it('at the end of its stream has thrown too late to change anything', async () => {
    const log: string[] = [];
    await using proxy = await run(throwing, log);
    assert.match(await post(proxy, 'x-phase: onDestroy\r\n'), /^HTTP\/1\.1 200 [\s\S]*got 5/);
    await untilEqual(true, () => log.some((line) => line.includes('fault in onDestroy')), 'the line');
  });

  it('behind its methods, in an event of its own, is contained by its thread', async () => {
    const log: string[] = [];
    await using proxy = await run(
      () => () => ({
        decodeHeaders() {
          setTimeout(() => {
            throw new Error('thrown by a timer');
          }, 0);
          void Promise.reject(new Error('rejected by nobody'));
        },
      }),
      log,
    );
    assert.match(await post(proxy), /^HTTP\/1\.1 200 /);
    await untilEqual(2, () => proxy.stats.value('server.contained_faults') ?? 0, 'faults');
    for (const reason of ['thrown by a timer', 'rejected by nobody']) {
      assert.ok(
        log.some((line) => line.includes(reason)),
        log.join('\n'),
      );
    }
    assert.match(await post(proxy), /^HTTP\/1\.1 200 /);
  });
});

describe('a filter that speaks more than once', () => {
  it('goes on once, and answers once', async () => {
    const log: string[] = [];
    await using proxy = await run(
      () => (stream) => ({
        decodeHeaders(headers) {
          const again = () => {
            switch (headers.get('x-do')) {
              case 'continue':
                stream.continueDecoding();
                stream.continueDecoding();
                break;
              case 'reply':
                stream.reply({ status: 201, body: 'first' });
                stream.reply({ status: 202, body: 'second' });
                stream.continueDecoding();
                break;
              default:
                stream.continueDecoding();
                stream.reply({ status: 203, body: 'after all' });
                stream.reply({ status: 202, body: 'second' });
            }
          };
          setImmediate(again);
          return 'stop';
        },
      }),
      log,
    );
    const count = (text: string) => text.match(/HTTP\/1\.1 /g)?.length;
    const went = await post(proxy, 'x-do: continue\r\n');
    assert.match(went, /^HTTP\/1\.1 200 [\s\S]*got 5/);
    const answered = await post(proxy, 'x-do: reply\r\n');
    assert.match(answered, /^HTTP\/1\.1 201 [\s\S]*first$/);
    const both = await post(proxy);
    assert.match(both, /^HTTP\/1\.1 203 [\s\S]*after all$/);
    assert.deepEqual([count(went), count(answered), count(both)], [1, 1, 1]);
    assert.deepEqual(log, []);
  });

  it('goes on by its promise when it has gone on already', async () => {
    await using proxy = await run(() => (stream) => ({
      async decodeHeaders() {
        await null;
        stream.continueDecoding();
        await new Promise(setImmediate);
      },
      async encodeHeaders() {
        await null;
        stream.continueEncoding();
        stream.continueEncoding();
      },
    }));
    const answer = await post(proxy);
    assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*got 5/);
    assert.equal(answer.match(/got 5/g)!.length, 1);
  });
});

describe('a filter that never answers', () => {
  it('keeps its request until that has waited too long', async () => {
    const create: HttpFilterFactory = () => () => ({
      decodeHeaders: () => new Promise(() => {}),
    });
    const idle = { stream_idle_timeout: '0.05s' };
    const filter = { name: 'my.filter', typed_config: { '@type': MODULE } };
    const listener = filteredListener([filter], [routeTo('/')], { manager: idle });
    await using proxy = await createProxy(bootstrapOf([listener], [web]), { httpFilters: { 'my.filter': create } });
    const waiting = exchange(proxy, 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
    assert.match(await waiting, /^HTTP\/1\.1 504 [\s\S]*stream timeout$/);
  });
});

describe('a filter that ends its thread', () => {
  it('takes the connections of its worker along, and another worker takes its place', async () => {
    const log: string[] = [];
    await using proxy = await run(
      () => () => ({
        decodeHeaders(headers) {
          if (headers.has('x-exit')) process.exit(7);
        },
      }),
      log,
    );
    assert.equal(await exchange(proxy, 'GET / HTTP/1.1\r\nhost: a\r\nx-exit: 1\r\n\r\n').catch(() => ''), '');
    await untilEqual(1, () => proxy.stats.value('server.worker_restarts') ?? 0, 'a restart');
    await untilEqual(true, async () => (await post(proxy).catch(() => '')).startsWith('HTTP/1.1 200'), 'an answer');
  });
});

describe('a filter whose configuration goes', () => {
  const disposing: HttpFilterDefinition = {
    create(config, context) {
      const timer = setInterval(() => {}, 1000);
      context.onDispose(async () => {
        clearInterval(timer);
        context.counter(`gone.${String(config.version)}`).add();
        await null;
        if (config.version === 1) throw new Error('thrown at the end');
      });
      context.onDispose(() => {
        context.counter('second').add();
        if (config.version === 2) throw new Error('thrown at once');
      });
      return (stream) => ({
        async decodeHeaders(headers) {
          if (headers.has('x-wait'))
            await new Promise<void>((resolve) => stream.signal.addEventListener('abort', () => resolve()));
        },
      });
    },
  };

  it('is told when all its requests are over, once', async () => {
    const log: string[] = [];
    const options = {
      concurrency: 1,
      logLevel: 'error',
      drainTimeS: 600,
      log: (line: string) => void log.push(line),
    } as const;
    await using proxy = await createProxy(bootstrap({ version: 1 }), {
      httpFilters: { 'my.filter': disposing },
      ...options,
    });
    const socket = connect(proxy.listeners.get('main')!.port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nhost: a\r\nx-wait: 1\r\n\r\n');
    await untilEqual(1, () => proxy.stats.value('http.main.downstream_rq_active') ?? 0, 'a request');
    await proxy.applyBootstrap(bootstrap({ version: 2 }));
    assert.match(await post(proxy), /^HTTP\/1\.1 200 /);
    assert.equal(stat(proxy, 'gone.1'), 0);
    socket.destroy();
    await untilEqual(1, () => stat(proxy, 'gone.1'), 'the end of the first');
    await untilEqual(1, () => stat(proxy, 'second'), 'its other end');
    await proxy.applyBootstrap(bootstrap({ version: 3 }));
    await untilEqual(1, () => stat(proxy, 'gone.2'), 'the end of the second');
    await untilEqual(2, () => stat(proxy, 'second'), 'its other end');
    for (const reason of ['thrown at the end', 'thrown at once']) {
      await untilEqual(
        true,
        () => log.some((line) => line.includes(`fault in onDispose of filter my.filter: ${reason}`)),
        reason,
      );
    }
    assert.equal(stat(proxy, 'gone.1'), 1);
  });

  it('says what it does then by a function', async () => {
    await assert.rejects(
      run((_config, context) => {
        context.onDispose('nothing' as never);
        return () => ({});
      }),
      /filter my\.filter: onDispose: expected a function, got string/,
    );
  });
});

describe('a filter whose configuration comes by discovery', () => {
  it('and that cannot be made of it goes on as it was, and says so where configurations are listed', async (t) => {
    const file = new FiltersFile(t);
    const tell = (version: string, text: string): void =>
      file.write(version, filterResource({ '@type': MODULE, config: { text } }, 'my.filter'));
    const create: HttpFilterFactory = (config) => {
      const { text } = config as { readonly text: string };
      if (text === 'bad') throw new Error('nothing can be made of that');
      return () => ({ encodeHeaders: (headers) => void headers.set('by', text) });
    };
    tell('1', 'one');
    const discovery = { config_source: file.source(), type_urls: [MODULE] };
    const admin = { address: socketAddress('127.0.0.1', 0) };
    const own = bootstrapWith({ name: 'my.filter', config_discovery: discovery });
    await using proxy = await createProxy(
      { ...own, admin },
      {
        httpFilters: { 'my.filter': create },
        concurrency: 2,
        logLevel: 'off',
      },
    );
    const ask = async (path: string): Promise<string> => (await fetch(`${proxy.admin!.url}${path}`)).text();
    const failures = async (): Promise<string> =>
      /\.config_fail: (\d+)/.exec(await ask('/stats?filter=config_fail'))![1]!;
    const listed = async (): Promise<DumpedFilter> => {
      const text = await ask('/config_dump?resource=ecds_filters');
      return (JSON.parse(text) as { readonly configs: readonly DumpedFilter[] }).configs[0]!;
    };
    assert.match(await post(proxy), /\r\nby: one\r/);
    tell('2', 'bad');
    await untilEqual('2', async () => (await listed()).error_state?.version_info, 'the version that is listed as bad');
    const { client_status, error_state } = await listed();
    assert.deepEqual(
      [client_status, error_state!.details],
      ['NACKED', 'filter my.filter: nothing can be made of that'],
    );
    assert.match(await post(proxy), /\r\nby: one\r/);
    tell('3', 'three');
    await untilEqual(true, async () => /\r\nby: three\r/.test(await post(proxy)), 'what the third says');
    assert.equal((await listed()).error_state, undefined);
    // Of two workers.
    assert.equal(await failures(), '1');
  });
});
