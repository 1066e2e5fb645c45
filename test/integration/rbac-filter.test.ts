// The rbac filter through the whole proxy: every kind of permission and principal, what is told of a decision, and clients with
// certificates.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { ROUTER } from '../support/bootstrap.ts';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { Http2Client } from '../support/http2-clients.ts';
import { getOverTls } from '../support/tls-client.ts';
import { pair, tlsListener } from '../support/tls-config.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPE = 'rbac.v3.RBAC';
const PER_ROUTE = 'rbac.v3.RBACPerRoute';
const ANY = { any: true };

function policy(permissions: JsonObject[], principals: JsonObject[] = [ANY]): JsonObject {
  return { permissions, principals };
}

const rules = (policies: JsonObject, action = 'ALLOW'): JsonObject => ({ action, policies });
const route = (prefix: string, rbac: JsonObject, fields: JsonObject = {}): JsonObject =>
  routeTo(prefix, { rbac: typed(PER_ROUTE, { rbac }) }, fields);
/** Who is allowed is who this holds of. */
const may = (prefix: string, permission: JsonObject): JsonObject =>
  route(prefix, { rules: rules({ p: policy([permission]) }) });
const mayBe = (prefix: string, principal: JsonObject): JsonObject =>
  route(prefix, { rules: rules({ p: policy([ANY], [principal]) }) });

const range = (address_prefix: string, prefix_len: number): JsonObject => ({ address_prefix, prefix_len });
const header = (name: string, exact: string): JsonObject => ({ header: { name, string_match: { exact } } });
const template = (path_template: string): JsonObject => ({
  uri_template: {
    name: 'envoy.path.match.uri_template.uri_template_matcher',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig',
      path_template,
    },
  },
});
const LOOPBACK = range('127.0.0.0', 8);
const ELSEWHERE = range('192.0.2.0', 24);
const metadata = (value: JsonObject, key = 'kind', fields: JsonObject = {}): JsonObject => ({
  metadata: { filter: 'm', path: [{ key }], value, ...fields },
});

