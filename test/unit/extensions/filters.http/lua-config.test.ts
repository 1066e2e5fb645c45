// Which scripts in Lua are let in, and what is said of others.

import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { hasStatement } from '../../../../src/extensions/filters.http/lua/config.ts';
import { faultTexts, type JsonObject, load } from '../../../support/bootstrap.ts';
import { filterFaults, withHttpFilter } from '../../../support/filter-config.ts';

const NAME = 'envoy.filters.http.lua';
const LUA = 'envoy.extensions.filters.http.lua.v3.Lua';
const PER_ROUTE = 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.LuaPerRoute';
const SCRIPT = 'function envoy_on_request(handle) end';
const OWN = 'a filter of your own can do what it does (docs/filters.md)';
const REFUSAL = `"${NAME}" is not supported by this build: ${OWN}`;
const code = (inline_string: string): JsonObject => ({ inline_string });

test('a script without a statement is one of white space and comments', () => {
  const empty = ['', ' \n\t;;', '-- one\n-- two', '--[[ long\n x() ]]', '--[==[ x ]] ]==] ;', '--[ x', '--[=x\n', '--'];
  for (const script of empty) assert.ok(!hasStatement(script), script);
  const others = [
    'x()',
    '-- a\nx()',
    '--[[ a ]] x()',
    '--[=[ a ]] x() ',
    '--[ a\nx()',
    '-x',
    'return',
    '--[[ a ]]--\nx',
  ];
  for (const script of others) assert.ok(hasStatement(script), script);
});

describe('a filter in Lua', () => {
  const errors = (fields: JsonObject): string[] => filterFaults('lua', LUA, fields);

  it('is let in with a warning where it does nothing', () => {
    for (const fields of [
      {},
      { inline_code: '-- nothing', stat_prefix: 'x', clear_route_cache: false },
      { default_source_code: code('-- Placeholder for routes.\n'), source_codes: { later: code('--') } },
    ]) {
      assert.deepEqual(errors(fields), []);
      assert.deepEqual(filterFaults('lua', LUA, fields, 'warning'), [
        ': has no statement in Lua: the filter does nothing',
      ]);
    }
    const older = withHttpFilter('envoy.lua', 'envoy.config.filter.http.lua.v2.Lua', { inline_code: '' });
    assert.deepEqual(faultTexts(load(older), 'error'), []);
  });

  it('is refused with what to do where it does anything', () => {
    assert.deepEqual(errors({ inline_code: SCRIPT }), [`inline_code: ${REFUSAL}`]);
    assert.deepEqual(errors({ default_source_code: code(SCRIPT) }), [`default_source_code: ${REFUSAL}`]);
    assert.deepEqual(errors({ source_codes: { a: code('--'), b: code(SCRIPT) } }), [`source_codes["b"]: ${REFUSAL}`]);
    const [fault] = filterFaults('lua', LUA, { default_source_code: { filename: '/no/such.lua' } });
    assert.match(fault!, /^default_source_code\.filename: /);
  });

  it('is left out where it is optional', () => {
    const text = JSON.stringify(withHttpFilter(NAME, LUA, { inline_code: SCRIPT }));
    const result = load(JSON.parse(text.replace(`{"name":"${NAME}"`, `{"is_optional":true,"name":"${NAME}"`)));
    assert.deepEqual(faultTexts(result, 'error'), []);
    const [warning = '', ...others] = faultTexts(result, 'warning');
    assert.ok(warning.endsWith(`: ${REFUSAL}; it is left out, being optional`), warning);
    assert.deepEqual(others, []);
  });

  it('may be turned off by routes, which bring no scripts either', () => {
    const said = (fields: JsonObject): string[] =>
      faultTexts(load(withHttpFilter(NAME, LUA, {}, { [NAME]: { '@type': PER_ROUTE, ...fields } })), 'error');
    assert.deepEqual(said({ disabled: true }), []);
    assert.deepEqual(said({ name: 'later', filter_context: { a: 1 } }), []);
    assert.deepEqual(said({ source_code: code('-- none') }), []);
    const [fault, ...others] = said({ source_code: code(SCRIPT) });
    assert.match(
      fault!,
      /\["envoy\.filters\.http\.lua"\]\.source_code: "envoy\.extensions\.filters\.http\.lua\.v3\.LuaPerRoute" is not/,
    );
    assert.ok(fault!.endsWith(OWN));
    assert.deepEqual(others, []);
  });
});
