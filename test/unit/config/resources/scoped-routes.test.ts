// What is read of scoped_routes, and what is refused of it.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HttpConnectionManagerSettings } from '../../../../src/snapshot/index.ts';
import {
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  withListeners,
} from '../../../support/bootstrap.ts';

const SOURCE = { path_config_source: { path: '/etc/scopes.yaml' } };
const BUILDER = { fragments: [{ header_value_extractor: { name: 'X-Scope', index: 0 } }] };
const AT = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.scoped_routes';
const FIRST = `${AT}.scoped_route_configurations_list.scoped_route_configurations[0]`;
const SECOND = `${AT}.scoped_route_configurations_list.scoped_route_configurations[1]`;

function table(name: string): JsonObject {
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200 } }];
  return { name, virtual_hosts: [{ name: 'v', domains: ['*'], routes }] };
}

function scope(name: string, key: readonly string[], fields: JsonObject = {}): JsonObject {
  const fragments = key.map((string_key) => ({ string_key }));
  return { name, key: { fragments }, route_configuration: table(name), ...fields };
}

function listener(fields: JsonObject): JsonObject {
  const scoped_routes = { name: 'scopes', scope_key_builder: BUILDER, ...fields };
  return withListeners(listenerWith([httpFilter({ route_config: null, scoped_routes })]));
}

function inline(scopes: readonly JsonObject[], fields: JsonObject = {}): JsonObject {
  return listener({ scoped_route_configurations_list: { scoped_route_configurations: scopes }, ...fields });
}

const errorsOf = (bootstrap: JsonObject): readonly string[] => faultTexts(load(bootstrap));

function settingsOf(bootstrap: JsonObject): HttpConnectionManagerSettings['scopedRoutes'] {
  const { filter } = mustLoad(bootstrap).listeners[0]!.filterChains[0]!;
  return filter.kind === 'http-connection-manager' ? filter.scopedRoutes : undefined;
}

describe('scoped routes', () => {
  it('have the tables of their scopes, or the names of those that come by discovery', () => {
    const named = scope('b', ['2'], { route_configuration: null, route_configuration_name: 'far' });
    const settings = settingsOf(inline([scope('a', ['1']), named], { rds_config_source: SOURCE }))!;
    assert.ok(settings.scopes.kind === 'fixed');
    const [first, second] = settings.scopes.scopes;
    assert.deepEqual([first!.name, first!.key, 'tableName' in first!.routes], ['a', ['1'], false]);
    assert.deepEqual(second, { name: 'b', key: ['2'], routes: { tableName: 'far' }, isOnDemand: false });
    assert.deepEqual(settings.keyParts, [
      { header: 'x-scope', elementSeparator: '', take: { kind: 'index', index: 0 } },
    ]);
    assert.equal(settings.routeSource!.origin.kind, 'file');
  });

  it('come by discovery from a source of their own', () => {
    const settings = settingsOf(listener({ scoped_rds: { scoped_rds_config_source: SOURCE } }))!;
    assert.equal(settings.scopes.kind, 'discovered');
    assert.equal(settings.routeSource, undefined);
  });

  it('take elements by key', () => {
    const header_value_extractor = { name: 'x', element_separator: ';', element: { separator: '=', key: 'vip' } };
    const settings = settingsOf(
      inline([scope('a', ['1'])], { scope_key_builder: { fragments: [{ header_value_extractor }] } }),
    )!;
    assert.deepEqual(settings.keyParts[0]!.take, { kind: 'key', key: 'vip', separator: '=' });
  });

  const refused: readonly (readonly [what: string, bootstrap: JsonObject, fault: string])[] = [
    ['two scopes with one key', inline([scope('a', ['1']), scope('b', ['1'])]), `${SECOND}: has the key of scope "a"`],
    [
      'two scopes with one name',
      inline([scope('a', ['1']), scope('a', ['2'])]),
      `${SECOND}: a second scope is called "a"`,
    ],
    [
      'a scope without a table',
      inline([scope('a', ['1'], { route_configuration: null })]),
      `${FIRST}.route_configuration_name: is required where there is no route_configuration`,
    ],
    [
      'a scope with two',
      inline([scope('a', ['1'], { route_configuration_name: 'far' })], { rds_config_source: SOURCE }),
      `${FIRST}.route_configuration: cannot be given together with route_configuration_name`,
    ],
    [
      'a named table without a source',
      inline([scope('a', ['1'], { route_configuration: null, route_configuration_name: 'far' })]),
      `${FIRST}.route_configuration_name: needs rds_config_source, which says where it comes from`,
    ],
    [
      'an extractor that takes nothing',
      inline([scope('a', ['1'])], { scope_key_builder: { fragments: [{ header_value_extractor: { name: 'x' } }] } }),
      `${AT}.scope_key_builder.fragments[0].header_value_extractor: says neither index nor element, so that nothing of the header is the key`,
    ],
    [
      'a further element of a whole value',
      inline([scope('a', ['1'])], {
        scope_key_builder: { fragments: [{ header_value_extractor: { name: 'x', index: 1 } }] },
      }),
      `${AT}.scope_key_builder.fragments[0].header_value_extractor.index: is 1, and without element_separator there is one element`,
    ],
  ];
  for (const [what, bootstrap, fault] of refused) {
    it(`are refused with ${what}`, () => assert.deepEqual(errorsOf(bootstrap), [fault]));
  }

  it('may have tables that are asked for on demand, where those come by discovery', () => {
    const named = { route_configuration: null, route_configuration_name: 'far', on_demand: true };
    const bootstrap = inline([scope('a', ['1'], named), scope('b', ['2'], { on_demand: true })], {
      rds_config_source: SOURCE,
    });
    const { scopes } = settingsOf(bootstrap)!;
    assert.deepEqual(scopes.kind === 'fixed' && scopes.scopes.map(({ isOnDemand }) => isOnDemand), [true, false]);
    assert.deepEqual(faultTexts(load(bootstrap), 'warning'), [
      `${SECOND}.on_demand: has no effect beside route_configuration, which is there at once`,
    ]);
  });

  it('are warned of where no request has as many parts', () => {
    const result = load(inline([scope('a', ['1', '2'])]));
    assert.deepEqual(faultTexts(result, 'warning'), [
      `${FIRST}.key.fragments: has 2 items, and keys of requests 1: no request has it`,
    ]);
  });
});