const RAW: [name: string, rule: JsonObject, path: string, fields: Record<string, string>, expected: boolean][] = [
  ['and', { and_rules: { rules: [header('x-a', '1'), header('x-b', '2')] } }, '', { 'x-a': '1', 'x-b': '2' }, true],
  ['and', { and_rules: { rules: [header('x-a', '1'), header('x-b', '2')] } }, '', { 'x-a': '1' }, false],
  ['or', { or_rules: { rules: [header('x-a', '1'), header('x-b', '2')] } }, '', { 'x-b': '2' }, true],
  ['or', { or_rules: { rules: [header('x-a', '1'), header('x-b', '2')] } }, '', {}, false],
  ['not', { not_rule: header('x-a', '1') }, '', {}, true],
  ['not', { not_rule: header('x-a', '1') }, '', { 'x-a': '1' }, false],
  ['method', header(':method', 'GET'), '', {}, true],
  ['other-method', header(':method', 'PUT'), '', {}, false],
  ['path', { url_path: { path: { suffix: '/end' } } }, '/end?x', {}, true],
  ['path', { url_path: { path: { suffix: '/end' } } }, '/other?x=/end', {}, false],
  ['template', template('/may-template/{user}/files/**'), 'ann/files/a/b?x=/c', {}, true],
  ['template', template('/may-template/{user}/files/**'), 'ann/other?x=/files/', {}, false],
  ['template', template('/may-template/{user}/files/**'), 'ann/bea/files/', {}, false],
  ['local', { destination_ip: LOOPBACK }, '', {}, true],
  ['elsewhere', { destination_ip: ELSEWHERE }, '', {}, false],
  ['all-ports', { destination_port_range: { start: 1, end: 65536 } }, '', {}, true],
  ['low-ports', { destination_port_range: { start: 1, end: 1024 } }, '', {}, false],
  ['port', { destination_port: 1 }, '', {}, false],
  ['no-name', { requested_server_name: { exact: '' } }, '', {}, true],
  ['a-name', { requested_server_name: { exact: 'a.example' } }, '', {}, false],
  ['string', metadata({ string_match: { prefix: 'go' } }), '', { 'x-kind': 'gold' }, true],
  ['string', metadata({ string_match: { prefix: 'go' } }), '', { 'x-kind': 'tin' }, false],
  ['no-metadata', metadata({ string_match: { prefix: 'go' } }, 'kind', { invert: true }), '', {}, true],
  ['present', metadata({ present_match: true }), '', { 'x-kind': '1' }, true],
  ['present', metadata({ present_match: true }), '', {}, false],
  ['present-object', metadata({ present_match: true }, 'deep'), '', {}, false],
  ['number', metadata({ double_match: { exact: 4 } }, 'number'), '', {}, true],
  ['other-number', metadata({ double_match: { exact: 5 } }, 'number'), '', {}, false],
  ['range', metadata({ double_match: { range: { start: 4, end: 5 } } }, 'number'), '', {}, true],
  ['other-range', metadata({ double_match: { range: { start: 3, end: 4 } } }, 'number'), '', {}, false],
  ['boolean', metadata({ bool_match: true }, 'boolean'), '', {}, true],
  ['other-boolean', metadata({ bool_match: false }, 'boolean'), '', {}, false],
  ['null', metadata({ null_match: {} }, 'null'), '', {}, true],
  ['no-null', metadata({ null_match: {} }, 'nothing'), '', {}, false],
  ['list', metadata({ list_match: { one_of: { string_match: { exact: 'b' } } } }, 'list'), '', {}, true],
  ['other-list', metadata({ list_match: { one_of: { string_match: { exact: 'c' } } } }, 'list'), '', {}, false],
  [
    'either',
    metadata({ or_match: { value_matchers: [{ bool_match: true }, { double_match: { exact: 4 } }] } }, 'number'),
    '',
    {},
    true,
  ],
  [
    'neither',
    metadata({ or_match: { value_matchers: [{ bool_match: true }, { null_match: {} }] } }, 'number'),
    '',
    {},
    false,
  ],
  [
    'deep',
    { metadata: { filter: 'm', path: [{ key: 'deep' }, { key: 'er' }], value: { bool_match: true } } },
    '',
    {},
    true,
  ],
  [
    'of-route',
    {
      sourced_metadata: {
        metadata_source: 'ROUTE',
        metadata_matcher: metadata({ bool_match: true }, 'route').metadata!,
      },
    },
    '',
    {},
    true,
  ],
  [
    'of-request',
    { sourced_metadata: { metadata_matcher: metadata({ bool_match: true }, 'boolean').metadata! } },
    '',
    {},
    true,
  ],
];
const FROM = { 'x-forwarded-for': '203.0.113.7' };
const IDS: [name: string, id: JsonObject, fields: Record<string, string>, expected: boolean][] = [
  ['direct', { direct_remote_ip: LOOPBACK }, FROM, true],
  ['not-direct', { direct_remote_ip: range('203.0.113.0', 24) }, FROM, false],
  ['source', { source_ip: LOOPBACK }, FROM, true],
  ['remote', { remote_ip: range('203.0.113.0', 24) }, FROM, true],
  ['not-remote', { remote_ip: LOOPBACK }, FROM, false],
  ['mapped', { remote_ip: range('::ffff:203.0.113.0', 120) }, FROM, true],
  ['six', { remote_ip: range('::', 0) }, FROM, false],
  ['who', header('x-a', '1'), { 'x-a': '1' }, true],
  ['who', header('x-a', '1'), {}, false],
  ['both', { and_ids: { ids: [header('x-a', '1'), { not_id: header('x-b', '2') }] } }, { 'x-a': '1' }, true],
  [
    'both',
    { and_ids: { ids: [header('x-a', '1'), { not_id: header('x-b', '2') }] } },
    { 'x-a': '1', 'x-b': '2' },
    false,
  ],
  [
    'one',
    { or_ids: { ids: [header('x-a', '1'), metadata({ string_match: { exact: 'gold' } })] } },
    { 'x-kind': 'gold' },
    true,
  ],
  ['there', { url_path: { path: { prefix: '/id-there' } } }, {}, true],
  ['secured', { authenticated: {} }, {}, false],
  ['set', { sourced_metadata: { metadata_matcher: metadata({ bool_match: true }, 'boolean').metadata! } }, {}, true],
];
/** Once for each place. */
const byName = <T>(
  rows: readonly (readonly [string, JsonObject, ...unknown[]])[],
  make: (name: string, rule: JsonObject) => T,
): T[] => [...new Map(rows.map(([name, rule]) => [name, rule] as const))].map(([name, rule]) => make(name, rule));

