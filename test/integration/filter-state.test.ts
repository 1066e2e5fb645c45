// What network filters say of connections to those behind them: set_filter_state and sni_dynamic_forward_proxy, and who reads it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { httpFilter, type JsonObject, socketAddress, tcpFilter } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { clientHello } from '../support/client-hello.ts';
import { DnsServer } from '../support/dns-server.ts';
import { errorsOf, filter, logTo, named, running, V2, V3 } from '../support/network-filter-proxy.ts';

const SET = `${V3}.set_filter_state.v3.Config`;
const FORWARD = `${V3}.sni_dynamic_forward_proxy.v3.FilterConfig`;
const TYPES = 'type.googleapis.com/envoy.extensions';
const INSPECTOR = { listener_filters: [{ name: 'envoy.filters.listener.tls_inspector' }] };

function value(object_key: string, text: string, fields: JsonObject = {}): JsonObject {
  return { object_key, format_string: { text_format_source: { inline_string: text } }, ...fields };
}

function saying(...values: JsonObject[]): JsonObject {
  return filter(SET, { on_new_connection: values });
}

function dnsCache(dns: DnsServer): JsonObject {
  return {
    name: 'hosts',
    dns_lookup_family: 'V4_ONLY',
    dns_resolution_config: {
      resolvers: [socketAddress('127.0.0.1', dns.port)],
      dns_resolver_options: { no_default_search_domain: true },
    },
  };
}

function forwarding(dns: DnsServer): JsonObject {
  const typed_config = {
    '@type': `${TYPES}.clusters.dynamic_forward_proxy.v3.ClusterConfig`,
    dns_cache_config: dnsCache(dns),
  };
  return {
    lb_policy: 'CLUSTER_PROVIDED',
    load_assignment: null,
    cluster_type: { name: 'envoy.clusters.dynamic_forward_proxy', typed_config },
  };
}

describe('set_filter_state', () => {
  test('chooses the cluster of the TCP proxy, and logs show what was said', async (t) => {
    const [web, a] = [await named(t, 'web'), await named(t, 'a')];
    const log = logTo(t, '%FILTER_STATE(envoy.tcp_proxy.cluster:PLAIN)% %FILTER_STATE(own)% %FILTER_STATE(none)%');
    const values = [
      value('envoy.tcp_proxy.cluster', '%REQUESTED_SERVER_NAME%', { skip_if_empty: true }),
      value('own', 'from %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%', { factory_key: 'envoy.string' }),
    ];
    const tcp = tcpFilter({ stat_prefix: 'raw', access_log: log.access_log });
    const { client, proxy } = await running(t, [saying(...values), tcp], {
      listener: INSPECTOR,
      clusters: { web: web.port, 'a.example': a.port },
    });
    const [named_, nameless] = [client().write(clientHello({ serverName: 'a.example' })), client().write('no TLS')];
    assert.equal(await named_.until('a:'), 'a:');
    assert.equal(await nameless.until('web:'), 'web:');
    await proxy.close();
    assert.deepEqual(log.lines().toSorted(), [
      String.raw`- \x22from 127.0.0.1\x22 -`,
      String.raw`a.example \x22from 127.0.0.1\x22 -`,
    ]);
  });

  test('chooses routes of HTTP', async (t) => {
    const answer = (text: string) => ({ direct_response: { status: 200, body: { inline_string: text } } });
    const within = (address_prefix: string) => ({ ranges: [{ address_prefix, prefix_len: 8 }] });
    const routes = [
      {
        match: { prefix: '/', filter_state: [{ key: 'client', address_match: within('10.0.0.0') }] },
        ...answer('far'),
      },
      { match: { prefix: '/', filter_state: [{ key: 'client', string_match: { prefix: '128' } }] }, ...answer('else') },
      {
        match: { prefix: '/', filter_state: [{ key: 'client', address_match: within('127.0.0.0') }] },
        ...answer('near'),
      },
    ];
    const http = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
    const said = saying(value('client', '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%'));
    const { client } = await running(t, [said, http], { clusters: {} });
    assert.match(await client().write('GET / HTTP/1.1\r\nhost: a\r\n\r\n').until('near'), /^HTTP\/1.1 200 OK/);
  });

  test('leaves alone what is not to be said again, and fills in what has been said before', async (t) => {
    const web = await named(t, 'web');
    const log = logTo(t, '%FILTER_STATE(a:PLAIN)% %FILTER_STATE(b:PLAIN)% %FILTER_STATE(c:PLAIN)%');
    const first = [
      value('a', 'first', { read_only: true }),
      value('b', 'first'),
      value('c', '<%FILTER_STATE(a:PLAIN)%>'),
    ];
    const later = [value('a', 'later'), value('b', 'later', { shared_with_upstream: 'ONCE' })];
    const tcp = tcpFilter({ stat_prefix: 'raw', access_log: log.access_log });
    const { client, proxy } = await running(t, [saying(...first), saying(...later), tcp], {
      clusters: { web: web.port },
    });
    assert.equal(await client().write('x').until('web:x'), 'web:x');
    await proxy.close();
    assert.deepEqual(log.lines(), ['first later <first>']);
  });

  test('says how long the TCP proxy waits in silence', async (t) => {
    const web = await named(t, 'web');
    const log = logTo(t, '%CONNECTION_TERMINATION_DETAILS%');
    const idle = value('envoy.tcp_proxy.per_connection_idle_timeout_ms', '50');
    const tcp = tcpFilter({ stat_prefix: 'raw', idle_timeout: '3600s', access_log: log.access_log });
    const { client, proxy, stat } = await running(t, [saying(idle), tcp], { clusters: { web: web.port } });
    assert.equal(await client().rest(), 'web:');
    assert.equal(stat('tcp.raw.idle_timeout'), 1);
    await proxy.close();
    assert.deepEqual(log.lines(), ['tcp_session_idle_timeout']);
  });

  test('says what name the upstream is asked for', async (t) => {
    using folder = new CertificateFolder();
    const { certificate, key } = await folder.make('up.test');
    const server = createTlsServer({ cert: certificate, key }, (socket) => socket.end(`for ${socket.servername}`));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => server.close());
    const transport_socket = {
      name: 'envoy.transport_sockets.tls',
      typed_config: { '@type': `${TYPES}.transport_sockets.tls.v3.UpstreamTlsContext`, sni: 'usual.test' },
    };
    const name = value('envoy.network.upstream_server_name', 'special.test');
    const clusters = { web: (server.address() as AddressInfo).port };
    const options = { clusters, clusterFields: { web: { transport_socket } } };
    const special = await running(t, [saying(name), tcpFilter({ stat_prefix: 'raw' })], options);
    assert.equal(await special.client().rest(), 'for special.test');
    const usual = await running(t, [tcpFilter({ stat_prefix: 'raw' })], options);
    assert.equal(await usual.client().rest(), 'for usual.test');
  });

  test('names the host of a forward proxy', async (t) => {
    await using dns = await DnsServer.start();
    dns.set('up.test', ['127.0.0.1']);
    const up = await named(t, 'up');
    const values = [
      value('envoy.upstream.dynamic_host', 'up.test'),
      value('envoy.upstream.dynamic_port', String(up.port)),
    ];
    const { client } = await running(t, [saying(...values), tcpFilter({ stat_prefix: 'raw' })], {
      clusters: { web: 0 },
      clusterFields: { web: forwarding(dns) },
    });
    assert.equal(await client().write('x').until('up:x'), 'up:x');
    assert.deepEqual(dns.queries, ['up.test A']);
  });

  for (const [what, fields, fault] of [
    [
      'a name that nothing reads',
      value('envoy.ratelimit.hits_addend', '1'),
      /object_key: "envoy.ratelimit.hits_addend" is read by nothing here; there are /,
    ],
    [
      'an object that is no text',
      value('own', 'a', { factory_key: 'envoy.network.ip' }),
      /factory_key: "envoy.network.ip" is no kind of text/,
    ],
    [
      'JSON',
      { object_key: 'own', format_string: { json_format: { a: 'b' } } },
      /json_format: is no text: use text_format_source/,
    ],
    ['an operator that there is not', value('own', '%NOTHING%'), /unknown command operator "NOTHING"/],
    ['no name', { format_string: { text_format: 'a' } }, /on_new_connection\[0\]: /],
  ] as const) {
    test(`is refused with ${what}`, () => {
      assert.match(errorsOf(saying(fields as JsonObject), tcpFilter({})).join('\n'), fault);
    });
  }
});

