import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DEFAULT_TAG_NAMES, DEFAULT_TAGS } from '../../../src/base/default-stat-tags.ts';
import { WeirError } from '../../../src/base/errors.ts';
import { cleanStatName } from '../../../src/stats/tags/name-tokens.ts';
import { TagProducer } from '../../../src/stats/tags/tag-producer.ts';
import { cpuTimeMs } from '../../support/cpu-time.ts';

const producer = new TagProducer();

interface Row {
  readonly name: string;
  readonly extracted: string;
  /** Tag names without their prefix. */
  readonly tags: Readonly<Record<string, string>>;
}

const ROWS: readonly Row[] = [
  { name: 'server.uptime', extracted: 'server.uptime', tags: {} },
  {
    name: 'cluster.web.upstream_rq_200',
    extracted: 'cluster.upstream_rq',
    tags: { cluster_name: 'web', response_code: '200' },
  },
  {
    name: 'cluster.web.upstream_rq_2xx',
    extracted: 'cluster.upstream_rq_xx',
    tags: { cluster_name: 'web', response_code_class: '2' },
  },
  { name: 'cluster.web.upstream_rq_0rtt', extracted: 'cluster.upstream_rq_0rtt', tags: { cluster_name: 'web' } },
  { name: 'cluster.web.upstream_rq_2000', extracted: 'cluster.upstream_rq_2000', tags: { cluster_name: 'web' } },
  { name: 'cluster.web.upstream_cx_total', extracted: 'cluster.upstream_cx_total', tags: { cluster_name: 'web' } },
  {
    name: 'cluster.web.circuit_breakers.default.cx_open',
    extracted: 'cluster.circuit_breakers.default.cx_open',
    tags: { cluster_name: 'web' },
  },
  {
    name: 'cluster.web.retry.upstream_rq_503',
    extracted: 'cluster.retry.upstream_rq',
    tags: { cluster_name: 'web', response_code: '503' },
  },
  { name: 'cluster_manager.active_clusters', extracted: 'cluster_manager.active_clusters', tags: {} },
  {
    name: 'http.in.downstream_rq_total',
    extracted: 'http.downstream_rq_total',
    tags: { http_conn_manager_prefix: 'in' },
  },
  {
    name: 'listener.0.0.0.0_80.http.in.downstream_rq_2xx',
    extracted: 'listener.http.downstream_rq_xx',
    tags: { http_conn_manager_prefix: 'in', listener_address: '0.0.0.0_80', response_code_class: '2' },
  },
  {
    name: 'listener.0.0.0.0_80.downstream_cx_total',
    extracted: 'listener.downstream_cx_total',
    tags: { listener_address: '0.0.0.0_80' },
  },
  {
    name: 'listener.[__1]_80.downstream_cx_total',
    extracted: 'listener.downstream_cx_total',
    tags: { listener_address: '[__1]_80' },
  },
  {
    name: 'listener.[2001_db8__ffff_1.2.3.4]_8443.downstream_cx_total',
    extracted: 'listener.downstream_cx_total',
    tags: { listener_address: '[2001_db8__ffff_1.2.3.4]_8443' },
  },
  {
    name: 'listener.ingress.downstream_cx_total',
    extracted: 'listener.downstream_cx_total',
    tags: { listener_address: 'ingress' },
  },
  { name: 'listener.admin.downstream_cx_total', extracted: 'listener.admin.downstream_cx_total', tags: {} },
  {
    name: 'listener.admin.http.admin.downstream_rq_2xx',
    extracted: 'listener.admin.http.downstream_rq_xx',
    tags: { http_conn_manager_prefix: 'admin', response_code_class: '2' },
  },
  {
    name: 'listener.127.0.0.1_80.worker_12.downstream_cx_active',
    extracted: 'listener.worker_downstream_cx_active',
    tags: { listener_address: '127.0.0.1_80', worker_id: '12' },
  },
  {
    name: 'listener_manager.worker_3.dispatcher.loop_duration_us',
    extracted: 'listener_manager.worker_dispatcher.loop_duration_us',
    tags: { worker_id: '3' },
  },
  { name: 'server.worker_0.watchdog_miss', extracted: 'server.worker_watchdog_miss', tags: { worker_id: '0' } },
  { name: 'server.worker_restarts', extracted: 'server.worker_restarts', tags: {} },
  { name: 'tcp.db.downstream_cx_total', extracted: 'tcp.downstream_cx_total', tags: { tcp_prefix: 'db' } },
  { name: 'udp.dns.idle_timeout', extracted: 'udp.idle_timeout', tags: { udp_prefix: 'dns' } },
  {
    name: 'vhost.shop.vcluster.cart.upstream_rq_200',
    extracted: 'vhost.vcluster.upstream_rq',
    tags: { virtual_host: 'shop', virtual_cluster: 'cart', response_code: '200' },
  },
  {
    name: 'vhost.shop.route.pay.upstream_rq_total',
    extracted: 'vhost.route.upstream_rq_total',
    tags: { virtual_host: 'shop', route: 'pay' },
  },
  {
    name: 'http.in.rds.my.route-config.v2.update_success',
    extracted: 'http.rds.update_success',
    tags: { http_conn_manager_prefix: 'in', rds_route_config: 'my.route-config.v2' },
  },
  {
    name: 'http.in.user_agent.ios.downstream_cx_total',
    extracted: 'http.user_agent.downstream_cx_total',
    tags: { http_conn_manager_prefix: 'in', http_user_agent: 'ios' },
  },
  {
    name: 'http.in.fault.mobile.aborts_injected',
    extracted: 'http.fault.aborts_injected',
    tags: { http_conn_manager_prefix: 'in', fault_downstream_cluster: 'mobile' },
  },
  {
    name: 'http.in.fault.aborts_injected',
    extracted: 'http.fault.aborts_injected',
    tags: { http_conn_manager_prefix: 'in' },
  },
  {
    name: 'cluster.grpc_backend.grpc.Greeter.SayHello.success',
    extracted: 'cluster.grpc.success',
    tags: { cluster_name: 'grpc_backend', grpc_bridge_service: 'Greeter', grpc_bridge_method: 'SayHello' },
  },
  {
    name: 'listener.0.0.0.0_443.ssl.ciphers.AES256-GCM-SHA384',
    extracted: 'listener.ssl.ciphers',
    tags: { listener_address: '0.0.0.0_443', ssl_cipher: 'AES256-GCM-SHA384' },
  },
  {
    name: 'listener.0.0.0.0_443.ssl.cipher.AES128-SHA',
    extracted: 'listener.ssl.cipher',
    tags: { listener_address: '0.0.0.0_443', ssl_cipher: 'AES128-SHA' },
  },
  {
    name: 'cluster.web.ssl.ciphers.AES128-SHA',
    extracted: 'cluster.ssl.ciphers',
    tags: { cluster_name: 'web', '=cipher_suite': 'AES128-SHA' },
  },
  {
    name: 'cluster.web.ssl.curves.X25519',
    extracted: 'cluster.ssl.curves',
    tags: { cluster_name: 'web', ssl_curve: 'X25519' },
  },
  {
    name: 'listener.in.ssl.sigalgs.ed25519',
    extracted: 'listener.ssl.sigalgs',
    tags: { listener_address: 'in', ssl_sigalg: 'ed25519' },
  },
  {
    name: 'listener.1.2.3.4_1.ssl.versions.TLSv1.3',
    extracted: 'listener.ssl.versions',
    tags: { listener_address: '1.2.3.4_1', ssl_version: 'TLSv1.3' },
  },
  {
    name: 'cluster.web.ssl.versions.TLSv1.2',
    extracted: 'cluster.ssl.versions',
    tags: { cluster_name: 'web', ssl_version: 'TLSv1.2' },
  },
  {
    name: 'auth.clientssl.corp.auth_ip_allowlist',
    extracted: 'auth.clientssl.auth_ip_allowlist',
    tags: { clientssl_prefix: 'corp' },
  },
  { name: 'ratelimit.edge.over_limit', extracted: 'ratelimit.over_limit', tags: { ratelimit_prefix: 'edge' } },
  {
    name: 'burst.http_local_rate_limit.rate_limited',
    extracted: 'http_local_rate_limit.rate_limited',
    tags: { local_http_ratelimit_prefix: 'burst' },
  },
  {
    name: 'local_rate_limit.tcp_in.rate_limited',
    extracted: 'local_rate_limit.rate_limited',
    tags: { local_network_ratelimit_prefix: 'tcp_in' },
  },
  {
    name: 'listener_local_ratelimit.tcp_in.rate_limited',
    extracted: 'listener_local_ratelimit.rate_limited',
    tags: { local_listener_ratelimit_prefix: 'tcp_in' },
  },
  {
    name: 'cluster.web.ext_authz.opa.denied',
    extracted: 'cluster.ext_authz.denied',
    tags: { cluster_name: 'web', ext_authz_prefix: 'opa' },
  },
  {
    name: 'http.in.ext_authz.opa.ok',
    extracted: 'http.ext_authz.ok',
    tags: { http_conn_manager_prefix: 'in', ext_authz_prefix: 'opa' },
  },
  {
    name: 'mongo.main.cmd.find.total',
    extracted: 'mongo.cmd.total',
    tags: { mongo_prefix: 'main', mongo_cmd: 'find' },
  },
  {
    name: 'mongo.main.collection.users.query.total',
    extracted: 'mongo.collection.query.total',
    tags: { mongo_prefix: 'main', mongo_collection: 'users' },
  },
  {
    name: 'mongo.main.collection.users.callsite.login.query.total',
    extracted: 'mongo.collection.callsite.query.total',
    tags: { mongo_prefix: 'main', mongo_collection: 'users', mongo_callsite: 'login' },
  },
  {
    name: 'http.in.dynamodb.operation.Query.upstream_rq_total',
    extracted: 'http.dynamodb.operation.upstream_rq_total',
    tags: { http_conn_manager_prefix: 'in', dynamo_operation: 'Query' },
  },
  {
    name: 'http.in.dynamodb.table.orders.capacity.GetItem.__partition_id=ABC1234',
    extracted: 'http.dynamodb.table.capacity',
    tags: {
      http_conn_manager_prefix: 'in',
      dynamo_operation: 'GetItem',
      dynamo_table: 'orders',
      dynamo_partition_id: 'ABC1234',
    },
  },
  {
    name: 'http.in.dynamodb.error.orders.ThrottlingException',
    extracted: 'http.dynamodb.error.ThrottlingException',
    tags: { http_conn_manager_prefix: 'in', dynamo_table: 'orders' },
  },
  { name: 'thrift.rpc.request', extracted: 'thrift.request', tags: { thrift_prefix: 'rpc' } },
  { name: 'redis.cache.downstream_cx_total', extracted: 'redis.downstream_cx_total', tags: { redis_prefix: 'cache' } },
  {
    name: 'dns_filter.local.local_a_record_answers',
    extracted: 'dns_filter.local_a_record_answers',
    tags: { dns_filter_prefix: 'local' },
  },
];