const verdict = (name: string, action: string): JsonObject => ({
  action: {
    name: 'a',
    typed_config: { '@type': 'type.googleapis.com/envoy.config.rbac.v3.Action', name, action },
  },
});
const input = (type: string, fields: JsonObject = {}): JsonObject => ({
  name: 'i',
  typed_config: { '@type': `type.googleapis.com/envoy.${type}`, ...fields },
});
const byAddress = (map: JsonObject): JsonObject => ({
  matcher: {
    matcher_tree: {
      input: input('extensions.matching.common_inputs.network.v3.DirectSourceIPInput'),
      exact_match_map: { map },
    },
  },
});
/** By role, then by address. */
const TREE: JsonObject = {
  matcher_tree: {
    input: input('type.matcher.v3.HttpRequestHeaderMatchInput', { header_name: 'x-role' }),
    exact_match_map: {
      map: {
        admin: verdict('admins', 'ALLOW'),
        'bad one': verdict('bad ones', 'DENY'),
        near: byAddress({ '127.0.0.1': verdict('near', 'LOG') }),
        nowhere: byAddress({ '192.0.2.1': verdict('far', 'ALLOW') }),
      },
    },
  },
};
const VALUES = { number: 4, boolean: true, null: null, list: ['a', 'b'], deep: { er: true } };
const ROUTES = [
  ...byName(RAW, (name, rule) => ({
    ...may(`/may-${name}/`, rule),
    metadata: { filter_metadata: { m: { route: true } } },
  })),
  ...byName(IDS, (name, id) => mayBe(`/id-${name}/`, id)),
  route('/deny', {
    rules: rules({ 'bad ones': policy([header('x-bad', '1')]), any: policy([header('x-a', '1')]) }, 'DENY'),
  }),
  route('/nobody', { rules: {} }),
  route('/log', { rules: rules({ seen: policy([header('x-a', '1')]) }, 'LOG') }),
  route('/shadow', {
    shadow_rules: rules({ some: policy([header('x-a', '1')]) }),
    shadow_rules_stat_prefix: 'try_',
    track_per_rule_stats: true,
  }),
  route('/counted', {
    rules: rules({ b: policy([ANY], [header('x-b', '2')]), a: policy([header('x-a', '1')]) }),
    track_per_rule_stats: true,
  }),
  route('/tree', { matcher: TREE }),
  route('/judged-by-tree', { shadow_matcher: TREE, shadow_rules_stat_prefix: 'tree_', track_per_rule_stats: true }),
  routeTo('/off', { rbac: typed(PER_ROUTE, {}) }),
  routeTo('/'),
];

