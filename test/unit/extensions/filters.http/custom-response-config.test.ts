import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CustomResponseSettings } from '../../../../src/extensions/filters.http/custom_response/settings.ts';
import { faultTexts, type JsonObject, load } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings, withHttpFilter } from '../../../support/filter-config.ts';

const NAME = 'envoy.filters.http.custom_response';
const TYPE = 'envoy.extensions.filters.http.custom_response.v3.CustomResponse';
const POLICIES = 'type.googleapis.com/envoy.extensions.http.custom_response';
const ACTION = 'custom_response_matcher.on_no_match.action.typed_config';

const always = (policy: JsonObject): JsonObject => ({
  custom_response_matcher: { on_no_match: { action: { name: 'p', typed_config: policy } } },
});
const local = (fields: JsonObject): JsonObject =>
  always({ '@type': `${POLICIES}.local_response_policy.v3.LocalResponsePolicy`, ...fields });
const redirect = (fields: JsonObject): JsonObject =>
  always({ '@type': `${POLICIES}.redirect_policy.v3.RedirectPolicy`, ...fields });

const policyOf = (fields: JsonObject) => {
  const { tree, asksOthers } = filterSettings<CustomResponseSettings>(NAME, TYPE, fields);
  const { next } = tree!.otherwise!;
  assert.ok(next.kind === 'action');
  return { ...next.action, asksOthers };
};
const faults = (fields: JsonObject): string => filterFaults('custom_response', TYPE, fields).join('\n');

test('a policy of its own says a response', () => {
  assert.deepEqual(policyOf(local({})), {
    kind: 'local',
    body: new Uint8Array(),
    format: null,
    status: null,
    responseEdits: null,
    asksOthers: false,
  });
  const { body, status, format } = policyOf(
    local({ body: { inline_string: 'a' }, status_code: 503, body_format: { json_format: { a: 'b' } } }),
  ) as Extract<ReturnType<typeof policyOf>, { kind: 'local' }>;
  assert.deepEqual([body, status, format?.contentType], [new Uint8Array([97]), 503, 'application/json']);
});

test('another request goes to a URL, or to what differs from the place of the first', () => {
  const { target, asksOthers } = policyOf(redirect({ uri: 'https://a:1?b' })) as {
    target: unknown;
    asksOthers: boolean;
  };
  assert.deepEqual([target, asksOthers], [{ isHttps: true, authority: 'a:1', target: '/?b' }, true]);
  const changed = policyOf(redirect({ redirect_action: { host_redirect: 'b' }, status_code: 500 }));
  assert.equal(changed.status, 500);
  assert.equal((changed as { target: { host: string } }).target.host, 'b');
});

test('a filter without a matcher is one for routes that have one', () => {
  assert.equal(filterSettings<CustomResponseSettings>(NAME, TYPE, {}).tree, null);
});

test('what makes no response is refused by the name of the field', () => {
  assert.match(
    faults(always({ '@type': 'type.googleapis.com/envoy.config.route.v3.RouteList' })),
    new RegExp(`^${ACTION}: .*is no policy of custom responses`),
  );
  for (const status_code of [100, 199, 204, 205, 304, 600, 999]) {
    assert.match(
      faults(redirect({ uri: 'http://a/', status_code })),
      new RegExp(`^${ACTION}\\.status_code: ${status_code} is`),
    );
  }
  assert.equal(faults(redirect({ uri: 'http://a/', status_code: 599 })), '');
  for (const status_code of [199, 600])
    assert.match(faults(local({ status_code })), new RegExp(`^${ACTION}\\.status_code`));
  assert.equal(faults(local({ status_code: 204 })), '');
  assert.match(faults(redirect({})), new RegExp(`^${ACTION}`));
  for (const uri of ['/page', 'ftp://a/', 'a.example/page']) {
    assert.match(faults(redirect({ uri })), new RegExp(`^${ACTION}\\.uri: "${uri}" is no URL`));
  }
  for (const field of [{ prefix_rewrite: '/a' }, { response_code: 'FOUND' }]) {
    const [name] = Object.keys(field);
    assert.match(faults(redirect({ redirect_action: field })), new RegExp(`^${ACTION}\\.redirect_action\\.${name}`));
  }
  const modify = { name: 'm', typed_config: { '@type': 'type.googleapis.com/google.protobuf.Struct' } };
  assert.match(
    faults(redirect({ uri: 'http://a/', modify_request_headers_action: modify })),
    /modify_request_headers_action/,
  );
  assert.match(faults(local({ body_format: { text_format_source: { inline_string: '%NOPE%' } } })), /body_format/);
  assert.match(faults(local({ body: { filename: '/nowhere/at/all' } })), new RegExp(`^${ACTION}\\.body`));
});

test('routes cannot be chosen by a response', () => {
  const input = {
    name: 'i',
    typed_config: { '@type': 'type.googleapis.com/envoy.type.matcher.v3.HttpResponseStatusCodeMatchInput' },
  };
  const matcher = {
    matcher_tree: {
      input,
      exact_match_map: {
        map: {
          1: {
            action: { name: 'r', typed_config: { '@type': 'type.googleapis.com/envoy.config.route.v3.RouteList' } },
          },
        },
      },
    },
  };
  const bootstrap = withHttpFilter(NAME, TYPE, {});
  const text = JSON.stringify(bootstrap).replace(/"routes":\[.*?\}\]\}\]/, `"matcher":${JSON.stringify(matcher)}}]`);
  assert.match(faultTexts(load(JSON.parse(text)), 'error').join('\n'), /is an input that there is only of responses/);
});
