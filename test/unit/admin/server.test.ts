import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import type { AdminTraffic, StatsView } from '../../../src/admin/index.ts';
import { adminTraffic } from '../../../src/process/admin-traffic.ts';
import { statTable } from '../../../src/stats/index.ts';
import { statsFixture } from '../../support/stats.ts';
import { call, NO_COMMANDS, NO_STATS, startAdmin } from './fixture.ts';

describe('the admin server', () => {
  for (const state of ['DRAINING', 'PRE_INITIALIZING', 'INITIALIZING'] as const) {
    it(`is not ready while it is ${state}`, async () => {
      await using server = await startAdmin();
      server.world.state = state;
      assert.deepEqual(await call(`${server.url}/ready`), { status: 503, body: `${state}\n` });
      assert.equal((await call(`${server.url}/server_info`)).status, 200);
    });
  }

  const queries: [query: string, body: RegExp][] = [
    ['filter=live&filter=web', /^server\.live: 1\n$/],
    ['filter=', /web.*live/s],
    ['filter=%zz', /^$/],
    ['filter=server%2Elive', /^server\.live: 1\n$/],
    ['filter=w.+200', /^cluster\.web\.upstream_rq_200: 12\n$/],
    ['usedonly=false&filter=timeout', /^$/],
    ['&&filter=live&&', /^server\.live: 1\n$/],
    ['type=TextReadouts&usedonly', /^listener_manager\.version: [^\n]*\n$/],
    ['type=Gauges&filter=http', /^http\.ingress\.downstream_cx_active: 2\n$/],
    ['type=Histograms&filter=api', /^cluster\.api\.upstream_rq_body_size: No recorded values\n$/],
    ['type=Histograms&usedonly&filter=api', /^$/],
    ['quantiles=99.99,50&filter=rq_time$', /^http\.ingress\.downstream_rq_time: P50\(305,305\) P99\.99\(305,305\)\n$/],
    ['hidden=only', /^$/],
    ['hidden=showonly&format=json', /^\{"stats":\[\]\}$/],
    ['hidden=include&filter=live', /^server\.live: 1\n$/],
    ['format=json&filter=nothing', /^\{"stats":\[\]\}$/],
    ['format=json&usedonly&filter=api', /^\{"stats":\[\]\}$/],
    [
      'format=json&type=Histograms&filter=rq_time&quantiles=50',
      /^\{"stats":\[\{"histograms":\{"supported_quantiles":\[50\],"computed_quantiles":\[\{"name":"http\.ingress\.downstream_rq_time","values":\[\{"interval":305,"cumulative":305\}\]\}\]\}\}\]\}$/,
    ],
    [
      'format=prometheus&type=Gauges&filter=live',
      /^# TYPE envoy_server_live gauge\nenvoy_server_live\{site="a \\"b\\"\\\\c"\} 1\n$/,
    ],
    ['format=text&histogram_buckets=cumulative&type=', /web.*live/s],
  ];
  for (const [query, body] of queries) {
    it(`understands /stats?${query}`, async () => {
      await using server = await startAdmin();
      const response = await call(`${server.url}/stats?${query}`);
      assert.equal(response.status, 200);
      assert.match(response.body, body);
      assert.equal(server.world.flushes, 1);
    });
  }

  it('filters by ECMAScript where the runtime says so', async () => {
    await using server = await startAdmin();
    const filtered = async (filter: string) =>
      (await call(`${server.url}/stats?filter=${encodeURIComponent(filter)}`)).body;
    assert.equal(await filtered('live(?=$)'), 'Invalid re2 regex');
    server.world.filtersByRe2 = false;
    assert.equal(await filtered('live(?=$)'), 'server.live: 1\n');
    assert.match(await filtered('('), /^Invalid regex: ".*Unterminated group"\n$/);
    assert.equal(await filtered('^(([a-z._]+)*)*!$'), 'Invalid regex: "takes too long"\n');
  });

  it('refuses an ECMAScript filter that turns out to be slow at any stat, in every format', async () => {
    const times = statTable({ rq_time: 'histogram:ms' });
    const slow = 'a'.repeat(40);
    for (const format of ['text', 'json', 'prometheus']) {
      for (const kind of ['counter', 'histogram']) {
        const { store } = statsFixture();
        store.scope('control_plane.').textReadout('identifier').set('x');
        store.scope('quick.').counter('a').add(1);
        if (kind === 'counter') store.scope('slow.').counter(slow).add(1);
        else store.scope(`slow.${slow}.`).allocate(times).record('rq_time', 1);
        await using server = await startAdmin({ stats: store });
        server.world.filtersByRe2 = false;
        const filter = encodeURIComponent('^(quick|control|slow\\.(a+)+b)');
        assert.deepEqual(await call(`${server.url}/stats?format=${format}&filter=${filter}`), {
          status: 400,
          body: 'Invalid regex: "takes too long"\n',
        });
        assert.deepEqual(
          server.world.records.filter(({ level }) => level === 'error'),
          [],
        );
      }
    }
  });

  it('answers in OpenMetrics where that is asked for and takes no type from a counter', async () => {
    await using server = await startAdmin();
    const typeFor = async (accept: string, naming: string): Promise<string> => {
      const response = await fetch(`${server.url}/stats/prometheus?naming=${naming}`, { headers: { accept } });
      return response.headers.get('content-type')!.split(';')[0]!;
    };
    const open = 'application/openmetrics-text';
    const text = 'text/plain';
    // Prometheus 3, as it asks by default.
    const prometheus = `${open};version=1.0.0;q=0.5,${open};version=0.0.1;q=0.4,${text};version=0.0.4;q=0.2,*/*;q=0.1`;
    const cases = [
      [prometheus, text, open],
      [`${open};q=0.3,${text};q=0.4`, text, text],
      [open, open, open],
      [`${open},*/*;q=0.1`, open, open],
      [`${open},text/*`, text, open],
      [`${open};q=0`, text, text],
      ['*/*', text, text],
    ] as const;
    for (const [accept, native, strict] of cases) {
      assert.equal(await typeFor(accept, 'native'), native, accept);
      assert.equal(await typeFor(accept, 'strict'), strict, accept);
    }
  });

  it('takes a query of 100 KB, and refuses what is wrong with it', async () => {
    await using server = await startAdmin();
    const names = Array.from({ length: 12_000 }, (_, at) => `name_${at}`).join('|');
    assert.deepEqual(await call(`${server.url}/stats?filter=(${names}|live)$`), {
      status: 200,
      body: 'server.live: 1\n',
    });
    const refused = [
      `filter=(${names}`,
      `type=${names}`,
      `format=${names}`,
      `quantiles=${'1,'.repeat(50_000)}`,
      `hidden=${names}`,
    ];
    for (const query of refused) assert.equal((await call(`${server.url}/stats?${query}`)).status, 400);
    const tooLarge = await call(`${server.url}/stats?filter=${'x'.repeat(300_000)}`);
    assert.deepEqual(tooLarge, { status: 431, body: 'the head of the request is too large\n' });
  });

  for (const target of ['/Stats', '/stats/', '//stats', '/st%61ts', '/stat', '/stats;x', '/favicon.ico']) {
    it(`does not take ${target} for a path of its own`, async () => {
      await using server = await startAdmin();
      const response = await call(server.url, { path: target });
      assert.equal(response.status, 404);
      assert.match(response.body, /^invalid path\. admin commands are:\n {2}\/: /);
    });
  }

  it('understands the absolute form of a target', async () => {
    await using server = await startAdmin();
    const asked = (path: string, method = 'GET') => call(server.url, { path, method });
    assert.deepEqual(await asked('http://any.example:1/ready'), { status: 200, body: 'LIVE\n' });
    assert.deepEqual(await asked('HTTPS://any.example/stats?filter=live'), { status: 200, body: 'server.live: 1\n' });
    assert.match((await asked('http://any.example')).body, /^<!DOCTYPE html>/);
    assert.match((await asked('http://any.example?x=/ready')).body, /^<!DOCTYPE html>/);
    assert.equal((await asked('http://any.example/nothing')).status, 404);
    assert.equal((await asked('ftp://any.example/ready')).status, 404);
    assert.equal((await asked('http://evil.example/reset_counters', 'POST')).status, 403);
    assert.equal((await asked('http://localhost/reset_counters', 'POST')).status, 200);
    assert.equal(server.world.resets, 1);
  });

  it('answers every method on paths that change nothing', async () => {
    await using server = await startAdmin();
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PURGE', 'PROPFIND']) {
      assert.deepEqual(await call(`${server.url}/ready`, { method }), { status: 200, body: 'LIVE\n' }, method);
    }
    assert.deepEqual(await call(`${server.url}/ready`, { method: 'HEAD' }), { status: 200, body: '' });
  });

  it('dumps no heap for a client that wants no body', async () => {
    await using usual = await startAdmin();
    let dumps = 0;
    const heapDump = async () => {
      dumps += 1;
      return Buffer.from(`dump ${dumps}`);
    };
    await using server = await startAdmin({ server: { ...usual.options.server, heapDump } });
    assert.deepEqual(await call(`${server.url}/heap_dump`, { method: 'HEAD' }), { status: 200, body: '' });
    assert.equal(dumps, 0);
    assert.equal((await call(`${server.url}/heap_dump`)).body, 'dump 1');
  });

  it('changes nothing unless the method is POST', async () => {
    await using server = await startAdmin();
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'PURGE', 'PROPFIND']) {
      for (const endpoint of ['quitquitquit', 'reopen_logs', 'reset_counters', 'logging?level=off']) {
        const response = await call(`${server.url}/${endpoint}`, { method });
        assert.deepEqual(response, { status: 400, body: `Method ${method} not allowed, POST required.` });
      }
    }
    assert.equal((await call(`${server.url}/quitquitquit`, { method: 'HEAD' })).status, 400);
    const { quits, reopens, resets } = server.world;
    assert.deepEqual([quits, reopens, resets], [0, 0, 0]);
    assert.equal(server.world.loggers.get('http').level, 'info');
    const logged = server.world.records.map(({ level, message }) => `${level} ${message}`);
    assert.ok(logged.includes('error admin path "/quitquitquit" mutates state, method=GET rather than POST'));
  });

  for (const type of [
    undefined,
    'application/x-www-form-urlencoded',
    'application/json',
    'text/plain',
    'x',
    ';;',
    '',
  ]) {
    it(`takes a POST with a body of type ${type}`, async () => {
      await using server = await startAdmin();
      const headers = type === undefined ? {} : { 'content-type': type };
      const response = await call(`${server.url}/reset_counters`, { method: 'POST', headers }, '{nonsense');
      assert.deepEqual(response, { status: 200, body: 'OK\n' });
      assert.equal(server.world.resets, 1);
    });
  }

  it('prefers the query to a form in the body', async () => {
    await using server = await startAdmin();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    await call(`${server.url}/logging?http=debug`, { method: 'POST', headers }, 'http=trace');
    assert.equal(server.world.loggers.get('http').level, 'debug');
  });

  it('tells who listens that levels have changed', async () => {
    await using server = await startAdmin();
    const { loggers } = server.world;
    let told = 0;
    loggers.onLevelsChanged(() => told++);
    await call(`${server.url}/logging?level=error`, { method: 'POST' });
    assert.equal(told, 1);
    assert.deepEqual(loggers.levels(), { default: 'error', components: {} });
    const refused = await call(`${server.url}/logging?paths=http=info,=info`, { method: 'POST' });
    assert.match(refused.body, /^error: empty logger name or empty logger level\n/);
    const several = await call(`${server.url}/logging?http=info&router=info`, { method: 'POST' });
    assert.match(several.body, /^error: invalid number of parameters\n/);
    assert.deepEqual([several.status, told], [400, 1]);
  });

  it('refuses a body that is too large in plain text', async () => {
    await using server = await startAdmin();
    const response = await call(`${server.url}/reset_counters`, { method: 'POST' }, 'x'.repeat(2 * 1024 * 1024));
    assert.deepEqual(response, { status: 413, body: 'Request body is too large\n' });
  });

  it('reopens the log files', async () => {
    await using server = await startAdmin();
    assert.equal((await call(`${server.url}/reopen_logs`, { method: 'POST' })).body, 'OK\n');
    assert.equal(server.world.reopens, 1);
  });

  it('quits after the answer has been sent', async () => {
    const quit = Promise.withResolvers<void>();
    await using server = await startAdmin({
      commands: { ...NO_COMMANDS, quit: () => quit.resolve() },
    });
    assert.deepEqual(await call(`${server.url}/quitquitquit`, { method: 'POST' }), { status: 200, body: 'OK\n' });
    await quit.promise;
  });

  it('says that contention is not traced, or not known', async () => {
    await using server = await startAdmin();
    const { server: view } = server.options;
    await using off = await startAdmin({ server: { ...view, contention: undefined } });
    const text = 'Mutex contention tracing is not enabled. To enable, run weir with flag --enable-mutex-tracing.';
    assert.deepEqual(await call(`${off.url}/contention`), { status: 200, body: text });
    await using unknown = await startAdmin({ server: { ...view, contention: async () => undefined } });
    assert.equal((await call(`${unknown.url}/contention`)).status, 501);
  });

  it('reads + in a form as the blank that it stands for, and in a query as it is', async () => {
    await using server = await startAdmin();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const url = `${server.url}/runtime_modify`;
    assert.equal((await call(url, { method: 'POST', headers }, 'form=a+b%2Bc')).status, 200);
    assert.equal((await call(`${url}?query=a+b%2Bc`, { method: 'POST' })).status, 200);
    const { values } = server.world.runtime;
    assert.deepEqual([values.text('form'), values.text('query')], ['a b+c', 'a+b+c']);
  });

  it('refuses long nonsense in whole, and nothing changes', async () => {
    const long = 'v'.repeat(100 * 1024);
    const queries = [
      `/runtime_modify?routing.new=1&upstream.use_retry=${long}`,
      `/runtime_modify?routing.new=1&%0a=${long}`,
      `/drain_listeners?${long}`,
      `/drain_listeners?graceful&inbound=${long}`,
      `/cpuprofiler?enable=${long}`,
      `/cpuprofiler?enable=y&x=${long}`,
      `/heapprofiler?enable=${long}`,
      `/heapprofiler?enable=y&${long}`,
      `/logging?level=${long}`,
      `/logging?${long}=debug`,
      `/logging?paths=http=debug,${long}=info`,
      `/logging?paths=http=debug,x${long}`,
    ];
    const started: string[] = [];
    const note = async (kind: string): Promise<'done'> => {
      started.push(kind);
      return 'done';
    };
    await using server = await startAdmin({
      commands: { ...NO_COMMANDS, startProfiler: note, drainListeners: () => void started.push('drain') },
    });
    const levels = server.world.loggers.list();
    for (const query of queries) {
      const { status, body } = await call(server.url + query, { method: 'POST' });
      assert.equal(status, 400, query.slice(0, 60));
      assert.match(body, /[a-z]/);
    }
    assert.deepEqual([started, server.world.runtime.entries().length, server.world.loggers.list()], [[], 2, levels]);
  });

  it('counts its own traffic', async () => {
    const server = await startAdmin();
    await call(`${server.url}/ready`);
    await call(`${server.url}/nothing`);
    await server.admin.close();
    const counted = server.world.traffic.toSorted();
    // The client asks for the end of the connection, and the server ends it.
    assert.deepEqual(counted, ['close', 'close', 'end 200', 'end 404', 'open', 'open', 'start', 'start']);
    assert.ok(server.world.bytes > 1000, `${server.world.bytes} bytes`);
  });

  it('writes its own traffic into the stats of a listener and a connection manager', async () => {
    const { store } = statsFixture();
    const traffic = adminTraffic(store);
    const closed = Promise.withResolvers<void>();
    const connectionClosed: AdminTraffic['connectionClosed'] = (end) => {
      traffic.connectionClosed(end);
      if (store.value('http.admin.downstream_cx_destroy') === 3) closed.resolve();
    };
    const server = await startAdmin({ traffic: { ...traffic, connectionClosed } });
    const agent = new Agent({ keepAlive: true });
    const answers = [await call(`${server.url}/ready`, { agent }), await call(`${server.url}/help`)];
    const { address } = server.admin;
    const leaver = connect(address.kind === 'ip' ? address.port : 0, '127.0.0.1');
    leaver.end('GET /ready HTTP/1.1\r\nhost: x\r\n\r\n');
    leaver.resume();
    await once(leaver, 'close');
    agent.destroy();
    await server.admin.close();
    await closed.promise;
    const stat = (name: string): number => store.value(`http.admin.${name}`)!;
    assert.deepEqual(
      ['downstream_cx_total', 'downstream_cx_active', 'downstream_rq_total', 'rq_total', 'downstream_rq_2xx'].map(stat),
      [3, 0, 3, 3, 3],
    );
    assert.equal(stat('downstream_cx_destroy'), 3);
    assert.equal(stat('downstream_cx_destroy_local') + stat('downstream_cx_destroy_remote'), 3);
    assert.ok(stat('downstream_cx_destroy_remote') >= 1);
    assert.ok(stat('downstream_cx_tx_bytes_total') > answers[1]!.body.length + 3 * 100);
    assert.ok(stat('downstream_cx_rx_bytes_total') > 100);
    await store.mergeHistograms();
    const counts: Record<string, number> = {};
    for await (const batch of store.histograms())
      for (const each of batch) counts[each.name] = each.count('cumulative');
    const { 'http.admin.downstream_rq_time': times, 'http.admin.downstream_cx_length_ms': lengths } = counts;
    assert.deepEqual([times, lengths, counts['listener.admin.downstream_cx_length_ms']], [3, 3, 3]);
  });

  it('collects the names of stats that are looked up while it is told to', async () => {
    await using server = await startAdmin();
    const { lookups } = server.world;
    const shown = async () => (await call(`${server.url}/stats/recentlookups`)).body;
    const posted = async (path: string) =>
      (await call(`${server.url}/stats/recentlookups/${path}`, { method: 'POST' })).body;
    assert.match(await shown(), /^Lookup tracking is not enabled\. .*\n\ntotal: 3\n$/);
    assert.equal(await posted('enable'), 'OK\n');
    for (const name of ['alpha', 'beta', 'gamma', 'alpha', 'beta', 'alpha']) lookups.record(name);
    assert.equal(await shown(), '   Count Lookup\n       1 gamma\n       2 beta\n       3 alpha\n\ntotal: 9\n');
    assert.equal(await posted('clear'), 'OK\n');
    assert.equal(await shown(), '   Count Lookup\n\ntotal: 0\n');
    lookups.record('alpha');
    assert.equal(await posted('disable'), 'OK\n');
    lookups.record('alpha');
    assert.match(await shown(), /^Lookup tracking is not enabled\. .*\n\ntotal: 2\n$/);
    for (const path of ['enable', 'disable', 'clear']) {
      assert.equal((await call(`${server.url}/stats/recentlookups/${path}`)).status, 400);
    }
    assert.deepEqual([lookups.isCollecting, lookups.total], [false, 2]);
  });

  it('says no more than that something went wrong inside, and logs the rest', async () => {
    const broken: StatsView = {
      ...NO_STATS,
      textReadouts() {
        throw new Error('broken store');
      },
    };
    await using server = await startAdmin({ stats: broken });
    assert.deepEqual(await call(`${server.url}/stats`), { status: 500, body: 'internal error\n' });
    assert.equal(server.world.records.length, 2);
    const { message, stack } = server.world.records.at(-1)!;
    assert.equal(message, 'admin path "/stats" failed: Error: broken store');
    assert.match(stack, /^ {4}at /);
  });

  it('cuts off an answer that fails on its way, and logs why', async () => {
    const broken: StatsView = {
      ...NO_STATS,
      async *countersAndGauges() {
        yield Array.from({ length: 5000 }, (_, i) => ({ name: `c${i}`, kind: 'counter', value: i, isUsed: true }));
        throw new Error('broken half-way');
      },
    };
    await using server = await startAdmin({ stats: broken });
    await assert.rejects(call(`${server.url}/stats`), /aborted|socket hang up|ECONNRESET/);
    assert.match(server.world.records.at(-1)!.message, /^admin response failed: Error: broken half-way/);
  });
});