for (const { name, extracted, tags } of ROWS) {
  test(`${name} is grouped as ${extracted}`, () => {
    const result = producer.produce(name);
    assert.equal(result.extractedName, extracted);
    const prefixed = Object.entries(tags).map(([tag, value]) => [
      tag.startsWith('=') ? tag.slice(1) : `proxy.${tag}`,
      value,
    ]);
    assert.deepEqual(Object.fromEntries(result.tags.map((tag) => [tag.name, tag.value])), Object.fromEntries(prefixed));
  });
}

test('every default tag has an example above', () => {
  const shown = new Set(ROWS.flatMap((row) => Object.keys(row.tags).map((tag) => tag.replace('=', ''))));
  assert.deepEqual(
    DEFAULT_TAG_NAMES.map((tag) => tag.replace('proxy.', '')).filter((tag) => !shown.has(tag)),
    [],
  );
  assert.equal(DEFAULT_TAG_NAMES.length, DEFAULT_TAGS.length + 2);
});

test('only the listed tags are extracted when not all defaults are wanted', () => {
  const chosen = new TagProducer({ useAllDefaultTags: false, defaultTags: ['proxy.response_code'] });
  const result = chosen.produce('cluster.web.upstream_rq_503');
  assert.deepEqual(result, {
    extractedName: 'cluster.web.upstream_rq',
    tags: [{ name: 'proxy.response_code', value: '503' }],
  });
  assert.throws(
    () => new TagProducer({ defaultTags: ['proxy.cluster_nme'] }),
    (error) => error instanceof WeirError && error.source === 'config' && error.message.includes('proxy.cluster_nme'),
  );
});

