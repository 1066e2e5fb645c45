import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { RouteTableSnapshot } from '../../../../src/snapshot/index.ts';
import { faultTexts, type Json, type JsonObject, load, mustLoad, withRoutes } from '../../../support/bootstrap.ts';
import { forwardTo } from '../../../support/routes.ts';

const AT = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config';

function tableOf(routeConfig: JsonObject): RouteTableSnapshot {
  const { filter } = mustLoad(withRoutes(routeConfig)).listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  return filter.routeTable;
}

/** Errors of a route configuration, their paths shortened to what follows it. */
function errorsOf(routeConfig: JsonObject): string[] {
  return faultTexts(load(withRoutes(routeConfig))).map((text) => text.replace(`${AT}.`, ''));
}

/** What a route has that asks for nothing special. */
const PLAIN = {
  conditions: null,
  requestEdits: [],
  responseEdits: [],
  countsAttemptsInRequest: false,
  countsAttemptsInResponse: false,
};

function hostWith(routes: readonly Json[], fields: JsonObject = {}): JsonObject {
  return { virtual_hosts: [{ name: 'all', domains: ['*'], routes }], ...fields };
}

describe('a route table', () => {
  it('keeps virtual hosts and routes in order, with defaults filled in', () => {
    const routes = [
      { name: 'first', match: { prefix: '/' }, route: { cluster: 'web' } },
      { match: { path: '/x', case_sensitive: false }, direct_response: { status: 204 } },
    ];
    assert.deepEqual(
      tableOf({ name: 'table', virtual_hosts: [{ name: 'v', domains: ['A.Example:80', '*.b', 'c.*'], routes }] }),
      {
        name: 'table',
        virtualHosts: [
          {
            name: 'v',
            domains: ['a.example:80', '*.b', 'c.*'],
            routes: [
              {
                name: 'first',
                match: { kind: 'prefix', value: '/', caseSensitive: true },
                action: forwardTo('web'),
                ...PLAIN,
              },
              {
                name: '',
                match: { kind: 'path', value: '/x', caseSensitive: false },
                action: { kind: 'direct-response', status: 204, body: new Uint8Array() },
                ...PLAIN,
              },
            ],
          },
        ],
        ignoresPort: false,
        internalOnlyHeaders: [],
      },
    );
  });

  for (const [requirement, requiresTls] of [
    ['NONE', undefined],
    ['EXTERNAL_ONLY', 'external'],
    ['ALL', 'all'],
  ] as const) {
    it(`of a virtual host that requires TLS: ${requirement}`, () => {
      const virtual_hosts = [{ name: 'v', domains: ['*'], routes: [], require_tls: requirement }];
      assert.equal(tableOf({ virtual_hosts }).virtualHosts[0]!.requiresTls, requiresTls);
    });
  }

  it('reads rewrites, timeout and the answer for a missing cluster', () => {
    const route = {
      cluster: 'gone',
      prefix_rewrite: '/new',
      host_rewrite_literal: 'h.example',
      timeout: '0s',
      cluster_not_found_response_code: 'NOT_FOUND',
    };
    const { virtualHosts } = tableOf(hostWith([{ match: { prefix: '/' }, route }], { validate_clusters: false }));
    assert.deepEqual(
      virtualHosts[0]!.routes[0]!.action,
      forwardTo('gone', {
        timeoutMs: 0,
        pathRewrite: { kind: 'prefix', value: '/new' },
        hostRewrite: { kind: 'literal', value: 'h.example' },
        clusterNotFoundStatus: 404,
      }),
    );
  });

  it('takes the newest host_rewrite literally, or as a format', () => {
    const rewriting = (host_rewrite: string) =>
      hostWith([{ match: { prefix: '/' }, route: { cluster: 'web', host_rewrite } }]);
    const [action] = tableOf(rewriting('h.example')).virtualHosts[0]!.routes.map((route) => route.action);
    assert.deepEqual(action?.kind === 'cluster' && action.hostRewrite, { kind: 'literal', value: 'h.example' });
    const [formatted] = tableOf(rewriting('ü%REQ(x)%')).virtualHosts[0]!.routes.map((route) => route.action);
    const segments = ['\u00c3\u00bc', { operator: 'REQ', args: ['x'], maxLength: 0 }];
    assert.deepEqual(formatted?.kind === 'cluster' && formatted.hostRewrite, { kind: 'format', segments });
    assert.match(errorsOf(rewriting('%NO%'))[0]!, /^virtual_hosts\[0\]\.routes\[0\]\.route\.host_rewrite: .*NO/);
  });

  it('names the cluster that was probably meant when a route leads nowhere', () => {
    assert.deepEqual(errorsOf(hostWith([{ match: { prefix: '/' }, route: { cluster: 'wbe' } }])), [
      'virtual_hosts[0].routes[0].route.cluster: cluster "wbe" does not exist; did you mean "web"?',
    ]);
    assert.deepEqual(errorsOf(hostWith([{ match: { prefix: '/' }, route: { cluster: 'elsewhere' } }])), [
      'virtual_hosts[0].routes[0].route.cluster: cluster "elsewhere" does not exist',
    ]);
  });

  it('lets each domain belong to one virtual host only', () => {
    const virtual_hosts = [
      { name: 'a', domains: ['*', 'x.example', 'X.example'] },
      { name: 'b', domains: ['*', 'x.EXAMPLE'] },
      { name: 'b', domains: ['y.example'] },
    ];
    assert.deepEqual(errorsOf({ virtual_hosts }), [
      'virtual_hosts[0].domains[2]: "X.example" is listed twice',
      'virtual_hosts[1].domains[0]: "*" is already a domain of virtual host "a"',
      'virtual_hosts[1].domains[1]: "x.EXAMPLE" is already a domain of virtual host "a"',
      'virtual_hosts[2].name: a second virtual host is called "b"',
    ]);
  });

  it('accepts a wildcard at one end of a domain only', () => {
    assert.deepEqual(errorsOf({ virtual_hosts: [{ name: 'a', domains: ['a*b', '*a*', '', '*-x.example', 'x-*'] }] }), [
      'virtual_hosts[0].domains[0]: "a*b" has a wildcard that is not at one end',
      'virtual_hosts[0].domains[1]: "*a*" has more than one wildcard',
      'virtual_hosts[0].domains[2]: "" is empty; "*" matches every host',
    ]);
  });

  it('refuses conditions on filter state that nothing can be held against', () => {
    const routes = [
      { match: { prefix: '/', filter_state: [{ key: 'k' }] }, route: { cluster: 'web' } },
      {
        match: { prefix: '/', filter_state: [{ key: 'k', address_match: { ranges: [{ address_prefix: 'x' }] } }] },
        route: { cluster: 'web' },
      },
    ];
    const at = 'virtual_hosts[0].routes';
    assert.deepEqual(errorsOf(hostWith(routes)), [
      `${at}[0].match.filter_state[0]: one of string_match, address_match must be set`,
      `${at}[1].match.filter_state[0].address_match.ranges[0].address_prefix: "x" is not an IP address`,
    ]);
  });

  it('puts the header edits of all levels in order, those of the table last by default', () => {
    const level = (name: string) => ({ request_headers_to_add: [{ header: { key: 'X-Level', value: name } }] });
    const table = (fields: JsonObject) => ({
      virtual_hosts: [
        {
          name: 'v',
          domains: ['*'],
          routes: [{ match: { prefix: '/' }, route: { cluster: 'web' }, ...level('route') }],
          ...level('host'),
        },
      ],
      ...level('table'),
      ...fields,
    });
    const levels = (fields: JsonObject) =>
      tableOf(table(fields)).virtualHosts[0]!.routes[0]!.requestEdits.map(({ add }) => add[0]!.value[0]);
    assert.deepEqual(levels({}), ['route', 'host', 'table']);
    assert.deepEqual(levels({ most_specific_header_mutations_wins: true }), ['table', 'host', 'route']);
  });

  it('takes header edits of the action, where the oldest form has them, as the innermost', () => {
    const add = (value: string): JsonObject => ({ header: { key: 'x-level', value } });
    const action = {
      cluster: 'web',
      request_headers_to_add: [add('action')],
      response_headers_to_add: [add('action')],
      response_headers_to_remove: ['X-Gone'],
    };
    const route = { match: { prefix: '/' }, route: action, request_headers_to_add: [add('route')] };
    const { requestEdits, responseEdits } = tableOf({
      virtual_hosts: [{ name: 'v', domains: ['*'], routes: [route] }],
    }).virtualHosts[0]!.routes[0]!;
    assert.deepEqual(
      requestEdits.map((edits) => edits.add[0]!.value[0]),
      ['action', 'route'],
    );
    assert.deepEqual([responseEdits.length, responseEdits[0]!.remove], [1, ['x-gone']]);
  });

  it('counts attempts where the virtual host says so, and keeps what concerns the whole table', () => {
    const { virtualHosts, ignoresPort, internalOnlyHeaders } = tableOf({
      virtual_hosts: [
        {
          name: 'v',
          domains: ['*'],
          routes: [{ match: { prefix: '/' }, route: { cluster: 'web' } }],
          include_request_attempt_count: true,
          include_attempt_count_in_response: true,
        },
      ],
      ignore_port_in_host_matching: true,
      internal_only_headers: ['X-Secret'],
    });
    const route = virtualHosts[0]!.routes[0]!;
    assert.deepEqual([route.countsAttemptsInRequest, route.countsAttemptsInResponse], [true, true]);
    assert.deepEqual([ignoresPort, internalOnlyHeaders], [true, ['x-secret']]);
  });
});

