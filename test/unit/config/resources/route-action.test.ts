// What a route does: clusters by weight or header, rewrites, redirects, header edits.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RouteSnapshot } from '../../../../src/snapshot/index.ts';
import { faultTexts, type JsonObject, load, mustLoad, withRoutes } from '../../../support/bootstrap.ts';
import { forwardTo } from '../../../support/routes.ts';

const AT = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0]';

function bootstrapWith(route: JsonObject): JsonObject {
  return withRoutes({
    virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, ...route }] }],
  });
}

function routeOf(route: JsonObject): RouteSnapshot {
  const { filter } = mustLoad(bootstrapWith(route)).listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  return filter.routeTable.virtualHosts[0]!.routes[0]!;
}

function faultsOf(route: JsonObject, severity: 'error' | 'warning' = 'error'): string[] {
  return faultTexts(load(bootstrapWith(route)), severity).map((text) => text.replace(`${AT}.routes[0].`, ''));
}

function forwarding(fields: JsonObject): JsonObject {
  return { route: { cluster: 'web', ...fields } };
}

const RULE = { pattern: { google_re2: {}, regex: '^/(a+)/(b+)' }, substitution: '/\\2/\\1' };

describe('what a route asks of hosts', () => {
  const asking = (fields: JsonObject, name = 'envoy.lb'): JsonObject => ({
    metadata_match: { filter_metadata: { [name]: fields, other: { x: 1 } } },
  });

  it('is read from the namespace of balancers, in ascending order', () => {
    const { action } = routeOf(forwarding(asking({ b: 1.5, a: { y: [], x: null } })));
    assert.equal(action.kind, 'cluster');
    assert.deepEqual(action.criteria, [
      ['a', '{"x":null,"y":[]}'],
      ['b', '1.5'],
    ]);
    const { action: without } = routeOf(forwarding(asking({}, 'proxy.lb')));
    assert.equal(without.kind === 'cluster' && without.criteria, null);
  });

  it('is added to by a weighted cluster, which comes first', () => {
    const clusters = [
      { name: 'web', weight: 1, ...asking({ b: 2, c: 3 }) },
      { name: 'web', weight: 1 },
    ];
    const { action } = routeOf({ route: { weighted_clusters: { clusters }, ...asking({ a: 1, b: 1 }) } });
    assert.equal(action.kind, 'cluster');
    assert.deepEqual(
      action.weightedClusters!.entries.map(({ criteria }) => criteria),
      [
        [
          ['a', '1'],
          ['b', '2'],
          ['c', '3'],
        ],
        [
          ['a', '1'],
          ['b', '1'],
        ],
      ],
    );
  });
});

describe('what requests are hashed by', () => {
  const hashing = (...hash_policy: JsonObject[]): JsonObject => forwarding({ hash_policy });

  it('must be named, and be one thing', () => {
    assert.deepEqual(faultsOf(hashing({ header: {} }, { query_parameter: {} }, { cookie: {} }, { terminal: true })), [
      'route.hash_policy[0].header.header_name: must not be empty',
      'route.hash_policy[1].query_parameter.name: must not be empty',
      'route.hash_policy[2].cookie.name: must not be empty',
      'route.hash_policy[3]: one of header, cookie, connection_properties, query_parameter, filter_state must be set',
    ]);
    assert.deepEqual(faultsOf(hashing({ header: { header_name: 'a' }, cookie: { name: 'b' } })).length, 1);
  });

  it('must not let a cookie say more than it is to say', () => {
    const attributes = [{ name: 'a', value: 'b; Domain=x' }];
    assert.deepEqual(
      faultsOf(hashing({ cookie: { name: 'a', path: '/\r\nx: y' } }, { cookie: { name: 'a', attributes } })),
      [
        'route.hash_policy[0].cookie.path: "/\\r\\nx: y" holds characters that would end a part of the cookie',
        'route.hash_policy[1].cookie.attributes[0].value: "b; Domain=x" holds characters that would end a part of the cookie',
      ],
    );
  });

  it('may be the state of a connection', () => {
    const { action } = routeOf(hashing({ filter_state: { key: 'k' }, terminal: true }));
    assert.deepEqual(action.kind === 'cluster' && action.hashPolicies, [
      { kind: 'filter-state', key: 'k', isTerminal: true },
    ]);
  });

  it('must have a pattern that can be replaced', () => {
    const regex_rewrite = { pattern: { google_re2: {}, regex: '(' }, substitution: '' };
    const [fault, ...others] = faultsOf(hashing({ header: { header_name: 'a', regex_rewrite } }));
    assert.match(fault!, /^route\.hash_policy\[0\]\.header\.regex_rewrite\.pattern/);
    assert.deepEqual(others, []);
  });
});

