import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StatefulSessionSettings } from '../../../../src/extensions/filters.http/stateful_session/settings.ts';
import { faultTexts, type JsonObject, load, mustLoad } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings, withHttpFilter } from '../../../support/filter-config.ts';

const NAME = 'envoy.filters.http.stateful_session';
const TYPE = 'envoy.extensions.filters.http.stateful_session.v3.StatefulSession';
const STATES = 'type.googleapis.com/envoy.extensions.http.stateful_session';

const state = (kind: string, fields: JsonObject): JsonObject => ({
  session_state: { name: 'state', typed_config: { '@type': `${STATES}.${kind}`, ...fields } },
});
const cookie = (fields: JsonObject): JsonObject => state('cookie.v3.CookieBasedSessionState', { cookie: fields });
const header = (name: string): JsonObject => state('header.v3.HeaderBasedSessionState', { name });

const settingsOf = (fields: JsonObject) => filterSettings<StatefulSessionSettings>(NAME, TYPE, fields);

test('a session is in a cookie, in a header, or nowhere', () => {
  const attributes = [{ name: 'Secure' }, { name: 'SameSite', value: 'None' }];
  assert.deepEqual(settingsOf(cookie({ name: 'a', ttl: '1.9s', path: '/b', attributes })), {
    state: {
      kind: 'cookie',
      cookie: {
        name: 'a',
        ttlSeconds: 1,
        path: '/b',
        attributes: [
          { name: 'Secure', value: '' },
          { name: 'SameSite', value: 'None' },
        ],
      },
    },
    isStrict: false,
    missingStatus: 503,
    counters: null,
  });
  assert.deepEqual(settingsOf({ ...header('X-A'), strict: true, stat_prefix: 'p' }), {
    state: { kind: 'header', name: 'x-a' },
    isStrict: true,
    missingStatus: 503,
    counters: {
      routed: 'stateful_session.p.routed',
      failedOpen: 'stateful_session.p.failed_open',
      failedClosed: 'stateful_session.p.failed_closed',
      noSession: 'stateful_session.p.no_session',
    },
  });
  assert.deepEqual(settingsOf(state('envelope.v3.EnvelopeSessionState', { header: { name: 'X-A' } })).state, {
    kind: 'envelope',
    name: 'x-a',
  });
  assert.deepEqual(settingsOf({}), { state: null, isStrict: false, missingStatus: 503, counters: null });
});

test('what makes no session is refused by the name of the field', () => {
  const faults = (fields: JsonObject) => filterFaults('stateful_session', TYPE, fields).join('\n');
  const typedConfig = /^session_state\.typed_config/;
  assert.match(faults(state('cookie.v3.CookieBasedSessionState', {})), /^session_state\.typed_config\.cookie: /);
  assert.match(faults(cookie({})), /^session_state\.typed_config\.cookie\.name: /);
  assert.match(
    faults(cookie({ name: 'a;b' })),
    /^session_state\.typed_config\.cookie\.name: .*end a part of the cookie/,
  );
  assert.match(faults(cookie({ name: 'a', ttl: '-1s' })), /^session_state\.typed_config\.cookie\.ttl: /);
  assert.match(faults(header('')), /^session_state\.typed_config\.name: /);
  assert.match(faults(header('a b')), /^session_state\.typed_config\.name: /);
  const envelope = (fields: JsonObject) => faults(state('envelope.v3.EnvelopeSessionState', fields));
  assert.match(envelope({}), typedConfig);
  assert.match(envelope({ header: {} }), /^session_state\.typed_config\.header\.name: /);
  assert.match(envelope({ header: { name: 'a b' } }), /^session_state\.typed_config\.header\.name: /);
  assert.match(
    envelope({ sse_endpoint_message: { param_name: 'a' } }),
    /^session_state\.typed_config\.sse_endpoint_message: .*in a header/,
  );
  for (const status of [100, 199, 204, 205, 304, 600]) {
    assert.equal(
      faults({ status_on_strict_destination_not_found: status }),
      `status_on_strict_destination_not_found: ${status} is the status of no response that has a body`,
    );
  }
  assert.equal(settingsOf({ status_on_strict_destination_not_found: 404 }).missingStatus, 404);
});

test('a route has sessions of its own, or none', () => {
  const perRoute = (fields: JsonObject): JsonObject => ({
    [NAME]: { '@type': `type.googleapis.com/${TYPE}PerRoute`, ...fields },
  });
  const said = (fields: JsonObject) => {
    const { filter } = mustLoad(withHttpFilter(NAME, TYPE, header('a'), perRoute(fields))).listeners[0]!
      .filterChains[0]!;
    assert.ok(filter.kind === 'http-connection-manager');
    return filter.routeTable!.virtualHosts[0]!.routes[0]!.filters!.get(NAME);
  };
  assert.deepEqual(said({ disabled: true }), [{ isDisabled: true }]);
  assert.deepEqual(said({ stateful_session: { ...header('B'), strict: true } }), [
    { isDisabled: false, settings: { state: { kind: 'header', name: 'b' }, isStrict: true, missingStatus: 503 } },
  ]);
  assert.match(faultTexts(load(withHttpFilter(NAME, TYPE, {}, perRoute({}))), 'error')[0]!, /stateful_session/);
});