describe('a direct response', () => {
  let folder = '';
  before(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'weir-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  function answering(body: JsonObject, fields: JsonObject = {}): JsonObject {
    return hostWith([{ match: { prefix: '/' }, direct_response: { status: 200, body } }], fields);
  }

  it('takes its body from text, bytes or a file', () => {
    const file = path.join(folder, 'body.txt');
    writeFileSync(file, 'héllo');
    for (const body of [{ inline_string: 'héllo' }, { inline_bytes: 'aMOpbGxv' }, { filename: file }]) {
      const { action } = tableOf(answering(body)).virtualHosts[0]!.routes[0]!;
      assert.equal(action.kind, 'direct-response');
      assert.deepEqual(action.body, new Uint8Array(Buffer.from('héllo')));
    }
  });

  it('is refused when its file cannot be read', () => {
    const [error] = errorsOf(answering({ filename: path.join(folder, 'absent') }));
    assert.match(error!, /direct_response\.body\.filename: cannot be read: ENOENT/);
  });

  it('is refused when its body exceeds the limit in bytes', () => {
    const at = 'virtual_hosts[0].routes[0].direct_response.body';
    assert.deepEqual(errorsOf(answering({ inline_string: 'x'.repeat(4097) })), [
      `${at}: 4097 bytes exceed the limit 4096`,
    ]);
    const limit = { max_direct_response_body_size_bytes: 5 };
    assert.deepEqual(errorsOf(answering({ inline_string: 'héllo' }, limit)), [`${at}: 6 bytes exceed the limit 5`]);
  });
});