test('an expression of the operator cuts out its first group and takes the second as value', () => {
  const own = new TagProducer({
    regexTags: [
      { name: 'tenant', regex: /^cluster\.((t\d+)\.)/ },
      { name: 'tail', regex: /_(total)$/ },
    ],
    useAllDefaultTags: false,
  });
  assert.deepEqual(own.produce('cluster.t42.upstream_cx_total'), {
    extractedName: 'cluster.upstream_cx_',
    tags: [
      { name: 'tenant', value: 't42' },
      { name: 'tail', value: 'total' },
    ],
  });
});

test('fixed tags join every stat and change no name', () => {
  const fixed = new TagProducer({ fixedTags: [{ name: 'region', value: 'eu' }] });
  assert.deepEqual(fixed.produce('server.uptime'), {
    extractedName: 'server.uptime',
    tags: [{ name: 'region', value: 'eu' }],
  });
});

test('colons of addresses and cluster names are replaced in stat names', () => {
  assert.equal(cleanStatName('[::1]:80'), '[__1]_80');
  assert.equal(cleanStatName('outbound|80||a:b'), 'outbound|80||a_b');
});

test('whatever the name, extraction neither fails nor invents text, and values come from the name', () => {
  const segment = fc.oneof(
    fc.constantFrom(
      'cluster',
      'listener',
      'http',
      'worker_1',
      'ssl',
      'rds',
      'vhost',
      'vcluster',
      '1',
      '2_80',
      '',
      'upstream_rq_200',
    ),
    fc.string({ maxLength: 6 }),
  );
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 9 }), (segments) => {
      const name = segments.join('.');
      const { extractedName, tags } = producer.produce(name);
      let at = -1;
      for (const letter of extractedName) {
        at = name.indexOf(letter, at + 1);
        assert.ok(at >= 0, `${extractedName} is no shortening of ${name}`);
      }
      for (const { value } of tags) assert.ok(value.length > 0 && name.includes(value));
      assert.equal(new Set(tags.map((tag) => tag.name)).size, tags.length, 'each tag once');
    }),
    { numRuns: 500 },
  );
});

test('a hundred thousand names are taken apart quickly, even hostile ones', () => {
  const spent = cpuTimeMs(() => {
    for (let n = 0; n < 100_000; n++) producer.produce(`cluster.service_${n % 5000}.upstream_rq_${n % 900}`);
    producer.produce(`http.${'rds.'.repeat(50_000)}x`);
    producer.produce(`listener.${'1.'.repeat(50_000)}`);
  });
  // About 0.15 s on a slow machine; something quadratic would take minutes.
  assert.ok(spent < 10_000, `${spent} ms`);
});

test("an operator's rule takes the place of the default of its name", () => {
  const regexTags = [{ name: 'proxy.cluster_name', regex: /^cluster\.((.+)_v\d+\.)/d }];
  const { extractedName, tags } = new TagProducer({ regexTags }).produce('cluster.web_v2.upstream_rq_503');
  assert.equal(extractedName, 'cluster.upstream_rq');
  assert.deepEqual(tags, [
    { name: 'proxy.response_code', value: '503' },
    { name: 'proxy.cluster_name', value: 'web' },
  ]);
});