describe('a forwarding route', () => {
  const cases = [
    {
      name: 'its times',
      fields: { timeout: '3s', idle_timeout: '2s' },
      expected: { timeoutMs: 3000, idleTimeoutMs: 2000 },
    },
    { name: 'a priority', fields: { priority: 'HIGH' }, expected: { isHighPriority: true } },
    { name: 'no idle timeout', fields: { idle_timeout: '0s' }, expected: { idleTimeoutMs: 0 } },
    {
      name: 'the longest duration',
      fields: { max_stream_duration: { max_stream_duration: '1.5s' } },
      expected: {
        timeoutMs: 0,
        maxStreamDurationMs: 1500,
        limitsStreamDuration: true,
        replacesStreamDuration: true,
        grpcStreamDuration: null,
      },
    },
    {
      name: 'no time for the response alone where there is one for the stream',
      fields: { timeout: '0s', max_stream_duration: {} },
      expected: { timeoutMs: 0, grpcTimeout: null, limitsStreamDuration: true, replacesStreamDuration: false },
    },
    {
      name: 'the longest duration of gRPC requests',
      fields: { max_stream_duration: { grpc_timeout_header_max: '2s', grpc_timeout_header_offset: '0.1s' } },
      expected: { timeoutMs: 0, limitsStreamDuration: true, grpcStreamDuration: { maxMs: 2000, offsetMs: 100 } },
    },
    {
      name: 'a path by regular expression',
      fields: { regex_rewrite: RULE },
      expected: { pathRewrite: { kind: 'regex', pattern: '^/(a+)/(b+)', substitution: '/\\2/\\1' } },
    },
    {
      name: 'the host from a header',
      fields: { host_rewrite_header: 'X-Host' },
      expected: { hostRewrite: { kind: 'header', name: 'x-host' } },
    },
    {
      name: "the upstream host's name",
      fields: { auto_host_rewrite: true },
      expected: { hostRewrite: { kind: 'auto' } },
    },
    { name: 'the host as it is', fields: { auto_host_rewrite: false }, expected: {} },
    {
      name: 'the host from the path',
      fields: { host_rewrite_path_regex: RULE },
      expected: { hostRewrite: { kind: 'path-regex', pattern: '^/(a+)/(b+)', substitution: '/\\2/\\1' } },
    },
    {
      name: 'what requests are hashed by',
      fields: {
        hash_policy: [
          { header: { header_name: 'X-User', regex_rewrite: RULE }, terminal: true },
          { cookie: { name: 'a', ttl: '1.9s', path: '/x', attributes: [{ name: 'SameSite', value: 'Lax' }] } },
          { cookie: { name: 'b' } },
          { cookie: { name: 'c', ttl: '0s' } },
          { connection_properties: { source_ip: true } },
          { connection_properties: { source_ip: false } },
          { query_parameter: { name: 'Q' } },
        ],
      },
      expected: {
        hashPolicies: [
          {
            kind: 'header',
            name: 'x-user',
            rewrite: { pattern: '^/(a+)/(b+)', substitution: '/\\2/\\1' },
            isTerminal: true,
          },
          {
            kind: 'cookie',
            name: 'a',
            ttlSeconds: 1,
            path: '/x',
            attributes: [{ name: 'SameSite', value: 'Lax' }],
            isTerminal: false,
          },
          { kind: 'cookie', name: 'b', ttlSeconds: null, path: '', attributes: [], isTerminal: false },
          { kind: 'cookie', name: 'c', ttlSeconds: 0, path: '', attributes: [], isTerminal: false },
          { kind: 'source-ip', isTerminal: false },
          { kind: 'query-parameter', name: 'Q', isTerminal: false },
        ],
      },
    },
    { name: 'the old host', fields: { append_x_forwarded_host: true }, expected: { appendForwardedHost: true } },
  ] as const;
  for (const { name, fields, expected } of cases) {
    it(`reads ${name}`, () => assert.deepEqual(routeOf(forwarding(fields)).action, forwardTo('web', expected)));
  }

  it('warns of times of the response that mean nothing beside one of the stream', () => {
    const times = { timeout: '3s', max_grpc_timeout: '2s', max_stream_duration: { max_stream_duration: '1s' } };
    assert.deepEqual(faultsOf(forwarding(times), 'warning'), [
      'route.timeout: has no effect: max_stream_duration takes its place',
      'route.max_grpc_timeout: has no effect: max_stream_duration takes its place',
    ]);
    assert.deepEqual(faultsOf(forwarding({ ...times, timeout: '0s', max_grpc_timeout: '0s' }), 'warning'), []);
    assert.deepEqual(faultsOf(forwarding({ timeout: '3s', max_grpc_timeout: '2s' }), 'warning'), []);
  });

  it('refuses rewrites that cannot work', () => {
    const broken = { pattern: { regex: '(a)' }, substitution: '\\2' };
    assert.deepEqual(faultsOf(forwarding({ regex_rewrite: broken })), [
      'route.regex_rewrite.substitution: "\\\\2" cannot be filled in: there is no group 2 in the pattern',
    ]);
    assert.deepEqual(faultsOf(forwarding({ prefix_rewrite: '/', regex_rewrite: RULE })), [
      'route.regex_rewrite: cannot be given together with prefix_rewrite',
    ]);
  });

  it('takes its cluster from a header', () => {
    assert.deepEqual(
      routeOf({ route: { cluster_header: 'X-Cluster' } }).action,
      forwardTo('', { clusterHeader: 'x-cluster' }),
    );
  });
});