describe('a virtual cluster', () => {
  const clustersOf = (...virtual_clusters: Json[]) =>
    tableOf({ virtual_hosts: [{ name: 'all', domains: ['*'], virtual_clusters }] }).virtualHosts[0]!.virtualClusters;
  const plain = { isInverted: false, treatMissingAsEmpty: false };

  it('has its name and what headers of its requests say', () => {
    const headers = [{ name: ':Path', string_match: { prefix: '/a' } }];
    assert.deepEqual(clustersOf({ name: 'a', headers }), [
      { name: 'a', headers: [{ name: ':path', test: { kind: 'prefix', value: '/a', ignoresCase: false }, ...plain }] },
    ]);
    assert.equal(clustersOf(), undefined);
  });

  it('may have the older form: a pattern for path and query, and perhaps a method', () => {
    const path = { name: ':path', test: { kind: 'regex', pattern: '/a/\\d+' }, ...plain };
    const method = { name: ':method', test: { kind: 'exact', value: 'POST', ignoresCase: false }, ...plain };
    assert.deepEqual(clustersOf({ name: 'a', pattern: '/a/\\d+' }), [{ name: 'a', headers: [path] }]);
    const both = { name: 'a', pattern: '/a/\\d+', method: 'POST' };
    assert.deepEqual(clustersOf(both), [{ name: 'a', headers: [path, method] }]);
  });

  it('needs one of the two, and something to compile', () => {
    const headers = [{ name: 'x', present_match: true }];
    const virtual_clusters = [
      { name: 'a' },
      { name: 'b', pattern: '/', method: 'GET', headers },
      { name: 'c', pattern: '(' },
      { headers },
    ];
    assert.deepEqual(errorsOf({ virtual_hosts: [{ name: 'all', domains: ['*'], virtual_clusters }] }), [
      'virtual_hosts[0].virtual_clusters[0].headers: must not be empty: they say which requests it counts',
      'virtual_hosts[0].virtual_clusters[1].pattern: cannot be given together with headers',
      'virtual_hosts[0].virtual_clusters[1].method: needs a pattern',
      'virtual_hosts[0].virtual_clusters[2].pattern: "(" is not a regular expression: missing ): (',
      'virtual_hosts[0].virtual_clusters[3].name: must not be empty',
    ]);
  });
});

describe('the stat prefix of a route', () => {
  it('is kept where there is one', () => {
    const routes = [
      { match: { prefix: '/' }, stat_prefix: 'all', route: { cluster: 'web' } },
      { match: { prefix: '/' }, route: { cluster: 'web' } },
    ];
    const [first, second] = tableOf(hostWith(routes)).virtualHosts[0]!.routes;
    assert.equal(first!.statPrefix, 'all');
    assert.equal('statPrefix' in second!, false);
  });
});
