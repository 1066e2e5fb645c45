// What a user is told who asks for an extension that this build does not have.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { faultTexts, load } from '../../../support/bootstrap.ts';
import { withHttpFilter } from '../../../support/filter-config.ts';

const AT = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.http_filters[0].typed_config: ';

function saidOf(name: string, type: string): string {
  const [text] = faultTexts(load(withHttpFilter(name, `envoy.extensions.filters.http.${type}`, {})));
  return text!.replace(AT, '');
}

describe('an HTTP filter that is not there', () => {
  it('is refused by its name, with what to do instead', () => {
    const own = 'a filter of your own can do what it does (docs/filters.md)';
    const sentences: Record<string, string> = {
      'lua.v3.Lua': own,
      'wasm.v3.Wasm': own,
      'golang.v3alpha.Config': own,
      'dynamic_modules.v3.DynamicModuleFilter': own,
      'ext_proc.v3.ExternalProcessor': 'a filter of your own can call a cluster (docs/filters.md)',
      'oauth2.v3.OAuth2': 'jwt_authn verifies tokens, and ext_authz asks a service that logs users in',
    };
    for (const [type, sentence] of Object.entries(sentences)) {
      const name = `envoy.filters.http.${type.split('.')[0]}`;
      assert.equal(saidOf(name, type), `"${name}" is not supported by this build: ${sentence}`);
    }
  });

  it('is refused by its name alone where nothing else would do', () => {
    for (const kind of ['admission_control', 'ip_tagging']) {
      const name = `envoy.filters.http.${kind}`;
      assert.equal(saidOf(name, `${kind}.v3.Config`), `"${name}" is not supported by this build`);
    }
  });

  it('is left out where it is optional', () => {
    const bootstrap = withHttpFilter('envoy.filters.http.wasm', 'envoy.extensions.filters.http.wasm.v3.Wasm', {});
    const text = JSON.stringify(bootstrap).replace(
      '{"name":"envoy.filters.http.wasm"',
      '{"is_optional":true,"name":"envoy.filters.http.wasm"',
    );
    const result = load(JSON.parse(text));
    assert.deepEqual(faultTexts(result, 'error'), []);
    assert.match(faultTexts(result, 'warning')[0]!, /\(docs\/filters\.md\); it is left out, being optional$/);
  });
});