describe('weighted clusters', () => {
  const weighted = (clusters: JsonObject[], fields: JsonObject = {}) => ({
    route: { weighted_clusters: { clusters, ...fields } },
  });

  it('keep their weights and their own edits', () => {
    const edits = {
      request_headers_to_remove: ['X-Old'],
      response_headers_to_add: [{ header: { key: 'X-By', value: 'a' } }],
    };
    const route = weighted([
      { name: 'web', weight: 3, ...edits },
      { name: 'web', host_rewrite_literal: 'b' },
    ]);
    const add = [{ name: 'x-by', value: ['a'], action: 'append', keepsEmptyValue: false }] as const;
    assert.deepEqual(
      routeOf(route).action,
      forwardTo('', {
        weightedClusters: {
          entries: [
            {
              cluster: 'web',
              weight: 3,
              requestEdits: { remove: ['x-old'], add: [] },
              responseEdits: { remove: [], add },
              hostRewrite: '',
              criteria: null,
            },
            { cluster: 'web', weight: 0, requestEdits: null, responseEdits: null, hostRewrite: 'b', criteria: null },
          ],
          totalWeight: 3,
          runtimeKeyPrefix: '',
        },
      }),
    );
  });

  it('must exist and add up', () => {
    const at = 'route.weighted_clusters';
    assert.deepEqual(faultsOf(weighted([{ name: 'wbe', weight: 1 }])), [
      `${at}.clusters[0].name: cluster "wbe" does not exist; did you mean "web"?`,
    ]);
    assert.deepEqual(faultsOf(weighted([{ name: 'web', weight: 0 }])), [
      `${at}.clusters: all weights are 0; no cluster could ever be chosen`,
    ]);
    assert.deepEqual(faultsOf(weighted([{ name: 'web', weight: 60 }], { total_weight: 100 })), [
      `${at}.total_weight: is 100, but the weights sum up to 60`,
    ]);
    const most = 4_294_967_295;
    assert.deepEqual(
      faultsOf(
        weighted([
          { name: 'web', weight: most },
          { name: 'web', weight: 1 },
        ]),
      ),
      [`${at}.clusters: weights sum up to 4294967296, the limit is 4294967295`],
    );
  });
});

describe('a redirect', () => {
  it('keeps every part that it may change', () => {
    const redirect = {
      host_redirect: 'h',
      port_redirect: 8443,
      scheme_redirect: 'wss',
      path_redirect: '/p?q',
      strip_query: true,
    };
    assert.deepEqual(routeOf({ redirect: { ...redirect, response_code: 'PERMANENT_REDIRECT' } }).action, {
      kind: 'redirect',
      status: 308,
      scheme: 'wss',
      host: 'h',
      port: 8443,
      path: '/p?q',
      pathRewrite: null,
      stripQuery: true,
    });
  });

  const codes = { MOVED_PERMANENTLY: 301, FOUND: 302, SEE_OTHER: 303, TEMPORARY_REDIRECT: 307 };
  for (const [response_code, status] of Object.entries(codes)) {
    it(`answers ${status} for ${response_code}`, () => {
      const { action } = routeOf({ redirect: { https_redirect: true, prefix_rewrite: '/x', response_code } });
      assert.equal(action.kind, 'redirect');
      assert.deepEqual(
        [action.status, action.scheme, action.pathRewrite],
        [status, 'https', { kind: 'prefix', value: '/x' }],
      );
    });
  }
});

