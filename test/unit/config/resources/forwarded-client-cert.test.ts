import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  withListeners,
} from '../../../support/bootstrap.ts';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const ACTION = { '@type': `${TYPE}.ForwardClientCertConfig` };

function faultsOf(matcher: JsonObject): string[] {
  const texts = faultTexts(load(withMatcher(matcher)), 'error');
  return texts.map((text) => text.replace(/^.*forward_client_cert_matcher\.?/, ''));
}

function withMatcher(forward_client_cert_matcher: JsonObject): JsonObject {
  return withListeners(listenerWith([httpFilter({ forward_client_cert_matcher })]));
}

function to(typed_config: JsonObject): JsonObject {
  return { on_no_match: { action: { name: 'a', typed_config } } };
}

test('what the actions of forward_client_cert_matcher say is what the fields of the same names say', () => {
  const fields = {
    forward_client_cert_details: 'APPEND_FORWARD',
    set_current_client_cert_details: { subject: true, chain: true },
  };
  const { filter } = mustLoad(withMatcher(to({ ...ACTION, ...fields }))).listeners[0]!.filterChains[0]!;
  assert.ok(filter.kind === 'http-connection-manager');
  const { clientCertificate, clientCertificateMatcher: tree } = filter;
  const action = { mode: 'append-forward', subject: true, cert: false, chain: true, dns: false, uri: false };
  assert.deepEqual(tree?.otherwise?.next, { kind: 'action', action });
  assert.equal(clientCertificate.mode, 'sanitize');
});

test('faults of forward_client_cert_matcher name their place', () => {
  const route = {
    '@type': 'type.googleapis.com/envoy.config.route.v3.Route',
    match: { prefix: '/' },
    route: { cluster: 'web' },
  };
  const [place, ...others] = faultsOf(to(route));
  assert.match(
    place!,
    /^on_no_match\.action\.typed_config: "proxy\.config\.route\.v3\.Route" is no action here: ".*\.ForwardClientCertConfig" is$/,
  );
  assert.deepEqual(others, []);
  const details = 'on_no_match.action.typed_config.forward_client_cert_details';
  for (const forward_client_cert_details of ['NO_SUCH', 9]) {
    const faults = faultsOf(to({ ...ACTION, forward_client_cert_details }));
    assert.ok(faults[0]?.startsWith(details), faults.join('\n'));
  }
  assert.match(faultsOf({})[0]!, /needs a matcher_list, a matcher_tree or an on_no_match/);
  const response = { '@type': 'type.googleapis.com/envoy.type.matcher.v3.HttpResponseStatusCodeMatchInput' };
  const matcher_tree = {
    input: { name: 'i', typed_config: response },
    exact_match_map: { map: { 200: to(ACTION).on_no_match as JsonObject } },
  };
  assert.match(faultsOf({ matcher_tree })[0]!, /^matcher_tree\.input\.typed_config: .*only of responses/);
});