describe('the rbac filter', () => {
  let folder: CertificateFolder;
  let ca: TestCertificate;
  let clients: TestCertificate[];
  let upstream: WireUpstream & { heads: string[] };
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let client: WireClient;

  before(async () => {
    folder = new CertificateFolder();
    ca = await folder.make('ca', { isAuthority: true });
    const own = await folder.make('own', { issuer: ca, altNames: 'DNS:a.example' });
    clients = [
      await folder.make('alice', { issuer: ca, altNames: 'DNS:alice.example,URI:spiffe://weir/alice' }),
      await folder.make('bob', { issuer: ca, altNames: 'DNS:bob.example' }),
      await folder.make('carol', { issuer: ca }),
      await folder.make('dave', { issuer: ca }),
    ];
    upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\nx-up: 1\r\ncontent-length: 0\r\n\r\n');
    const shown = '%DYNAMIC_METADATA(envoy.filters.http.rbac)%|%DYNAMIC_METADATA(envoy.common)%';
    const filters = [
      filterOf('header_mutation.v3.HeaderMutation', {
        mutations: { response_mutations: [{ append: { header: { key: 'x-told', value: shown } } }] },
      }),
      filterOf('set_metadata.v3.Config', { metadata: [{ metadata_namespace: 'm', value: VALUES }] }),
      filterOf('header_to_metadata.v3.Config', {
        request_rules: [{ header: 'x-kind', on_header_present: { metadata_namespace: 'm', key: 'kind' } }],
      }),
      filterOf(TYPE, {
        rules: rules({ own: policy([header('x-own', '1')]) }, 'DENY'),
        shadow_rules_stat_prefix: 'shadow',
      }),
    ];
    const manager = {
      use_remote_address: true,
      xff_num_trusted_hops: 1,
      local_reply_config: { body_format: { text_format: '%LOCAL_REPLY_BODY%|%RESPONSE_CODE_DETAILS%' } },
    };
    const principals = (exact: string): JsonObject => ({ authenticated: { principal_name: { exact } } });
    const secured = (name: string, principal: JsonObject, permission: JsonObject = ANY): object =>
      tlsListener(name, {
        common: { tls_certificates: [pair(own)], validation_context: { trusted_ca: { filename: ca.certificatePath } } },
        http: { http_filters: [filterOf(TYPE, { rules: rules({ p: policy([permission], [principal]) }) }), ROUTER] },
      });
    const listeners = [
      filteredListener(filters, ROUTES, { manager }),
      secured('any', { authenticated: {} }),
      secured('uri', principals('spiffe://weir/alice')),
      secured('dns', principals('bob.example')),
      secured('subject', { authenticated: { principal_name: { contains: 'carol' } } }),
      secured('name', ANY, { requested_server_name: { suffix: '.example' } }),
    ] as JsonObject[];
    proxy = await createProxy(
      bootstrapOf(listeners, [clusterAt('web', upstream.port)], { stats_flush_on_admin: true }),
    );
    client = new WireClient(proxy.listeners.get('main')!.port);
  });

  after(async () => {
    client?.close();
    await proxy?.close();
    await upstream?.close();
    folder?.[Symbol.dispose]?.();
  });

  async function ask(path: string, fields: Record<string, string> = {}) {
    const lines = Object.entries({ host: 'a', ...fields }).map(([name, value]) => `${name}: ${value}\r\n`);
    const { status, head, body } = await client.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`).response();
    const told = /^x-told: (.*)\r$/m
      .exec(head)![1]!
      .split('|')
      .map((text): unknown => (text === '' || text === '-' ? null : JSON.parse(text)));
    return { status, body, told };
  }

  const count = (name: string): number => proxy.stats.value(`http.main.rbac.${name}`) ?? 0;

  it('asks what is wanted', async () => {
    for (const [name, , rest, fields, isAllowed] of RAW) {
      const { status } = await ask(`/may-${name}/${rest}`, fields);
      assert.equal(status, isAllowed ? 200 : 403, `${name} ${JSON.stringify(fields)}`);
    }
  });

  it('asks who wants it', async () => {
    for (const [name, , fields, isAllowed] of IDS) {
      const { status } = await ask(`/id-${name}/`, fields);
      assert.equal(status, isAllowed ? 200 : 403, `${name} ${JSON.stringify(fields)}`);
    }
  });

  it('knows clients by their certificates', async () => {
    const [alice, bob, carol, dave] = clients.map(({ certificate, key }) => ({ cert: certificate, key }));
    const allows = async (listener: string, identity: object = {}): Promise<boolean> => {
      const answer = await getOverTls(proxy.listeners.get(listener)!.port, { ca: ca.certificate, ...identity });
      return answer.startsWith('HTTP/1.1 200');
    };
    assert.deepEqual([await allows('any', dave), await allows('any')], [true, false]);
    assert.deepEqual([await allows('uri', alice), await allows('uri', bob), await allows('uri')], [true, false, false]);
    assert.deepEqual([await allows('dns', bob), await allows('dns', alice)], [true, false]);
    assert.deepEqual([await allows('subject', carol), await allows('subject', dave)], [true, false]);
    assert.deepEqual(
      [await allows('name'), await allows('name', { servername: 'b.test', checkServerIdentity: () => undefined })],
      [true, false],
    );
  });

  it('denies by the first policy that fits, and says which', async () => {
    const before = [count('allowed'), count('denied')];
    const denied = await ask('/deny', { 'x-bad': '1' });
    assert.deepEqual(
      [denied.status, denied.body],
      [403, 'RBAC: access denied|rbac_access_denied_matched_policy[bad_ones]'],
    );
    assert.deepEqual(denied.told[0], { enforced_engine_result: 'denied', enforced_effective_policy_id: 'bad ones' });
    const first = await ask('/deny', { 'x-bad': '1', 'x-a': '1' });
    assert.match(first.body, /\[any\]$/);
    const allowed = await ask('/deny');
    assert.deepEqual([allowed.status, allowed.told[0]], [200, { enforced_engine_result: 'allowed' }]);
    assert.deepEqual([count('allowed') - before[0]!, count('denied') - before[1]!], [1, 2]);
    assert.match((await ask('/nobody')).body, /\[none\]$/);
  });

  it('goes by its own rules where a route has none, and by none where the route says so', async () => {
    assert.equal((await ask('/', { 'x-own': '1' })).status, 403);
    assert.equal((await ask('/')).status, 200);
    const off = await ask('/off', { 'x-own': '1' });
    assert.deepEqual([off.status, off.told[0]], [200, null]);
  });

  it('only marks what it is to log', async () => {
    const [seen, other] = [await ask('/log', { 'x-a': '1' }), await ask('/log')];
    assert.deepEqual([seen.status, seen.told[1]], [200, { access_log_hint: true }]);
    assert.deepEqual([other.status, other.told[1]], [200, { access_log_hint: false }]);
  });

  it('judges and counts by shadow rules, no more', async () => {
    const before = [count('shadow.shadow_allowed'), count('shadow.shadow_denied'), count('allowed'), count('denied')];
    const [allowed, denied] = [await ask('/shadow', { 'x-a': '1' }), await ask('/shadow')];
    assert.deepEqual([allowed.status, denied.status], [200, 200]);
    assert.deepEqual(allowed.told[0], { try_shadow_engine_result: 'allowed', try_shadow_effective_policy_id: 'some' });
    assert.deepEqual(denied.told[0], { try_shadow_engine_result: 'denied' });
    const after = [count('shadow.shadow_allowed'), count('shadow.shadow_denied'), count('allowed'), count('denied')];
    assert.deepEqual(
      after.map((value, index) => value - before[index]!),
      [1, 1, 0, 0],
    );
    assert.equal(count('shadow.policy.some.shadow_allowed'), 1);
  });

  it('counts each policy by itself where it is told to', async () => {
    assert.equal((await ask('/counted', { 'x-a': '1', 'x-b': '2' })).status, 200);
    assert.equal((await ask('/counted', { 'x-b': '2' })).status, 200);
    assert.equal((await ask('/counted')).status, 403);
    assert.deepEqual([count('policy.a.allowed'), count('policy.b.allowed')], [1, 1]);
  });

  it('goes where a tree leads, and denies who it leads nowhere', async () => {
    const before = [count('allowed'), count('denied')];
    const admin = await ask('/tree', { 'x-role': 'admin' });
    assert.deepEqual(
      [admin.status, admin.told],
      [200, [{ enforced_engine_result: 'allowed', enforced_effective_policy_id: 'admins' }, null]],
    );
    const bad = await ask('/tree', { 'x-role': 'bad one' });
    assert.deepEqual([bad.status, bad.body], [403, 'RBAC: access denied|rbac_access_denied_matched_policy[bad_ones]']);
    assert.deepEqual(bad.told[0], { enforced_engine_result: 'denied', enforced_effective_policy_id: 'bad ones' });
    const near = await ask('/tree', { 'x-role': 'near' });
    assert.deepEqual([near.status, near.told[1]], [200, { access_log_hint: true }]);
    for (const fields of [{ 'x-role': 'nowhere' }, {}]) {
      const nobody = await ask('/tree', fields);
      assert.deepEqual([nobody.status, nobody.told], [403, [{ enforced_engine_result: 'denied' }, null]]);
      assert.match(nobody.body, /\[none\]$/);
    }
    assert.deepEqual([count('allowed') - before[0]!, count('denied') - before[1]!], [2, 3]);
  });

  it('judges by a shadow tree, no more', async () => {
    const denied = await ask('/judged-by-tree', { 'x-role': 'bad one' });
    assert.deepEqual(
      [denied.status, denied.told[0]],
      [200, { tree_shadow_engine_result: 'denied', tree_shadow_effective_policy_id: 'bad ones' }],
    );
    assert.equal((await ask('/judged-by-tree', { 'x-role': 'admin' })).status, 200);
    assert.deepEqual(
      [count('shadow.policy.bad ones.shadow_denied'), count('shadow.policy.admins.shadow_allowed')],
      [1, 1],
    );
  });

  it('does the same over HTTP/2', async (t) => {
    const http2 = new Http2Client(t, proxy.listeners.get('main')!.port);
    assert.equal((await http2.get('/nobody')).status, 403);
    assert.equal((await http2.get('/may-method/')).status, 200);
  });
});
