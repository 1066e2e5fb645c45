// The network filters of the build, each from its configuration to what clients see of it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type JsonObject, listenerWith, mustLoad, tcpFilter, withListeners } from '../support/bootstrap.ts';
import { clientHello } from '../support/client-hello.ts';
import { untilEqual } from '../support/eventually.ts';
import { errorsOf, filter, logTo, named, running, V2, V3 } from '../support/network-filter-proxy.ts';

const FRIEND = '127.0.0.81';
const STRANGER = '127.0.0.82';
const FILTERS = 'static_resources.listeners[0].filter_chains[0].filters';

describe('echo', () => {
  for (const type of [`${V3}.echo.v3.Echo`, `${V2}.echo.v2.Echo`]) {
    test(`sends everything back, as ${type.slice(type.lastIndexOf('/') + 1)}`, async (t) => {
      const { client } = await running(t, [filter(type)]);
      const one = client().write('hello');
      assert.equal(await one.until('hello'), 'hello');
      const long = 'x'.repeat(2_000_000);
      one.write(long);
      assert.equal((await one.bytes(long.length)).length, long.length);
      one.socket.end('bye');
      assert.equal(await one.rest(), 'bye');
    });
  }

  test('ends its chain', () => {
    const [fault] = errorsOf(filter(`${V3}.echo.v3.Echo`), tcpFilter({}));
    assert.match(fault!, /^static_resources.*filters\[0\]: terminal filter "the filter" must be the last/);
  });
});

describe('direct_response', () => {
  for (const type of [`${V3}.direct_response.v3.Config`, `${V2}.direct_response.v2.Config`]) {
    test(`says its text and ends, as ${type.slice(type.lastIndexOf('/') + 1)}`, async (t) => {
      const { client, stat } = await running(t, [filter(type, { response: { inline_string: 'closed today\n' } })]);
      assert.equal(await client().rest(), 'closed today\n');
      assert.equal(await client().write('is anybody there?').rest(), 'closed today\n');
      await untilEqual(0, () => stat('listener.main.downstream_cx_active'), 'connections');
    });
  }

  test('says nothing where it has no text, and needs a file that can be read', async (t) => {
    const { client } = await running(t, [filter(`${V3}.direct_response.v3.Config`)]);
    assert.equal(await client().rest(), '');
    const [fault] = errorsOf(filter(`${V3}.direct_response.v3.Config`, { response: { filename: '/none/at/all' } }));
    assert.match(fault!, /typed_config\.response\.filename: cannot be read: ENOENT/);
  });
});

describe('sni_cluster', () => {
  for (const type of [`${V3}.sni_cluster.v3.SniCluster`, `${V2}.sni_cluster.v2.SniCluster`]) {
    test(`sends clients to the cluster of their server name, as ${type.slice(type.lastIndexOf('/') + 1)}`, async (t) => {
      const [web, a] = [await named(t, 'web'), await named(t, 'a')];
      const { client, stat } = await running(t, [filter(type), tcpFilter({ stat_prefix: 'raw' })], {
        listener: { listener_filters: [{ name: 'envoy.filters.listener.tls_inspector' }] },
        clusters: { web: web.port, 'a.example': a.port },
      });
      assert.equal(
        await client()
          .write(clientHello({ serverName: 'A.example' }))
          .until('a:'),
        'a:',
      );
      assert.equal(await client().write('no TLS').until('web:'), 'web:');
      assert.equal(
        await client()
          .write(clientHello({ serverName: 'b.example' }))
          .rest(),
        '',
      );
      assert.equal(stat('tcp.raw.downstream_cx_no_route'), 1);
    });
  }
});

