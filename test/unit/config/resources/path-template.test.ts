// Templates of paths: what they match as regular expressions, and what is no template.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { faultTexts, type JsonObject, load, withRoutes } from '../../../support/bootstrap.ts';

const AT =
  'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].routes[0]';
const TYPES = 'type.googleapis.com/envoy.extensions.path';

function policy(kind: 'match' | 'rewrite', fields: JsonObject): JsonObject {
  const type = kind === 'match' ? 'UriTemplateMatchConfig' : 'UriTemplateRewriteConfig';
  return { name: 'x', typed_config: { '@type': `${TYPES}.${kind}.uri_template.v3.${type}`, ...fields } };
}

function faultsOf(path_template: string, action: JsonObject = {}, match: JsonObject = {}): string[] {
  const path_match_policy = policy('match', { path_template });
  const routes = [{ match: { path_match_policy, ...match }, route: { cluster: 'web', ...action } }];
  const result = load(withRoutes({ virtual_hosts: [{ name: 'all', domains: ['*'], routes }] }));
  return faultTexts(result).map((text) => text.replace(`${AT}.`, ''));
}

function rewriting(path_template_rewrite: string): JsonObject {
  return { path_rewrite_policy: policy('rewrite', { path_template_rewrite }) };
}

describe('a path template', () => {
  const NAMES = 'letters, digits and underscores';
  const wrong: readonly (readonly [template: string, reason: string])[] = [
    ['users', 'it does not begin with a slash'],
    ['/a/{b', 'a brace has no partner'],
    ['/a/b}', 'a brace has no partner'],
    ['/a b', '"a b" cannot stand in a path'],
    ['/a?b', '"a?b" cannot stand in a path'],
    ['/{}', `"" is no name of at most 16 ${NAMES}`],
    ['/{1a}', `"1a" is no name of at most 16 ${NAMES}`],
    ['/{abcdefghijklmnopq}', `"abcdefghijklmnopq" is no name of at most 16 ${NAMES}`],
    ['/{a}/{a}', '"a" is there twice'],
    ['/{a}/{b}/{c}/{d}/{e}/{f}', 'it has more than 5 names'],
    ['/{a}{b}', '"{a}{b}" has more than one operator'],
    ['/*x*', '"*x*" has more than one operator'],
    ['/**/{a}', 'an operator stands behind **, which takes all there is'],
    ['/{a=**}/*', 'an operator stands behind **, which takes all there is'],
    ['/{a=}', '"a" stands for nothing'],
    ['/{a=b//c}', '"b//c" has an empty segment'],
  ];
  for (const [template, reason] of wrong) {
    it(`is not ${template}`, () => {
      assert.deepEqual(faultsOf(template), [
        `match.path_match_policy.typed_config.path_template: ${JSON.stringify(template)} is no path template: ${reason}`,
      ]);
    });
  }

  for (const template of ['/', '/*', '/**', '/a/**.mpd', '/{a=x/*/y}/z', '/{abcdefghijklmnop}', "/a.b$c(1)+'~"]) {
    it(`may be ${template}`, () => assert.deepEqual(faultsOf(template), []));
  }
});

describe('a rewrite by a template', () => {
  const wrong: readonly (readonly [rewrite: string, reason: string])[] = [
    ['{a}', 'it does not begin with a slash'],
    ['/{b}', 'the template has no "b"'],
    ['/{a', 'it holds "{"'],
    ['/*', 'it holds "*"'],
    ['/\\1', 'it holds "\\\\"'],
    ['/{a}?x', 'it holds "?"'],
  ];
  for (const [rewrite, reason] of wrong) {
    it(`is not ${rewrite}`, () => {
      assert.deepEqual(faultsOf('/{a}', rewriting(rewrite)), [
        `route.path_rewrite_policy.typed_config.path_template_rewrite: ${JSON.stringify(rewrite)} cannot be filled in: ${reason}`,
      ]);
    });
  }

  it('needs a template to match', () => {
    const match = { prefix: '/' };
    const routes = [{ match, route: { cluster: 'web', ...rewriting('/a') } }];
    const result = load(withRoutes({ virtual_hosts: [{ name: 'all', domains: ['*'], routes }] }));
    assert.deepEqual(faultTexts(result), [
      `${AT}.route.path_rewrite_policy: needs a path_match_policy, which names what it is made of`,
    ]);
  });

  it('tells of a faulty template once', () => {
    assert.equal(faultsOf('/{a', rewriting('/{a}')).length, 1);
  });

  it('is the only one', () => {
    assert.deepEqual(faultsOf('/{a}', { ...rewriting('/{a}'), prefix_rewrite: '/x' }), [
      'route.path_rewrite_policy: cannot be given together with prefix_rewrite',
    ]);
    assert.deepEqual(faultsOf('/{a}', { ...rewriting('/{a}'), path_rewrite: '/x' }), [
      'route.path_rewrite: cannot be given together with path_rewrite_policy',
    ]);
  });
});
