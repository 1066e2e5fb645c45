// Forward proxies in the real program: curl and raw clients that name hosts, a DNS server that knows them, and upstreams behind.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { httpFilter, type Json, type JsonObject, listenerWith, ROUTER, socketAddress } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { runProgram } from '../support/child-process.ts';
import { DnsServer } from '../support/dns-server.ts';
import { startEchoUpstream } from '../support/echo-upstream.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { unusedPort, WireClient } from '../support/wire.ts';

const TYPES = 'type.googleapis.com/envoy.extensions';

interface Options {
  readonly cache?: JsonObject;
  readonly cluster?: JsonObject;
  readonly config?: JsonObject;
  readonly route?: JsonObject;
  readonly perRoute?: JsonObject;
  readonly filters?: readonly Json[];
  readonly listeners?: readonly Json[];
  readonly args?: readonly string[];
}

function dnsCache(dns: DnsServer, fields: JsonObject = {}): JsonObject {
  return {
    name: 'hosts',
    dns_lookup_family: 'V4_ONLY',
    dns_resolution_config: {
      resolvers: [socketAddress('127.0.0.1', dns.port)],
      dns_resolver_options: { no_default_search_domain: true },
    },
    ...fields,
  };
}

function forwardFilter(dns: DnsServer, fields: JsonObject = {}): JsonObject {
  return {
    name: 'envoy.filters.http.dynamic_forward_proxy',
    typed_config: {
      '@type': `${TYPES}.filters.http.dynamic_forward_proxy.v3.FilterConfig`,
      dns_cache_config: dnsCache(dns, fields),
    },
  };
}

async function start(dns: DnsServer, options: Options = {}): Promise<{ weir: WeirProcess; port: number }> {
  const perRoute = options.perRoute && {
    typed_per_filter_config: {
      'envoy.filters.http.dynamic_forward_proxy': {
        '@type': `${TYPES}.filters.http.dynamic_forward_proxy.v3.PerRouteConfig`,
        ...options.perRoute,
      },
    },
  };
  const routes = [
    {
      match: { connect_matcher: {} },
      route: { cluster: 'web', upgrade_configs: [{ upgrade_type: 'CONNECT', connect_config: {} }] },
    },
    { match: { prefix: '/' }, route: { cluster: 'web', ...options.route }, ...perRoute },
  ];
  const access_log = [
    {
      name: 'envoy.access_loggers.stdout',
      typed_config: {
        '@type': `${TYPES}.access_loggers.stream.v3.StdoutAccessLog`,
        log_format: {
          text_format_source: { inline_string: 'flags=%RESPONSE_FLAGS% details=%RESPONSE_CODE_DETAILS%\n' },
        },
      },
    },
  ];
  const http = httpFilter({
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
    http_filters: options.filters ?? [forwardFilter(dns, options.cache), ROUTER],
    upgrade_configs: [{ upgrade_type: 'CONNECT' }],
    access_log,
  });
  const weir = await startWeir({
    configYaml: JSON.stringify({
      admin: { address: socketAddress('127.0.0.1', 0) },
      static_resources: {
        listeners: [listenerWith([http], { address: socketAddress('127.0.0.1', 0) }), ...(options.listeners ?? [])],
        clusters: [
          {
            name: 'web',
            lb_policy: 'CLUSTER_PROVIDED',
            cluster_type: {
              name: 'envoy.clusters.dynamic_forward_proxy',
              typed_config: {
                '@type': `${TYPES}.clusters.dynamic_forward_proxy.v3.ClusterConfig`,
                dns_cache_config: dnsCache(dns, options.cache),
                ...options.config,
              },
            },
            ...options.cluster,
          },
        ],
      },
    }),
    args: ['--file-flush-interval-msec', '50', ...(options.args ?? ['--concurrency', '2'])],
  });
  return { weir, port: (await weir.listeners()).get('main')!.port };
}

async function curl(...args: readonly string[]): Promise<string> {
  const { stdout } = await runProgram('curl', ['-s', '--max-time', '20', ...args]);
  return stdout;
}

