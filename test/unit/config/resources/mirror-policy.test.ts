import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MirrorPolicy } from '../../../../src/snapshot/index.ts';
import { faultTexts, type JsonObject, load, mustLoad, withRoutes } from '../../../support/bootstrap.ts';

function table(route: JsonObject, virtualHost: JsonObject = {}, fields: JsonObject = {}): JsonObject {
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web', ...route } }];
  return { virtual_hosts: [{ name: 'all', domains: ['*'], routes, ...virtualHost }], ...fields };
}

function mirrorsOf(...parts: Parameters<typeof table>): readonly MirrorPolicy[] {
  const { filter } = mustLoad(withRoutes(table(...parts))).listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  const { action } = filter.routeTable.virtualHosts[0]!.routes[0]!;
  assert.equal(action.kind, 'cluster');
  return action.mirrors;
}

const ALL = { key: '', default: { numerator: 100, denominator: 100 } };

describe('mirror policies', () => {
  it('are read in full', () => {
    const runtime_fraction = { default_value: { numerator: 5, denominator: 'TEN_THOUSAND' }, runtime_key: 'share' };
    const policies = [
      { cluster: 'web', runtime_fraction, disable_shadow_host_suffix_append: true },
      { cluster_header: 'X-To', host_rewrite_literal: 'other' },
    ];
    assert.deepEqual(mirrorsOf({ request_mirror_policies: policies }), [
      {
        cluster: 'web',
        clusterHeader: '',
        fraction: { key: 'share', default: { numerator: 5, denominator: 10_000 } },
        appendsHostSuffix: false,
        hostRewrite: '',
        headEdits: [],
      },
      {
        cluster: '',
        clusterHeader: 'x-to',
        fraction: ALL,
        appendsHostSuffix: true,
        hostRewrite: 'other',
        headEdits: [],
      },
    ]);
  });

  it('change the heads of copies, one mutation after the other', () => {
    const request_headers_mutations = [
      { remove: 'X-Gone' },
      { append: { header: { key: 'X-Copy', value: 'yes' }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' } },
    ];
    const [policy] = mirrorsOf({ request_mirror_policies: [{ cluster: 'web', request_headers_mutations }] });
    assert.deepEqual(policy!.headEdits, [
      { remove: ['x-gone'], add: [] },
      { remove: [], add: [{ name: 'x-copy', value: ['yes'], action: 'overwrite', keepsEmptyValue: false }] },
    ]);
    const refused = { request_headers_mutations: [{ remove: 'host' }, { append: { header: { key: ':path' } } }] };
    const errors = faultTexts(load(withRoutes(table({ request_mirror_policies: [{ cluster: 'web', ...refused }] }))));
    assert.deepEqual(
      errors.map((text) => text.replace(/^.*mutations/, '')),
      [
        '[0].remove: "host" cannot be removed here: the host has its own rewrites',
        '[1].append.header.key: ":path" cannot be set here: it is no header field',
      ],
    );
  });

  it('of the most specific level that has any are those of a route', () => {
    const at = (name: string): JsonObject => ({ request_mirror_policies: [{ cluster_header: name }] });
    const names = (...parts: Parameters<typeof table>) => mirrorsOf(...parts).map(({ clusterHeader }) => clusterHeader);
    assert.deepEqual(names({}, {}, {}), []);
    assert.deepEqual(names({}, {}, at('table')), ['table']);
    assert.deepEqual(names({}, at('host'), at('table')), ['host']);
    assert.deepEqual(names(at('route'), at('host'), at('table')), ['route']);
  });

  it('need a cluster that exists, or a header', () => {
    const errorsOf = (policy: JsonObject): string[] =>
      faultTexts(load(withRoutes(table({ request_mirror_policies: [policy] })))).map((text) =>
        text.replace(/^.*request_mirror_policies/, ''),
      );
    assert.deepEqual(errorsOf({}), ['[0]: needs either cluster or cluster_header']);
    assert.deepEqual(errorsOf({ cluster: 'web', cluster_header: 'x' }), [
      '[0]: needs either cluster or cluster_header',
    ]);
    assert.match(errorsOf({ cluster: 'nobody' })[0]!, /^\[0\]\.cluster: /);
  });
});
