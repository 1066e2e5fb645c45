// What may become of HTTP connections, by listener and by route.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ForwardAction, HttpConnectionManagerSettings, PathMatch } from '../../../../src/snapshot/index.ts';
import {
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  ROUTER,
  withListeners,
  withRoutes,
} from '../../../support/bootstrap.ts';

const MANAGER = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config';
const ROUTE = `${MANAGER}.route_config.virtual_hosts[0].routes[0]`;

function listener(fields: JsonObject): JsonObject {
  return withListeners(listenerWith([httpFilter(fields)]));
}

function managerOf(fields: JsonObject): HttpConnectionManagerSettings {
  const { filter } = mustLoad(listener(fields)).listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  return filter;
}

function route(action: JsonObject, match: JsonObject = { prefix: '/' }): JsonObject {
  const routes = [{ match, route: { cluster: 'web', ...action } }];
  return withRoutes({ virtual_hosts: [{ name: 'all', domains: ['*'], routes }] });
}

function routeOf(action: JsonObject, match?: JsonObject): { match: PathMatch; action: ForwardAction } {
  const { filter } = mustLoad(route(action, match)).listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  const found = filter.routeTable.virtualHosts[0]!.routes[0]!;
  assert.equal(found.action.kind, 'cluster');
  return { match: found.match, action: found.action };
}

describe('upgrades of a listener', () => {
  it('are read in their order, whatever the case of their types', () => {
    const upgrade_configs = [{ upgrade_type: 'WebSocket' }, { upgrade_type: 'CONNECT', enabled: false }];
    assert.deepEqual(managerOf({ upgrade_configs }).upgrades, [
      { type: 'websocket', isEnabled: true, httpFilters: null },
      { type: 'connect', isEnabled: false, httpFilters: null },
    ]);
    assert.deepEqual(managerOf({}).upgrades, []);
  });

  it('may have filters of their own, which end in a router', () => {
    const own = managerOf({ upgrade_configs: [{ upgrade_type: 'websocket', filters: [ROUTER] }] });
    assert.deepEqual(own.upgrades, [{ type: 'websocket', isEnabled: true, httpFilters: [] }]);
    const typed_config = {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck',
      pass_through_mode: false,
    };
    const health = { name: 'health', typed_config };
    const input = listener({ upgrade_configs: [{ upgrade_type: 'websocket', filters: [health] }] });
    assert.deepEqual(faultTexts(load(input)), [
      `${MANAGER}.upgrade_configs[0].filters[0]: "health" is not terminal; the last filter must be the router`,
    ]);
  });

  it('are refused twice, and with a router of other settings', () => {
    const upgrade_configs = [{ upgrade_type: 'websocket' }, { upgrade_type: 'WEBSOCKET' }];
    assert.deepEqual(faultTexts(load(listener({ upgrade_configs }))), [
      `${MANAGER}.upgrade_configs[1].upgrade_type: a second upgrade of type "WEBSOCKET"`,
    ]);
    const typed_config = {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router',
      suppress_envoy_headers: true,
    };
    const filters = [{ name: 'router', typed_config }];
    assert.deepEqual(faultTexts(load(listener({ upgrade_configs: [{ upgrade_type: 'websocket', filters }] }))), [
      `${MANAGER}.upgrade_configs[0].filters: suppress_envoy_headers must be as in http_filters`,
    ]);
  });
});

describe('upgrades of a route', () => {
  it('are read by type', () => {
    const upgrade_configs = [{ upgrade_type: 'WebSocket', enabled: false }, { upgrade_type: 'other' }];
    const { action } = routeOf({ upgrade_configs });
    assert.deepEqual(action.upgrades, [
      { type: 'websocket', isEnabled: false },
      { type: 'other', isEnabled: true },
    ]);
    assert.equal(action.terminatesConnect, false);
  });

  it('end a CONNECT where connect_config is given, on a route that only CONNECT finds', () => {
    const upgrade_configs = [{ upgrade_type: 'CONNECT', connect_config: {} }];
    const { action, match } = routeOf({ upgrade_configs }, { connect_matcher: {} });
    assert.deepEqual(action.upgrades, [{ type: 'connect', isEnabled: true }]);
    assert.equal(action.terminatesConnect, true);
    assert.equal(match.kind, 'connect');
  });

  it('say with what header the connections behind a CONNECT that ends here begin', () => {
    const proxy_protocol_config = { version: 'V2', added_tlvs: [{ type: 0xf0, value: 'aGk=' }] };
    const upgrade_configs = [{ upgrade_type: 'CONNECT', connect_config: { proxy_protocol_config } }];
    const { action } = routeOf({ upgrade_configs }, { connect_matcher: {} });
    assert.deepEqual(action.connectHeader, { version: 2, tlvs: 'f000026869' });
    const noRoom = { version: 'V1', added_tlvs: [{ type: 0xf0, value: 'aGk=' }] };
    const older = [{ upgrade_type: 'CONNECT', connect_config: { proxy_protocol_config: noRoom } }];
    assert.deepEqual(faultTexts(load(route({ upgrade_configs: older })), 'warning'), [
      `${ROUTE}.route.upgrade_configs[0].connect_config.proxy_protocol_config.added_tlvs: version 1 has no room for them`,
    ]);
  });

  it('hold what older configurations call use_websocket', () => {
    assert.deepEqual(routeOf({ use_websocket: true }).action.upgrades, [{ type: 'websocket', isEnabled: true }]);
    assert.deepEqual(routeOf({ use_websocket: false }).action.upgrades, []);
  });

  it('are refused where they make no sense, or are more than this build does', () => {
    const cases = [
      {
        upgrade_configs: [{ upgrade_type: 'websocket' }, { upgrade_type: 'Websocket' }],
        fault: `${ROUTE}.route.upgrade_configs[1].upgrade_type: a second upgrade of type "Websocket"`,
      },
      {
        upgrade_configs: [{ upgrade_type: 'websocket', connect_config: {} }],
        fault: `${ROUTE}.route.upgrade_configs[0].connect_config: has a meaning for CONNECT only, not for "websocket"`,
      },
    ];
    for (const { upgrade_configs, fault } of cases) {
      const [text = '', ...others] = faultTexts(load(route({ upgrade_configs })));
      assert.ok(text.startsWith(fault), text);
      assert.deepEqual(others, []);
    }
  });
});