describe('header edits', () => {
  const adding = (option: JsonObject, value: JsonObject = { value: 'v' }) =>
    forwardingWith({ request_headers_to_add: [{ header: { key: 'X-A', ...value }, ...option }] });
  const forwardingWith = (fields: JsonObject) => ({ ...forwarding({}), ...fields });

  const actions = [
    { option: {}, action: 'append' },
    { option: { append: true }, action: 'append' },
    { option: { append: false }, action: 'overwrite' },
    { option: { append_action: 'ADD_IF_ABSENT' }, action: 'add-if-absent' },
    { option: { append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' }, action: 'overwrite' },
    { option: { append_action: 'OVERWRITE_IF_EXISTS' }, action: 'overwrite-if-present' },
  ];
  for (const { option, action } of actions) {
    it(`${action} by ${JSON.stringify(option)}`, () => {
      assert.deepEqual(routeOf(adding(option)).requestEdits, [
        { remove: [], add: [{ name: 'x-a', value: ['v'], action, keepsEmptyValue: false }] },
      ]);
    });
  }

  it('hold values of bytes, with command operators taken apart', () => {
    const value = (fields: JsonObject) => routeOf(adding({}, fields)).requestEdits[0]!.add[0]!.value;
    assert.deepEqual(value({ value: 'é' }), ['\u00c3\u00a9']);
    assert.deepEqual(value({ raw_value: '6Q==' }), ['\u00e9']);
    assert.deepEqual(value({ value: '100%%' }), ['100%']);
    assert.deepEqual(value({ value: 'by %REQ(X-B)%' }), ['by ', { operator: 'REQ', args: ['x-b'], maxLength: 0 }]);
  });

  it('are refused with operators that do not exist, and in both forms at once', () => {
    assert.match(faultsOf(adding({}, { value: '%REQQ(x)%' }))[0]!, /header\.value: unknown command operator "REQQ"/);
    assert.match(faultsOf(adding({ append: true, append_action: 'ADD_IF_ABSENT' }))[0]!, /\.append: cannot be given/);
  });

  it('leave alone what is no field of their own', () => {
    const names = ['host', ':path', 'content-length', 'Transfer-Encoding'];
    const removing = faultsOf(forwardingWith({ request_headers_to_remove: names }));
    assert.deepEqual(removing, [
      'request_headers_to_remove[0]: "host" cannot be removed here: the host has its own rewrites',
      'request_headers_to_remove[1]: ":path" cannot be removed here: it is no header field',
      'request_headers_to_remove[2]: "content-length" cannot be removed here: it frames the message',
      'request_headers_to_remove[3]: "transfer-encoding" cannot be removed here: it frames the message',
    ]);
    const connection = { response_headers_to_add: [{ header: { key: 'Connection', value: 'close' } }] };
    assert.deepEqual(faultsOf(forwardingWith(connection), 'warning'), [
      'response_headers_to_add[0].header.key: "connection" belongs to one connection; it is not added',
    ]);
  });
});

describe('clusters by weight', () => {
  const weighted = (fields: JsonObject, clusters: readonly JsonObject[], action: JsonObject = {}): JsonObject => ({
    route: { weighted_clusters: { clusters, ...fields }, ...action },
  });

  it('are named, or by a header, and not by both', () => {
    assert.deepEqual(faultsOf(weighted({}, [{ weight: 1 }])), [
      'route.weighted_clusters.clusters[0].name: is empty, and so is cluster_header',
    ]);
    assert.deepEqual(faultsOf(weighted({}, [{ name: 'web', cluster_header: 'x-c', weight: 1 }])), [
      'route.weighted_clusters.clusters[0].name: is given beside cluster_header',
    ]);
    assert.deepEqual(faultsOf(weighted({}, [{ cluster_header: 'x-c', weight: 1 }])), []);
  });

  it('go by hashes only where there are some', () => {
    const clusters = [{ name: 'web', weight: 1 }];
    const hash_policy = [{ header: { header_name: 'x-user' } }];
    assert.deepEqual(faultsOf(weighted({ use_hash_policy: true }, clusters), 'warning'), [
      'route.weighted_clusters.use_hash_policy: the route has no hash_policy; chance decides',
    ]);
    assert.deepEqual(faultsOf(weighted({ use_hash_policy: true }, clusters, { hash_policy }), 'warning'), []);
  });
});

describe('the body of a direct response', () => {
  const answering = (body: JsonObject): JsonObject => ({ direct_response: { status: 200, body } });
  /** A variable that every process has: whatever is taken here is served by another test. */
  const named = answering({ environment_variable: 'PATH' });

  it('may come from the environment', () => {
    const environment = { PATH: 'hellö' };
    const { filter } = mustLoad(bootstrapWith(named), { environment }).listeners[0]!.filterChains[0]!;
    assert.equal(filter.kind, 'http-connection-manager');
    const { action } = filter.routeTable.virtualHosts[0]!.routes[0]!;
    assert.deepEqual(action.kind === 'direct-response' && action.body, new Uint8Array(Buffer.from('hellö')));
  });

  it('needs a variable that is set', () => {
    const at = 'direct_response.body.environment_variable';
    assert.deepEqual(faultsOf(named), [`${at}: "PATH" is not set`]);
  });
});