describe('sni_dynamic_forward_proxy', () => {
  for (const type of [FORWARD, `${V2}.sni_dynamic_forward_proxy.v2alpha.FilterConfig`]) {
    test(`connects to the host that TLS names, as ${type.slice(type.lastIndexOf('/') + 1)}`, async (t) => {
      await using dns = await DnsServer.start();
      dns.set('up.test', ['127.0.0.1']);
      const up = await named(t, 'up');
      const log = logTo(t, '%UPSTREAM_HOST% %RESPONSE_FLAGS%');
      const forward = filter(type, { dns_cache_config: dnsCache(dns), port_value: up.port });
      const tcp = tcpFilter({ stat_prefix: 'raw', access_log: log.access_log });
      const { client, proxy } = await running(t, [forward, tcp], {
        listener: INSPECTOR,
        clusters: { web: 0 },
        clusterFields: { web: forwarding(dns) },
      });
      const hello = (serverName: string): Buffer => clientHello({ serverName });
      assert.equal(await client().write(hello('up.test')).until('up:'), 'up:');
      assert.equal(await client().write(hello('none.test')).rest(), '');
      assert.equal(await client().write('no TLS').rest(), '');
      assert.deepEqual(dns.queries.toSorted(), ['none.test A', 'up.test A']);
      await proxy.close();
      assert.deepEqual(log.lines().toSorted(), ['- DF', '- UH', `127.0.0.1:${up.port} -`]);
    });
  }

  test('is refused where its cache is not that of the cluster, and with a port that is none', async () => {
    await using dns = await DnsServer.start();
    const [missing] = errorsOf(filter(FORWARD), tcpFilter({}));
    assert.match(missing!, /dns_cache_config/);
    const wrong = errorsOf(filter(FORWARD, { dns_cache_config: dnsCache(dns), port_value: 70_000 }), tcpFilter({}));
    assert.match(wrong.join('\n'), /port_value/);
  });
});
