import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RbacFilterSettings } from '../../../../src/extensions/filters.http/rbac/settings.ts';
import { faultTexts, type JsonObject, load, mustLoad } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings, withHttpFilter } from '../../../support/filter-config.ts';

const NAME = 'envoy.filters.http.rbac';
const V3 = 'envoy.extensions.filters.http.rbac.v3.RBAC';
const V2 = 'envoy.config.filter.http.rbac.v2.RBAC';
const ANY = { any: true };

function policyFaults(fields: JsonObject, severity: 'error' | 'warning' = 'error'): string[] {
  const policy = { permissions: [ANY], principals: [ANY], ...fields };
  const texts = filterFaults('rbac', V3, { rules: { policies: { p: policy } } }, severity);
  return texts.map((text) => text.replace('rules.policies["p"].', ''));
}
const permission = (rule: JsonObject): string => policyFaults({ permissions: [rule] })[0]!;
const principal = (id: JsonObject): string => policyFaults({ principals: [id] })[0]!;

describe('what an rbac filter is told', () => {
  it('is the same in both generations', () => {
    const header = { header: { name: 'X-A', exact_match: '1' } };
    const policies = {
      z: { permissions: [ANY], principals: [{ authenticated: { principal_name: { exact: 'a' } } }] },
      a: {
        permissions: [{ destination_port: 80 }, header],
        principals: [{ source_ip: { address_prefix: '10.0.0.0', prefix_len: 8 } }],
      },
    };
    const of = (type: string): RbacFilterSettings =>
      filterSettings(NAME, type, { rules: { action: 'DENY', policies } });
    assert.deepEqual(of(V3), of(V2));
    const { rules, shadowRules } = of(V3).own;
    assert.ok(rules?.kind === 'policies');
    assert.deepEqual([rules.action, rules.policies.map(({ name }) => name), shadowRules], ['deny', ['a', 'z'], null]);
    assert.deepEqual(rules.policies[0]!.permissions[0], { kind: 'port', start: 80, end: 81 });
  });

  it('has counts under the names that it gives them', () => {
    const countersOf = (fields: JsonObject): unknown => {
      const { filter } = mustLoad(withHttpFilter(NAME, V3, fields)).listeners[0]!.filterChains[0]!;
      assert.ok(filter.kind === 'http-connection-manager');
      return filter.httpFilters[0]!.counters;
    };
    assert.deepEqual(countersOf({}), ['rbac.allowed', 'rbac.denied', 'rbac.shadow_allowed', 'rbac.shadow_denied']);
    assert.deepEqual(countersOf({ rules_stat_prefix: 'r', shadow_rules_stat_prefix: 's.' }), [
      'rbac.r.allowed',
      'rbac.r.denied',
      'rbac.s.shadow_allowed',
      'rbac.s.shadow_denied',
    ]);
  });

  it('is refused by the name of the field', () => {
    assert.match(policyFaults({ permissions: [] })[0]!, /^permissions: /);
    assert.match(policyFaults({ principals: [] })[0]!, /^principals: /);
    assert.match(permission({}), /^permissions\[0\]/);
    assert.match(principal({}), /^principals\[0\]/);
    assert.match(permission({ and_rules: { rules: [{}] } }), /^permissions\[0\]\.and_rules\.rules\[0\]/);
    assert.match(principal({ or_ids: { ids: [{ not_id: {} }] } }), /^principals\[0\]\.or_ids\.ids\[0\]\.not_id/);
    assert.match(permission({ any: false }), /^permissions\[0\]\.any: /);
    assert.match(permission({ destination_port: 65_536 }), /^permissions\[0\]\.destination_port: /);
    const ip = { address_prefix: '10.0.0.0', prefix_len: 33 };
    assert.match(permission({ destination_ip: ip }), /^permissions\[0\]\.destination_ip\.prefix_len: /);
    for (const field of ['source_ip', 'direct_remote_ip', 'remote_ip']) {
      assert.match(principal({ [field]: ip }), new RegExp(`^principals\\[0\\]\\.${field}\\.prefix_len: `));
    }
    const bad = { safe_regex: { regex: '(' } };
    assert.match(permission({ url_path: { path: bad } }), /^permissions\[0\]\.url_path\.path\.safe_regex/);
    assert.match(principal({ url_path: { path: bad } }), /^principals\[0\]\.url_path\.path\.safe_regex/);
    assert.match(permission({ requested_server_name: bad }), /^permissions\[0\]\.requested_server_name\.safe_regex/);
    assert.match(permission({ header: { name: 'x', string_match: bad } }), /^permissions\[0\]\.header\.string_match/);
    assert.match(principal({ header: { name: 'x', string_match: bad } }), /^principals\[0\]\.header\.string_match/);
    assert.match(
      principal({ authenticated: { principal_name: bad } }),
      /^principals\[0\]\.authenticated\.principal_name/,
    );
    const metadata = { filter: 'm', path: [{ key: 'a' }], value: { string_match: bad } };
    assert.match(permission({ metadata }), /^permissions\[0\]\.metadata\.value\.string_match/);
    const nested = {
      ...metadata,
      value: { or_match: { value_matchers: [ANY_VALUE, { list_match: { one_of: metadata.value } }] } },
    };
    assert.match(
      principal({ metadata: nested }),
      /^principals\[0\]\.metadata\.value\.or_match\.value_matchers\[1\]\.list_match\.one_of\.string_match/,
    );
  });

  it('is refused where this build would allow more than it says', () => {
    const lacking = /not supported by this build/;
    const extension = { name: 'x', typed_config: { '@type': 'type.googleapis.com/google.protobuf.Struct', value: {} } };
    assert.match(policyFaults({ condition: { call_expr: {} } })[0]!, lacking);
    assert.match(policyFaults({ checked_condition: { expr: {} } })[0]!, lacking);
    assert.match(permission({ matcher: extension }), lacking);
    assert.match(permission({ uri_template: extension }), lacking);
    assert.match(principal({ custom: extension }), lacking);
    const audit = { rules: { audit_logging_options: { audit_condition: 'ON_DENY' } } };
    assert.match(filterFaults('rbac', V3, audit, 'warning')[0]!, /^rules\.audit_logging_options: /);
  });

  it('is refused where a tree leads to what is no verdict, or to one without a name', () => {
    const leadingTo = (type: string, fields: JsonObject): JsonObject => ({
      on_no_match: { action: { name: 'a', typed_config: { '@type': `type.googleapis.com/${type}`, ...fields } } },
    });
    for (const field of ['matcher', 'shadow_matcher']) {
      const [route] = filterFaults('rbac', V3, {
        [field]: leadingTo('envoy.config.route.v3.Route', { match: { prefix: '/' }, redirect: {} }),
      });
      assert.ok(
        route!.startsWith(`${field}.on_no_match.action.typed_config: "proxy.config.route.v3.Route" is no action`),
      );
      const [unnamed] = filterFaults('rbac', V3, { [field]: leadingTo('envoy.config.rbac.v3.Action', {}) });
      assert.ok(unnamed!.startsWith(`${field}.on_no_match.action.typed_config.name: `));
    }
  });

  it('warns of rules that a tree takes the place of', () => {
    const action = { '@type': 'type.googleapis.com/envoy.config.rbac.v3.Action', name: 'all' };
    const matcher = { on_no_match: { action: { name: 'a', typed_config: action } } };
    const fields = { rules: {}, matcher, shadow_rules: {}, shadow_matcher: matcher };
    assert.deepEqual(filterFaults('rbac', V3, fields), []);
    assert.deepEqual(filterFaults('rbac', V3, fields, 'warning'), [
      'rules: is ignored: matcher decides in its place',
      'shadow_rules: is ignored: shadow_matcher decides in its place',
    ]);
  });

  it('is refused at a route by its place there', () => {
    const entry = {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute',
      rbac: { rules: { policies: { p: {} } } },
    };
    const [fault] = faultTexts(load(withHttpFilter(NAME, V3, {}, { [NAME]: entry })));
    assert.match(
      fault!,
      /typed_per_filter_config\["envoy\.filters\.http\.rbac"\]\.rbac\.rules\.policies\["p"\]\.permissions/,
    );
  });
});

const ANY_VALUE: JsonObject = { present_match: true };