describe('the network filter rbac', () => {
  const TYPE = `${V3}.rbac.v3.RBAC`;
  const from = (ip: string): JsonObject => ({ direct_remote_ip: { address_prefix: ip, prefix_len: 32 } });
  const policy = (ip: string): JsonObject => ({ permissions: [{ any: true }], principals: [from(ip)] });
  const allowing = (name: string, ip: string): JsonObject => ({ action: 'ALLOW', policies: { [name]: policy(ip) } });

  for (const type of [TYPE, `${V2}.rbac.v2.RBAC`]) {
    test(`lets in whom its rules allow, as ${type.slice(type.lastIndexOf('/') + 1)}`, async (t) => {
      const web = await named(t, 'web');
      const log = logTo(t, '%CONNECTION_TERMINATION_DETAILS% %UPSTREAM_CLUSTER%');
      const rbac = filter(type, { stat_prefix: 'tcp.', rules: allowing('friends', FRIEND) });
      const { client, stat, proxy } = await running(
        t,
        [rbac, tcpFilter({ stat_prefix: 'raw', access_log: log.access_log })],
        { clusters: { web: web.port } },
      );
      const friend = client(FRIEND).write('x');
      assert.equal(await friend.until('web:x'), 'web:x');
      assert.equal(await client(STRANGER).write('x').rest(), '');
      friend.close();
      await untilEqual(0, () => stat('listener.main.downstream_cx_active'), 'connections');
      assert.deepEqual(
        ['allowed', 'denied', 'shadow_allowed'].map((name) => stat(`tcp.rbac.${name}`)),
        [1, 1, 0],
      );
      assert.deepEqual([web.sockets.length, stat('tcp.raw.downstream_cx_total')], [1, 1]);
      await proxy.close();
      assert.deepEqual(log.lines().toSorted(), ['- web', 'rbac_access_denied_matched_policy[none] -']);
    });
  }

  test('names the policy by which it denies, and judges shadow rules without acting', async (t) => {
    const web = await named(t, 'web');
    const log = logTo(
      t,
      '%CONNECTION_TERMINATION_DETAILS% %DYNAMIC_METADATA(envoy.filters.network.rbac:s_shadow_engine_result)% %DYNAMIC_METADATA(envoy.filters.network.rbac:s_shadow_effective_policy_id)%',
    );
    const rules = { action: 'DENY', policies: { 'no strangers': policy(STRANGER) } };
    const rbac = filter(TYPE, {
      stat_prefix: 'p',
      rules,
      shadow_rules: { action: 'DENY', policies: { friends: policy(FRIEND) } },
      shadow_rules_stat_prefix: 's_',
    });
    const { client, stat, proxy } = await running(t, [rbac, tcpFilter({ access_log: log.access_log })], {
      clusters: { web: web.port },
    });
    const friend = client(FRIEND);
    assert.equal(await friend.until('web:'), 'web:');
    friend.close();
    assert.equal(await client(STRANGER).rest(), '');
    await untilEqual(0, () => stat('listener.main.downstream_cx_active'), 'connections');
    assert.deepEqual(
      ['allowed', 'denied', 's_.shadow_allowed', 's_.shadow_denied'].map((name) => stat(`p.rbac.${name}`)),
      [1, 1, 1, 1],
    );
    await proxy.close();
    assert.deepEqual(log.lines().toSorted(), [
      '- denied friends',
      'rbac_access_denied_matched_policy[no_strangers] allowed -',
    ]);
  });

  test('goes where a tree leads, and closes who it leads nowhere', async (t) => {
    const web = await named(t, 'web');
    const log = logTo(
      t,
      '%CONNECTION_TERMINATION_DETAILS% %DYNAMIC_METADATA(envoy.filters.network.rbac:s_shadow_effective_policy_id)%',
    );
    const tree = (map: Readonly<Record<string, readonly [name: string, action: string]>>): JsonObject => ({
      matcher_tree: {
        input: {
          name: 'i',
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.matching.common_inputs.network.v3.SourceIPInput',
          },
        },
        exact_match_map: {
          map: Object.fromEntries(
            Object.entries(map).map(([ip, [name, action]]) => [
              ip,
              {
                action: {
                  name: 'a',
                  typed_config: { '@type': 'type.googleapis.com/envoy.config.rbac.v3.Action', name, action },
                },
              },
            ]),
          ),
        },
      },
    });
    const rbac = filter(TYPE, {
      stat_prefix: 'p',
      matcher: tree({ [FRIEND]: ['friends', 'ALLOW'], [STRANGER]: ['strangers', 'DENY'] }),
      shadow_matcher: tree({ [STRANGER]: ['no friends', 'DENY'] }),
      shadow_rules_stat_prefix: 's_',
    });
    const { client, stat, proxy } = await running(t, [rbac, tcpFilter({ access_log: log.access_log })], {
      clusters: { web: web.port },
    });
    const friend = client(FRIEND);
    assert.equal(await friend.until('web:'), 'web:');
    friend.close();
    assert.equal(await client(STRANGER).rest(), '');
    assert.equal(await client('127.0.0.83').rest(), '');
    await untilEqual(0, () => stat('listener.main.downstream_cx_active'), 'connections');
    assert.deepEqual(
      ['allowed', 'denied', 's_.shadow_allowed', 's_.shadow_denied'].map((name) => stat(`p.rbac.${name}`)),
      [1, 2, 0, 3],
    );
    await proxy.close();
    assert.deepEqual(log.lines().toSorted(), [
      '- -',
      'rbac_access_denied_matched_policy[none] -',
      'rbac_access_denied_matched_policy[strangers] no friends',
    ]);
  });

  test('lets in by what filters before it have said', async (t) => {
    const web = await named(t, 'web');
    const value = {
      format_string: { text_format_source: { inline_string: '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%' } },
    };
    const state = filter(`${V3}.set_filter_state.v3.Config`, {
      on_new_connection: [{ object_key: 'envoy.tcp_proxy.cluster', factory_key: 'envoy.string', ...value }],
    });
    const one = { key: 'envoy.tcp_proxy.cluster', string_match: { suffix: '.81' } };
    const principals = [{ filter_state: one }];
    const rbac = filter(TYPE, {
      stat_prefix: 'p',
      rules: { policies: { p: { permissions: [{ any: true }], principals } } },
    });
    const { client } = await running(t, [state, rbac, tcpFilter({})], {
      clusters: { web: web.port, [FRIEND]: web.port },
    });
    assert.equal(await client(FRIEND).until('web:'), 'web:');
    assert.equal(await client(STRANGER).rest(), '');
  });

  test('judges once, or with everything that comes', async (t) => {
    const web = await named(t, 'web');
    for (const [enforcement_type, atLeast, atMost] of [
      ['ONE_TIME_ON_FIRST_BYTE', 1, 1],
      ['CONTINUOUS', 3, 5],
    ] as const) {
      const rbac = filter(TYPE, { stat_prefix: 'p', rules: allowing('f', FRIEND), enforcement_type });
      const { client, stat } = await running(t, [rbac, tcpFilter({})], { clusters: { web: web.port } });
      const friend = client(FRIEND);
      await friend.until('web:');
      for (const text of ['one', 'two']) await friend.write(text).until(text);
      friend.socket.end();
      await friend.rest();
      await untilEqual(0, () => stat('listener.main.downstream_cx_active'), 'connections');
      const allowed = stat('p.rbac.allowed');
      assert.ok(allowed >= atLeast && allowed <= atMost, `${enforcement_type}: ${allowed}`);
    }
  });

  test('closes later where it is to, and reads nothing meanwhile', async (t) => {
    const web = await named(t, 'web');
    const rbac = filter(TYPE, { stat_prefix: 'p', rules: allowing('f', FRIEND), delay_deny: '0.3s' });
    const { client, stat } = await running(t, [rbac, tcpFilter({})], { clusters: { web: web.port } });
    const startMs = performance.now();
    const [patient, leaving] = [client(STRANGER).write('x'), client(STRANGER)];
    await untilEqual(2, () => stat('p.rbac.denied'), 'denied');
    leaving.socket.resetAndDestroy();
    assert.equal(await patient.rest(), '');
    assert.ok(performance.now() - startMs >= 290);
    await untilEqual(0, () => stat('listener.main.downstream_cx_active'), 'connections');
    assert.equal(web.sockets.length, 0);
  });

  test('refuses rules that ask of requests, and those that it does not know', () => {
    const ask = (rule: JsonObject): string[] =>
      errorsOf(
        filter(TYPE, {
          stat_prefix: 'p',
          rules: { policies: { p: { permissions: [{ not_rule: rule }], principals: [{ any: true }] } } },
        }),
        tcpFilter({}),
      );
    const at = `${FILTERS}[0].typed_config.rules.policies["p"]`;
    const words = `${at}: asks of headers or paths, which connections do not have`;
    assert.deepEqual(ask({ header: { name: 'a', present_match: true } }), [words]);
    assert.deepEqual(ask({ url_path: { path: { exact: '/' } } }), [words]);
    assert.deepEqual(ask({ destination_port: 80 }), []);
    assert.match(errorsOf(filter(TYPE, { rules: {} }), tcpFilter({}))[0]!, /typed_config\.stat_prefix/);
  });
});