async function ask(port: number, target: string, host: string): Promise<{ status: number; body: string }> {
  const client = new WireClient(port).write(`GET ${target} HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
  const answer = await client.response();
  client.close();
  return answer;
}

describe('a forward proxy', () => {
  it('takes curl -x to the hosts it names, looks each up once, and counts', async () => {
    await using dns = await DnsServer.start();
    await using first = await startEchoUpstream('first');
    await using second = await startEchoUpstream('second');
    dns.set('first.test', ['127.0.0.1'], 300);
    dns.set('second.test', ['127.0.0.1'], 300);
    const { weir, port } = await start(dns);
    await using _ = weir;
    const proxy = `http://127.0.0.1:${port}`;
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_entry, index) =>
        curl(
          '-x',
          proxy,
          `http://${index % 2 === 0 ? 'FIRST' : 'second'}.test:${(index % 2 === 0 ? first : second).port}/a?b`,
        ),
      ),
    );
    for (const [index, answer] of answers.entries()) {
      const { upstream, path, host } = JSON.parse(answer);
      assert.equal(upstream, index % 2 === 0 ? 'first' : 'second');
      assert.equal(path, '/a?b');
      assert.equal(host.toLowerCase(), `${upstream}.test:${(index % 2 === 0 ? first : second).port}`);
    }
    assert.deepEqual(dns.queries.toSorted(), ['first.test A', 'second.test A']);
    assert.equal(await weir.stat('dns_cache.hosts.num_hosts'), 2);
    assert.equal(await weir.stat('dns_cache.hosts.host_added'), 2);
    assert.equal(await weir.stat('dns_cache.hosts.host_address_changed'), 2);
    assert.equal(await weir.stat('dns_cache.hosts.dns_query_attempt'), 2);
    assert.equal(await weir.stat('dns_cache.hosts.dns_query_success'), 2);
    assert.equal(await weir.stat('dns_cache.hosts.circuit_breakers.rq_pending_open'), 0);
    assert.equal(await weir.stat('dns_cache.hosts.circuit_breakers.rq_pending_remaining'), 1024);
    assert.equal(await weir.stat('cluster.web.membership_total'), 2);
    assert.match(
      await weir.admin('/clusters'),
      new RegExp(`^web::127.0.0.1:${first.port}::hostname::first.test$`, 'm'),
    );
  });

  it('carries a tunnel by CONNECT, and takes addresses without asking anybody', async () => {
    await using dns = await DnsServer.start();
    await using upstream = await startEchoUpstream('tunnel');
    dns.set('tunnel.test', ['127.0.0.1'], 300);
    const { weir, port } = await start(dns);
    await using _ = weir;
    const args = ['-x', `http://127.0.0.1:${port}`, '-p'];
    assert.equal(JSON.parse(await curl(...args, `http://tunnel.test:${upstream.port}/`)).upstream, 'tunnel');
    assert.equal(JSON.parse(await curl(...args, `http://127.0.0.1:${upstream.port}/`)).upstream, 'tunnel');
    assert.deepEqual(dns.queries, ['tunnel.test A']);
  });

  it('answers 503 with DF for a name without an address, and asks for it once', async () => {
    await using dns = await DnsServer.start();
    const { weir, port } = await start(dns);
    await using _ = weir;
    for (let n = 0; n < 3; n += 1) {
      const { status, body } = await ask(port, '/', 'nowhere.test:81');
      assert.deepEqual([status, body], [503, 'DNS resolution failure']);
    }
    assert.deepEqual(dns.queries, ['nowhere.test A']);
    assert.equal(await weir.stat('dns_cache.hosts.dns_query_failure'), 1);
    await untilEqual(3, () => weir.output.stdout.match(/flags=DF details=dns_resolution_failure/g)?.length ?? 0, 'it');
  });

  it('asks nobody for what is no host name', async () => {
    await using dns = await DnsServer.start();
    const { weir, port } = await start(dns);
    await using _ = weir;
    assert.equal((await ask(port, '/', `${'a'.repeat(64)}.test`)).status, 503);
    assert.equal((await ask(port, '/', 'ok.test:0')).status, 503);
    assert.deepEqual(dns.queries, []);
  });

  it('takes no more hosts than max_hosts, and lets no more wait than its breaker', async () => {
    await using dns = await DnsServer.start();
    const { weir, port } = await start(dns, {
      cache: { max_hosts: 1, dns_cache_circuit_breaker: { max_pending_requests: 1 }, dns_query_timeout: '0s' },
    });
    await using _ = weir;
    const { promise: held, resolve } = Promise.withResolvers<void>();
    dns.onUdpQuery = () => held;
    dns.set('one.test', ['127.0.0.1'], 300);
    const unused = await unusedPort();
    const waiting = ask(port, '/', `one.test:${unused}`);
    await untilEqual(1, () => weir.stat('dns_cache.hosts.circuit_breakers.rq_pending_open'), 'it');
    const refused = await ask(port, '/', `one.test:${unused}`);
    assert.equal(refused.status, 503);
    assert.match(refused.body, /overflow/);
    assert.equal(await weir.stat('dns_cache.hosts.dns_rq_pending_overflow'), 1);
    resolve();
    assert.match((await waiting).body, /connection failure/);
    await untilEqual(0, () => weir.stat('dns_cache.hosts.circuit_breakers.rq_pending_open'), 'it');
    assert.match((await ask(port, '/', 'two.test')).body, /overflow/);
    assert.equal(await weir.stat('dns_cache.hosts.host_overflow'), 1);
    await untilEqual(true, () => /flags=UO/.test(weir.output.stdout), 'it');
  });

  it('gives up a silent server after dns_query_timeout', async () => {
    await using dns = await DnsServer.start();
    const { weir, port } = await start(dns, { cache: { dns_query_timeout: '0.2s' } });
    await using _ = weir;
    dns.onUdpQuery = () => new Promise(() => {});
    assert.equal((await ask(port, '/', 'silent.test')).body, 'DNS resolution failure');
    assert.equal(await weir.stat('dns_cache.hosts.dns_query_timeout'), 1);
    assert.equal(await weir.stat('dns_cache.hosts.dns_query_failure'), 1);
  });

  it('looks up at the start what it is told to, and forgets hosts that nobody uses', async () => {
    await using dns = await DnsServer.start();
    dns.set('early.test', ['127.0.0.1'], 0);
    const { weir } = await start(dns, {
      cache: {
        preresolve_hostnames: [{ address: 'early.test', port_value: 80 }],
        dns_refresh_rate: '0.05s',
        host_ttl: '0.2s',
      },
    });
    await using _ = weir;
    await untilEqual(1, () => weir.stat('dns_cache.hosts.host_removed'), 'it');
    assert.equal(await weir.stat('dns_cache.hosts.num_hosts'), 0);
    await untilEqual(0, () => weir.stat('cluster.web.membership_total'), 'it');
  });

  it('follows a name to another address', async () => {
    await using dns = await DnsServer.start();
    await using upstream = await startEchoUpstream('moved');
    dns.set('moving.test', ['127.0.0.2'], 0);
    const { weir, port } = await start(dns, { cache: { dns_refresh_rate: '0.05s' }, args: ['--concurrency', '1'] });
    await using _ = weir;
    const host = `moving.test:${upstream.port}`;
    assert.equal((await ask(port, '/', host)).status, 503);
    dns.set('moving.test', ['127.0.0.1'], 0);
    await untilEqual(200, async () => (await ask(port, '/', host)).status, 'it');
    assert.equal(await weir.stat('dns_cache.hosts.host_address_changed'), 2);
    assert.equal(await weir.stat('cluster.web.membership_total'), 1);
  });

  for (const [what, perRoute] of [
    ['literally', { host_rewrite_literal: 'HOST' }],
    ['by a header', { host_rewrite_header: 'x-to' }],
  ] as const) {
    it(`has a route name another host ${what}`, async () => {
      await using dns = await DnsServer.start();
      await using upstream = await startEchoUpstream('other');
      dns.set('other.test', ['127.0.0.1'], 300);
      const other = `other.test:${upstream.port}`;
      const text = JSON.stringify(perRoute).replace('HOST', other);
      const { weir, port } = await start(dns, { perRoute: JSON.parse(text) });
      await using _ = weir;
      const client = new WireClient(port).write(`GET / HTTP/1.1\r\nhost: given.test\r\nx-to: ${other}\r\n\r\n`);
      assert.equal(JSON.parse((await client.response()).body).host, other);
      client.close();
      assert.deepEqual(dns.queries, ['other.test A']);
    });
  }

  it('needs no filter', async () => {
    await using dns = await DnsServer.start();
    await using upstream = await startEchoUpstream('plain');
    dns.set('plain.test', ['127.0.0.1'], 300);
    const { weir, port } = await start(dns, { filters: [ROUTER] });
    await using _ = weir;
    assert.equal((await ask(port, '/', `plain.test:${upstream.port}`)).status, 200);
  });

  it('secures connections by the names of their hosts', async () => {
    await using dns = await DnsServer.start();
    using folder = new CertificateFolder();
    const ca = await folder.make('ca', { isAuthority: true });
    const { certificate: cert, key } = await folder.make('server', { issuer: ca, altNames: 'DNS:right.test' });
    const server = createHttpsServer({ cert, key }, (request, response) => {
      response.end(String((request.socket as TLSSocket & { readonly servername: string }).servername));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port: secured } = server.address() as AddressInfo;
    for (const name of ['right', 'wrong']) dns.set(`${name}.test`, ['127.0.0.1'], 300);
    const validation_context = { trusted_ca: { filename: ca.certificatePath } };
    const transport_socket = {
      name: 'tls',
      typed_config: {
        '@type': `${TYPES}.transport_sockets.tls.v3.UpstreamTlsContext`,
        common_tls_context: { validation_context },
      },
    };
    const { weir, port } = await start(dns, { cluster: { transport_socket } });
    try {
      assert.deepEqual(await bodyOf(port, `right.test:${secured}`), [200, 'right.test']);
      const [status, text] = await bodyOf(port, `wrong.test:${secured}`);
      assert.equal(status, 503);
      assert.match(text, /CERTIFICATE_VERIFY_FAILED|verify/i);
    } finally {
      await weir[Symbol.asyncDispose]();
      server.close();
    }
  });
});

async function bodyOf(port: number, host: string): Promise<[number, string]> {
  const { status, body } = await ask(port, '/', host);
  return [status, body];
}