describe('a mutation from a browser', () => {
  const cases: [name: string, headers: Record<string, string>, status: number][] = [
    ['is done without any header of a browser', {}, 200],
    ['is done from the home page', { 'sec-fetch-site': 'same-origin' }, 200],
    [
      'is done from the page behind a proxy that asks by another host',
      { 'sec-fetch-site': 'same-origin', origin: 'https://proxy.example' },
      200,
    ],
    ['is done from the address bar', { 'sec-fetch-site': 'none' }, 200],
    ['is done when the origin is the host', { origin: 'http://127.0.0.1:1', host: '127.0.0.1:1' }, 200],
    ['is done by the name localhost', { host: 'localhost:15000', origin: 'http://localhost:15000' }, 200],
    ['is done by a name below localhost', { host: 'weir.localhost' }, 200],
    ['is done by an IPv6 address', { host: '[::1]:9901' }, 200],
    ['is refused from another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['is refused from another port of this machine', { 'sec-fetch-site': 'same-site' }, 403],
    ['is refused from an origin of another name', { origin: 'http://evil.example' }, 403],
    ['is refused from an origin of another port', { origin: 'http://127.0.0.1:1', host: '127.0.0.1:2' }, 403],
    ['is refused from an opaque origin', { origin: 'null' }, 403],
    ['is refused from an origin that is none', { origin: '???' }, 403],
    ['is refused by a name that was made to resolve to this machine', { host: 'evil.example' }, 403],
    ['is refused by such a name with its own origin', { host: 'evil.example', origin: 'http://evil.example' }, 403],
  ];
  for (const [name, headers, status] of cases) {
    it(name, async () => {
      await using server = await startAdmin();
      const response = await call(`${server.url}/reset_counters`, { method: 'POST', headers });
      assert.equal(response.status, status, response.body);
      assert.equal(server.world.resets, status === 200 ? 1 : 0);
    });
  }

  it('may use any name when the interface is not bound to a loopback address', async () => {
    await using server = await startAdmin({ address: { kind: 'ip', ip: '0.0.0.0', port: 0 } });
    const { address } = server.admin;
    const url = `http://127.0.0.1:${address.kind === 'ip' ? address.port : 0}`;
    const headers = { host: 'proxy-7.internal:9901', origin: 'http://proxy-7.internal:9901' };
    assert.equal((await call(`${url}/reset_counters`, { method: 'POST', headers })).status, 200);
  });

  it('may read whatever it says of its site', async () => {
    await using server = await startAdmin();
    const headers = { host: 'dashboard', origin: 'http://elsewhere', 'sec-fetch-site': 'cross-site' };
    assert.equal((await call(`${server.url}/stats`, { headers })).status, 200);
  });
});