describe('the network filter local_ratelimit', () => {
  const TYPE = `${V3}.local_ratelimit.v3.LocalRateLimit`;
  const bucket = { max_tokens: 3, fill_interval: '3600s' };

  test('closes what is beyond the tokens that all workers share', async (t) => {
    const web = await named(t, 'web');
    const log = logTo(t, '%RESPONSE_FLAGS% %CONNECTION_TERMINATION_DETAILS%');
    const limit = filter(TYPE, { stat_prefix: 'l', token_bucket: bucket });
    const tcp = tcpFilter({ access_log: log.access_log });
    const { client, stat, proxy } = await running(t, [limit, tcp], { concurrency: 2, clusters: { web: web.port } });
    const open = Array.from({ length: 8 }, () => client());
    const texts = await Promise.all(open.map(async (one) => await one.until('web:').catch(() => '')));
    assert.equal(texts.filter((text) => text === 'web:').length, 3);
    assert.equal(stat('local_rate_limit.l.rate_limited'), 5);
    for (const one of open) one.close();
    await untilEqual(0, () => stat('listener.main.downstream_cx_active'), 'connections');
    await proxy.close();
    const refused = log.lines().filter((line) => line === 'RL local_ratelimit_close_over_limit');
    assert.deepEqual([refused.length, log.lines().length], [5, 8]);
  });

  test('asks the runtime whether it holds', async (t) => {
    const web = await named(t, 'web');
    const runtime_enabled = { default_value: true, runtime_key: 'limit.on' };
    const limit = filter(`${V2}.local_rate_limit.v2alpha.LocalRateLimit`, {
      stat_prefix: 'l',
      token_bucket: { ...bucket, max_tokens: 1 },
      runtime_enabled,
    });
    const { client, stat } = await running(t, [limit, tcpFilter({})], {
      clusters: { web: web.port },
      runtime: { limit: { on: false } },
    });
    for (let turn = 0; turn < 3; turn += 1) assert.equal(await client().until('web:'), 'web:');
    assert.equal(stat('local_rate_limit.l.rate_limited'), 0);
  });

  test('refuses what it cannot do by name', () => {
    const limit = (fields: JsonObject): string[] =>
      errorsOf(filter(TYPE, { stat_prefix: 'l', token_bucket: bucket, ...fields }), tcpFilter({}));
    assert.deepEqual(limit({}), []);
    assert.match(limit({ share_key: 'all' })[0]!, /typed_config\.share_key: share_key is not supported/);
    assert.match(
      limit({ token_bucket: { max_tokens: 1, fill_interval: '0.01s' } })[0]!,
      /token_bucket\.fill_interval: 10 ms is less than 50 ms/,
    );
    const { networkFilters } = mustLoad(
      withListeners(listenerWith([filter(TYPE, { stat_prefix: 'l', token_bucket: bucket }), tcpFilter({})])),
    ).listeners[0]!.filterChains[0]!;
    assert.deepEqual(networkFilters[0]!.counters, ['rate_limited']);
  });
});
