import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FiltersOfRoute } from '../../../../src/snapshot/index.ts';
import {
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  ROUTER,
  withListeners,
  withoutFilter,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.';
const CORS = {
  name: 'browsers',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors' },
};
const POLICY = 'type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy';
const FILTER_CONFIG = 'type.googleapis.com/envoy.config.route.v3.FilterConfig';

interface Levels {
  readonly table?: JsonObject;
  readonly host?: JsonObject;
  readonly route?: JsonObject;
  readonly action?: JsonObject;
  readonly filters?: readonly JsonObject[];
  readonly manager?: JsonObject;
}

function bootstrapOf({ table, host, route, action, filters = [CORS], manager }: Levels): JsonObject {
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web', ...action }, ...route }];
  const route_config = {
    virtual_hosts: [{ name: 'all', domains: ['*'], routes, ...host }],
    validate_clusters: false,
    ...table,
  };
  return withListeners(listenerWith([httpFilter({ http_filters: [...filters, ROUTER], route_config, ...manager })]));
}

function said(levels: Levels): FiltersOfRoute | undefined {
  const { filter } = mustLoad(bootstrapOf(levels)).listeners[0]!.filterChains[0]!;
  assert.ok(filter.kind === 'http-connection-manager');
  return filter.routeTable.virtualHosts[0]!.routes[0]!.filters;
}

function faults(levels: Levels, severity: 'error' | 'warning' = 'error', options = {}): string[] {
  return faultTexts(load(bootstrapOf(levels), options), severity).map((text) => text.replaceAll(AT, ''));
}

function policy(allow_methods: string, fields: JsonObject = {}): JsonObject {
  return { '@type': POLICY, allow_methods, ...fields };
}

/** Methods, as a mark of whose policy it is. */
function marks(filters: FiltersOfRoute | undefined, name = 'browsers'): unknown[] {
  return (filters?.get(name) ?? []).map(({ isDisabled, settings }) =>
    isDisabled ? 'off' : ((settings as { methods: string } | undefined)?.methods ?? 'on'),
  );
}

describe('what routes say to filters', () => {
  it('is absent where nobody says anything', () => {
    assert.equal(said({}), undefined);
  });

  it('goes from the most specific level to the least', () => {
    const of = (mark: string): JsonObject => ({ typed_per_filter_config: { browsers: policy(mark) } });
    assert.deepEqual(marks(said({ table: of('table'), host: of('host'), route: of('route') })), [
      'route',
      'host',
      'table',
    ]);
    assert.deepEqual(marks(said({ table: of('table'), route: of('route') })), ['route', 'table']);
    assert.deepEqual(marks(said({ host: of('host') })), ['host']);
  });

  it('is one object for all routes of a host that add nothing', () => {
    const routes = ['/a', '/b'].map((prefix) => ({ match: { prefix }, route: { cluster: 'web' } }));
    const host = { routes, typed_per_filter_config: { browsers: policy('host') } };
    const { filter } = mustLoad(bootstrapOf({ host })).listeners[0]!.filterChains[0]!;
    assert.ok(filter.kind === 'http-connection-manager');
    const [a, b] = filter.routeTable.virtualHosts[0]!.routes;
    assert.deepEqual(marks(a!.filters), ['host']);
    assert.equal(a!.filters, b!.filters);
  });

  it('turns filters off and on', () => {
    const wrapped = (fields: JsonObject): JsonObject => ({
      typed_per_filter_config: { browsers: { '@type': FILTER_CONFIG, ...fields } },
    });
    assert.deepEqual(marks(said({ route: wrapped({ disabled: true }) })), ['off']);
    assert.deepEqual(marks(said({ route: wrapped({}), host: wrapped({ disabled: true }) })), ['on', 'off']);
    assert.deepEqual(marks(said({ route: wrapped({ config: policy('wrapped') }) })), ['wrapped']);
    assert.deepEqual(marks(said({ route: wrapped({ config: {} }), host: wrapped({ disabled: true }) })), ['on', 'off']);
  });

  it('finds filters by what older configurations call them', () => {
    for (const key of ['envoy.cors', 'envoy.filters.http.cors', 'proxy.filters.http.cors']) {
      assert.deepEqual(marks(said({ route: { typed_per_filter_config: { [key]: policy(key) } } })), [key]);
    }
    const host = { per_filter_config: { 'envoy.filters.http.cors': { allow_methods: 'free-form' } } };
    assert.deepEqual(marks(said({ host })), ['free-form']);
  });

  it('may stand in the field from before the map, which the map goes before', () => {
    const cors = { allow_methods: 'older' };
    assert.deepEqual(marks(said({ action: { cors } })), ['older']);
    assert.deepEqual(marks(said({ host: { cors } })), ['older']);
    const route = { typed_per_filter_config: { browsers: policy('map') } };
    assert.deepEqual(marks(said({ action: { cors }, route, host: { cors } })), ['map', 'older']);
  });

  it('is warned of where no filter hears it', () => {
    const route = { typed_per_filter_config: { nobody: policy('x') } };
    const field = 'route_config.virtual_hosts[0].routes[0]';
    const tail = 'it has no effect';
    assert.deepEqual(faults({ route }, 'warning'), [
      `${field}.typed_per_filter_config["nobody"]: no filter of this connection manager is called "nobody"; ${tail}`,
    ]);
    assert.deepEqual(faults({ action: { cors: { max_age: '1' } }, filters: [] }, 'warning'), [
      `${field}.route.cors: no filter of this connection manager reads it; ${tail}`,
    ]);
  });

  it('is refused where the filter takes no such settings, or this build has no such filter', () => {
    const GRPC_WEB = 'type.googleapis.com/envoy.extensions.filters.http.grpc_web.v3.GrpcWeb';
    const web = { name: 'web', typed_config: { '@type': GRPC_WEB } };
    const route = { typed_per_filter_config: { web: policy('x') } };
    const field = 'route_config.virtual_hosts[0].routes[0].typed_per_filter_config';
    assert.deepEqual(faults({ filters: [web], route }), [
      `${field}["web"]: "web" is "proxy.filters.http.grpc_web", which takes no settings of this type`,
    ]);
    const unknown = { '@type': 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute' };
    const lacking = withoutFilter('proxy.extensions.filters.http.rbac.v3.RBAC');
    const [fault, ...others] = faults({ route: { typed_per_filter_config: { browsers: unknown } } }, 'error', lacking);
    assert.match(fault!, /typed_per_filter_config\["browsers"\]: .*RBACPerRoute" is not supported by this build$/);
    assert.deepEqual(others, []);
    const optional = { '@type': FILTER_CONFIG, is_optional: true, config: unknown };
    const said = { route: { typed_per_filter_config: { browsers: optional } } };
    assert.deepEqual(faults(said, 'error', lacking), []);
    assert.equal(faults(said, 'warning', lacking).length, 1);
  });

  it('of a type that nobody knows is left out where it is optional', () => {
    const MAGIC = 'type.googleapis.com/acme.filters.Magic';
    const struct = {
      '@type': 'type.googleapis.com/xds.type.v3.TypedStruct',
      type_url: MAGIC,
      value: { spell: 'open' },
    };
    const proc = { '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute', x: 1 };
    const field = 'route_config.virtual_hosts[0].routes[0].typed_per_filter_config["browsers"].config';
    for (const config of [{ '@type': MAGIC, spell: 'open' }, struct, proc]) {
      const browsers = { '@type': FILTER_CONFIG, is_optional: true, config };
      const optional = { route: { typed_per_filter_config: { browsers } } };
      assert.deepEqual(faults(optional), []);
      const [warning = '', ...others] = faults(optional, 'warning');
      assert.match(warning, / is not supported by this build.*; it is left out, being optional$/);
      assert.ok(warning.startsWith(`${field}: `), warning);
      assert.deepEqual(others, []);
      const needed = { route: { typed_per_filter_config: { browsers: { ...browsers, is_optional: false } } } };
      assert.equal(faults(needed).length, 1);
    }
    assert.deepEqual(
      said({
        route: { typed_per_filter_config: { browsers: { '@type': FILTER_CONFIG, is_optional: true, config: proc } } },
      }),
      undefined,
    );
  });

  it('reaches filters of upgrades by their names', () => {
    const upgrade_configs = [{ upgrade_type: 'websocket', filters: [{ ...CORS, name: 'of-upgrades' }, ROUTER] }];
    const route = { typed_per_filter_config: { 'of-upgrades': policy('x') } };
    assert.deepEqual(marks(said({ manager: { upgrade_configs }, route, filters: [] }), 'of-upgrades'), ['x']);
  });

  it('cannot turn off the router', () => {
    const disabled = { ...ROUTER, disabled: true };
    const listener = listenerWith([httpFilter({ http_filters: [disabled] })]);
    assert.deepEqual(
      faultTexts(load(withListeners(listener))).map((text) => text.replaceAll(AT, '')),
      ['http_filters[0].disabled: the router ends the chain and cannot be disabled'],
    );
  });
});
