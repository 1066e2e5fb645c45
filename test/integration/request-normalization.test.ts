// The form of requests: what a connection manager makes of paths, hosts and names before anybody reads them. The same over
// HTTP/1.1 and HTTP/2, from a configuration to the bytes that an upstream gets.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { type JsonObject, managerFaults, ROUTER } from '../support/bootstrap.ts';
import { eventually } from '../support/eventually.ts';
import { managerBench, PROTOCOLS, valuesOf } from '../support/manager-bench.ts';

const KEEP = { path_with_escaped_slashes_action: 'KEEP_UNCHANGED' };
const REDIRECT = { path_with_escaped_slashes_action: 'UNESCAPE_AND_REDIRECT' };
const REJECT = { path_with_escaped_slashes_action: 'REJECT_REQUEST' };
const FORWARD = { path_with_escaped_slashes_action: 'UNESCAPE_AND_FORWARD' };

/** Says in its answer that it was chosen. */
function routes(match: JsonObject): JsonObject {
  const found = { match, direct_response: { status: 200, body: { inline_string: 'guarded' } } };
  const others = { match: { prefix: '/' }, route: { cluster: 'web' } };
  return { route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [found, others] }] } };
}

for (const protocol of PROTOCOLS) {
  describe(`over ${protocol} the path`, () => {
    const cases: readonly [what: string, fields: JsonObject, path: string, forwarded: string][] = [
      ['stays as it came', {}, '/a//../%61%2f?x=/../', '/a//../%61%2f?x=/../'],
      ['stays as it came where that is wanted', { normalize_path: false, ...KEEP }, '/a/../%2e%2f', '/a/../%2e%2f'],
      ['is normalized', { normalize_path: true }, '/a/./b/../%63?x=/../%61', '/a/c?x=/../%61'],
      ['has its slashes merged', { merge_slashes: true }, '//a///b//?c=//', '/a/b/?c=//'],
      ['is both', { normalize_path: true, merge_slashes: true }, '//a//../..//b', '/b'],
      ['has escaped slashes unescaped', FORWARD, '/a%2Fb%5cc?d=%2f', '/a/b\\c?d=%2f'],
      ['is normalized behind that', { normalize_path: true, merge_slashes: true, ...FORWARD }, '/a%2f..%5c%2fb', '/b'],
      ['passes without escaped slashes', REJECT, '/a//b?c=%2f', '/a//b?c=%2f'],
      ['is left without escaped slashes', REDIRECT, '/a//b?c=%2f', '/a//b?c=%2f'],
    ];
    for (const [what, fields, asked, forwarded] of cases) {
      test(what, async (t) => {
        const bench = await managerBench(t, fields);
        assert.equal((await bench.ask(protocol, { path: asked })).status, 200);
        assert.ok(bench.head().startsWith(`GET ${forwarded} HTTP/1.1\r\n`));
      });
    }

    test('leads to the route that it means', async (t) => {
      const bench = await managerBench(t, {
        normalize_path: true,
        merge_slashes: true,
        ...routes({ prefix: '/admin' }),
      });
      for (const asked of ['/admin', '/x/../admin', '/%61dmin', '//admin', '/x/%2e%2E/admin', '/x\\..\\admin']) {
        assert.equal((await bench.ask(protocol, { path: asked })).body, 'guarded', asked);
      }
      assert.equal((await bench.ask(protocol, { path: '/admi' })).body, 'ok');
    });

    test('is rewritten by its route in its new form', async (t) => {
      const route = { cluster: 'web', prefix_rewrite: '/new' };
      const route_config = {
        virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/old' }, route }] }],
      };
      const bench = await managerBench(t, { normalize_path: true, route_config });
      await bench.ask(protocol, { path: '/x/../old/y?z' });
      const head = bench.head();
      assert.ok(head.startsWith('GET /new/y?z HTTP/1.1\r\n'), head);
      assert.deepEqual(valuesOf(head, 'x-proxy-original-path'), ['/old/y?z']);
    });

    test('is refused with an escaped NUL', async (t) => {
      const bench = await managerBench(t, { normalize_path: true });
      assert.equal((await bench.ask(protocol, { path: '/a%00' })).status, 400);
      assert.equal((await bench.ask(protocol, { path: '/a?%00' })).status, 200);
      assert.equal(bench.proxy.httpStat('downstream_rq_failed_path_normalization'), 1);
      assert.equal(bench.heads.length, 1);
    });

    test('is refused with an escaped slash', async (t) => {
      const bench = await managerBench(t, REJECT);
      for (const asked of ['/a%2fb', '/a%2F', '/%5c', '/%5C?x']) {
        assert.equal((await bench.ask(protocol, { path: asked })).status, 400, asked);
      }
      assert.equal(bench.proxy.httpStat('downstream_rq_failed_path_normalization'), 4);
      assert.equal(bench.heads.length, 0);
    });

    test('is asked for anew in its normal form', async (t) => {
      const bench = await managerBench(t, { normalize_path: true, ...REDIRECT });
      const { status, headers, body } = await bench.ask(protocol, { path: '/a%2f../b%2fc?d=%2f' });
      assert.deepEqual([status, headers.location, body], [307, '/b/c?d=%2f', '']);
      assert.equal(bench.proxy.httpStat('downstream_rq_redirected_with_normalized_path'), 1);
      assert.equal(bench.heads.length, 0);
    });

    test('leads no client to another host', async (t) => {
      const bench = await managerBench(t, REDIRECT);
      assert.equal((await bench.ask(protocol, { path: '/%2fevil.test/x' })).headers.location, '/.//evil.test/x');
      assert.equal((await bench.ask(protocol, { path: '/%5Cevil.test/x' })).headers.location, '/./\\evil.test/x');
      assert.equal((await bench.ask(protocol, { path: '/a%2f%2fevil.test' })).headers.location, '/a//evil.test');
    });

    test('is what the runtime says, where the configuration says nothing', async (t) => {
      const bench = await managerBench(t, {});
      const forwarded = async (): Promise<string | number> => {
        const { status } = await bench.ask(protocol, { path: '/a/../b%2fc' });
        return status === 200 ? bench.head().split(' ')[1]! : status;
      };
      const say = (...texts: [string, string][]) =>
        bench.proxy.dataPlane.updateRuntime(
          new Map(texts.map(([key, value]) => [`http_connection_manager.${key}`, value])),
        );
      assert.equal(await forwarded(), '/a/../b%2fc');
      say(['normalize_path', '100']);
      assert.equal(await forwarded(), '/b%2fc');
      say(['normalize_path', '0'], ['path_with_escaped_slashes_action', '4']);
      assert.equal(await forwarded(), '/a/../b/c');
      say(['path_with_escaped_slashes_action', '3']);
      assert.equal(await forwarded(), 307);
      say(['path_with_escaped_slashes_action', '2']);
      assert.equal(await forwarded(), 400);
      say(['path_with_escaped_slashes_action', '2'], ['path_with_escaped_slashes_action_enabled', '0']);
      assert.equal(await forwarded(), '/a/../b%2fc');
      say(['path_with_escaped_slashes_action', '5']);
      assert.equal(await forwarded(), '/a/../b%2fc');
    });

    test('is what the configuration says, whatever the runtime does', async (t) => {
      const bench = await managerBench(t, { normalize_path: false, ...KEEP });
      const texts = { normalize_path: '100', path_with_escaped_slashes_action: '2' };
      const entries = Object.entries(texts).map(([key, value]) => [`http_connection_manager.${key}`, value] as const);
      bench.proxy.dataPlane.updateRuntime(new Map(entries));
      assert.equal((await bench.ask(protocol, { path: '/a/../b%2fc' })).status, 200);
      assert.ok(bench.head().startsWith('GET /a/../b%2fc '));
    });

    test('of some requests alone is acted on', async (t) => {
      const draws = [49, 50];
      const random = { u32: () => draws.shift() ?? 0 };
      const bench = await managerBench(t, REJECT, { random });
      bench.proxy.dataPlane.updateRuntime(
        new Map([['http_connection_manager.path_with_escaped_slashes_action_enabled', '50']]),
      );
      draws.splice(0, 2, 49);
      assert.equal((await bench.ask(protocol, { path: '/%2f' })).status, 400);
      draws.splice(0, 2, 50);
      assert.equal((await bench.ask(protocol, { path: '/%2f' })).status, 200);
    });
  });

  describe(`over ${protocol} the host`, () => {
    const cases: readonly [what: string, fields: JsonObject, host: string, forwarded: string][] = [
      ['keeps its port', {}, 'a.test:80', 'a.test:80'],
      ['loses any port', { strip_any_host_port: true }, 'a.test:1234', 'a.test'],
      ['loses a port behind an address', { strip_any_host_port: true }, '[::1]:1234', '[::1]'],
      ['without a port stays', { strip_any_host_port: true }, '[::1]', '[::1]'],
      ['keeps a port that is not the listener’s', { strip_matching_host_port: true }, 'a.test:1', 'a.test:1'],
      ['loses its last dot', { strip_trailing_host_dot: true }, 'a.test.', 'a.test'],
      ['loses its last dot before a port', { strip_trailing_host_dot: true }, 'a.test.:80', 'a.test:80'],
      ['loses both', { strip_trailing_host_dot: true, strip_any_host_port: true }, 'a.test.:80', 'a.test'],
    ];
    for (const [what, fields, host, forwarded] of cases) {
      test(what, async (t) => {
        const bench = await managerBench(t, fields);
        await bench.ask(protocol, { host });
        assert.deepEqual(valuesOf(bench.head(), 'host'), [forwarded]);
      });
    }

    test('loses the port of the listener', async (t) => {
      const bench = await managerBench(t, { strip_matching_host_port: true });
      await bench.ask(protocol, { host: `a.test:${bench.port}` });
      assert.deepEqual(valuesOf(bench.head(), 'host'), ['a.test']);
    });

    test('leads to the virtual host that it means', async (t) => {
      const answer = (name: string, domains: string[]): JsonObject => ({
        name,
        domains,
        routes: [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: name } } }],
      });
      const route_config = { virtual_hosts: [answer('own', ['a.test']), answer('other', ['*'])] };
      const stripping = await managerBench(t, {
        strip_trailing_host_dot: true,
        strip_any_host_port: true,
        route_config,
      });
      assert.equal((await stripping.ask(protocol, { host: 'a.test.:80' })).body, 'own');
      const plain = await managerBench(t, { route_config });
      assert.equal((await plain.ask(protocol, { host: 'a.test.:80' })).body, 'other');
    });
  });

  describe(`over ${protocol} a name with an underscore`, () => {
    const action = (headers_with_underscores_action: string): JsonObject => ({
      common_http_protocol_options: { headers_with_underscores_action },
      http_protocol_options: { enable_trailers: true },
    });
    const headers = [
      ['x_a', '1'],
      ['x-b', '2'],
      ['x_c_', '3'],
    ] as const;
    const stat = protocol === 'HTTP/2' ? 'http2Stat' : 'http1Stat';

    test('passes', async (t) => {
      const bench = await managerBench(t, action('ALLOW'));
      await bench.ask(protocol, { headers });
      const head = bench.head();
      assert.deepEqual([valuesOf(head, 'x_a'), valuesOf(head, 'x-b'), valuesOf(head, 'x_c_')], [['1'], ['2'], ['3']]);
    });

    test('is dropped, and no route sees it', async (t) => {
      const match = { prefix: '/', headers: [{ name: 'x_a', present_match: true }] };
      const bench = await managerBench(t, { ...action('DROP_HEADER'), ...routes(match) });
      assert.equal((await bench.ask(protocol, { headers })).body, 'ok');
      const head = bench.head();
      assert.deepEqual([valuesOf(head, 'x_a'), valuesOf(head, 'x-b'), valuesOf(head, 'x_c_')], [[], ['2'], []]);
      assert.equal(bench.proxy[stat]('dropped_headers_with_underscores'), 2);
    });

    test('is dropped from trailers', async (t) => {
      const bench = await managerBench(t, action('DROP_HEADER'), { cluster: { enableTrailers: true } });
      const trailers = [
        ['x_t', '1'],
        ['x-u', '2'],
      ] as const;
      await bench.ask(protocol, { method: 'POST', trailers });
      await eventually(() => bench.heads.join('').includes('x-u: 2'), 'trailers');
      assert.doesNotMatch(bench.heads.join(''), /x_t/);
      assert.equal(bench.proxy[stat]('dropped_headers_with_underscores'), 1);
    });

    test('is refused', async (t) => {
      const bench = await managerBench(t, action('REJECT_REQUEST'));
      assert.equal((await bench.ask(protocol, { headers })).status, protocol === 'HTTP/2' ? 0 : 400);
      assert.equal((await bench.ask(protocol, { headers: [['x-b', '2']] })).status, 200);
      assert.equal(bench.heads.length, 1);
      assert.equal(bench.proxy[stat]('requests_rejected_with_underscores_in_headers'), 1);
      assert.equal(bench.proxy.httpStat('downstream_rq_tx_reset'), protocol === 'HTTP/2' ? 1 : 0);
      assert.equal(bench.proxy.httpStat('downstream_rq_4xx'), protocol === 'HTTP/2' ? 0 : 1);
      await eventually(() => bench.proxy.httpStat('downstream_rq_active') === 0, 'no request left');
    });

    test('is refused in trailers', async (t) => {
      const bench = await managerBench(t, action('REJECT_REQUEST'), { answer: '', cluster: { enableTrailers: true } });
      const { status } = await bench.ask(protocol, { method: 'POST', trailers: [['x_t', '1']] });
      assert.equal(status, protocol === 'HTTP/2' ? 0 : 400);
      assert.equal(bench.proxy[stat]('requests_rejected_with_underscores_in_headers'), 1);
    });
  });

  test(`over ${protocol} logs say why a request was turned away`, async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-form-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'log');
    const typed_config = {
      '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
      path: file,
      log_format: {
        text_format_source: {
          inline_string: '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %REQ(:PATH)%\n',
        },
      },
    };
    const bench = await managerBench(t, {
      ...REJECT,
      normalize_path: true,
      common_http_protocol_options: { headers_with_underscores_action: 'REJECT_REQUEST' },
      access_log: [{ name: 'envoy.access_loggers.file', typed_config }],
    });
    await bench.ask(protocol, { path: '/a%2fb' });
    await bench.ask(protocol, { headers: [['x_a', '1']] });
    await bench.ask(protocol, { path: '/a/../b' });
    await eventually(() => bench.proxy.httpStat('downstream_rq_active') === 0, 'no request left');
    await bench.proxy.close();
    const [first, second, third] = readFileSync(file, 'utf8').split('\n');
    assert.match(first!, /^400 - path_normalization_failed/);
    const codec = protocol === 'HTTP/2' ? 'http2' : 'http1';
    assert.ok(second!.startsWith(`${protocol === 'HTTP/2' ? 0 : 400} DPE ${codec}.unexpected_underscore`), second!);
    assert.equal(third, '200 - via_upstream /b');
  });
}

test('a CONNECT keeps its port', async (t) => {
  const bench = await managerBench(t, {
    strip_any_host_port: true,
    strip_trailing_host_dot: true,
    normalize_path: true,
    upgrade_configs: [{ upgrade_type: 'CONNECT' }],
    route_config: {
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { connect_matcher: {} }, route: { cluster: 'web' } }] },
      ],
    },
  });
  await bench.ask('HTTP/1.1', { method: 'CONNECT', path: 'a.test.:80', host: 'a.test.:80' });
  assert.match(bench.head(), /^CONNECT a\.test:80 HTTP\/1\.1\r\nhost: a\.test:80\r\n/);
});

test('ports are stripped in one way', () => {
  const fields = { http_filters: [ROUTER], strip_any_host_port: true, strip_matching_host_port: true };
  assert.match(managerFaults(fields).join('\n'), /strip_any_host_port: only one of this and strip_matching_host_port/);
});
