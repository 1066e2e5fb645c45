import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { InternalRedirectSettings } from '../../../../src/snapshot/index.ts';
import { faultTexts, type JsonObject, load, mustLoad, withRoutes } from '../../../support/bootstrap.ts';

function table(route: JsonObject): JsonObject {
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web', ...route } }];
  return { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
}

function redirectsOf(route: JsonObject): InternalRedirectSettings | null {
  const { filter } = mustLoad(withRoutes(table(route))).listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  const { action } = filter.routeTable.virtualHosts[0]!.routes[0]!;
  assert.equal(action.kind, 'cluster');
  return action.internalRedirects;
}

function faultsOf(policy: JsonObject, severity: 'error' | 'warning' = 'error'): string[] {
  return faultTexts(load(withRoutes(table({ internal_redirect_policy: policy }))), severity).map((text) =>
    text.replace(/^.*internal_redirect_policy\./, ''),
  );
}

function predicate(name: string, fields: JsonObject = {}): JsonObject {
  const type = `type.googleapis.com/envoy.extensions.internal_redirect.${name}`;
  return { name, typed_config: { '@type': type, ...fields } };
}

const DEFAULTS: InternalRedirectSettings = {
  maxRedirects: 1,
  statuses: [302],
  predicates: [],
  allowsCrossScheme: false,
  headersToCopy: [],
};

describe('internal redirects', () => {
  it('are left to the client unless a policy says otherwise', () => {
    assert.equal(redirectsOf({}), null);
    assert.equal(redirectsOf({ internal_redirect_action: 'PASS_THROUGH_INTERNAL_REDIRECT' }), null);
    assert.deepEqual(redirectsOf({ internal_redirect_policy: {} }), DEFAULTS);
  });

  it('are read in full', () => {
    const policy = {
      max_internal_redirects: 5,
      redirect_response_codes: [301, 303, 307],
      predicates: [
        predicate('allow_listed_routes.v3.AllowListedRoutesConfig', { allowed_route_names: ['a', 'b'] }),
        predicate('previous_routes.v3.PreviousRoutesConfig'),
        predicate('safe_cross_scheme.v3.SafeCrossSchemeConfig'),
      ],
      allow_cross_scheme_redirect: true,
      response_headers_to_copy: ['X-Token'],
    };
    assert.deepEqual(redirectsOf({ internal_redirect_policy: policy }), {
      maxRedirects: 5,
      statuses: [301, 303, 307],
      predicates: [
        { kind: 'allowed-routes', names: ['a', 'b'] },
        { kind: 'previous-routes' },
        { kind: 'safe-cross-scheme' },
      ],
      allowsCrossScheme: true,
      headersToCopy: ['x-token'],
    });
  });

  it('are read from the older fields where there is no policy', () => {
    const older = { internal_redirect_action: 'HANDLE_INTERNAL_REDIRECT', max_internal_redirects: 3 };
    assert.deepEqual(redirectsOf(older), { ...DEFAULTS, maxRedirects: 3 });
    assert.deepEqual(redirectsOf({ internal_redirect_action: 'HANDLE_INTERNAL_REDIRECT' }), DEFAULTS);
    assert.deepEqual(redirectsOf({ ...older, internal_redirect_policy: {} }), DEFAULTS);
  });

  it('warn of statuses that are no redirects', () => {
    const policy = { redirect_response_codes: [200, 301, 304] };
    assert.deepEqual(faultsOf(policy, 'warning'), [
      'redirect_response_codes[0]: 200 is no redirect; it has no effect',
      'redirect_response_codes[2]: 304 is no redirect; it has no effect',
    ]);
    assert.deepEqual(redirectsOf({ internal_redirect_policy: policy })!.statuses, [301]);
  });

  it('refuse to copy what the target decides, unnamed routes, and predicates that are not known', () => {
    assert.deepEqual(faultsOf({ response_headers_to_copy: ['Host', ':path'] }), [
      'response_headers_to_copy[0]: Host is set by where the redirect leads',
      'response_headers_to_copy[1]: :path is set by where the redirect leads',
    ]);
    const unnamed = predicate('allow_listed_routes.v3.AllowListedRoutesConfig', { allowed_route_names: [''] });
    assert.equal(faultsOf({ predicates: [unnamed] }).length, 1);
    const other = { name: 'a', typed_config: { '@type': 'type.googleapis.com/envoy.config.core.v3.Address' } };
    assert.notDeepEqual(faultsOf({ predicates: [other] }), []);
  });
});
