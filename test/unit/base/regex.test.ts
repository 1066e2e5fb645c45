import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileRegex, compileSubstitution, literalPrefix } from '../../../src/base/regex.ts';

describe('a regular expression of an operator', () => {
  it('is searched anywhere or matched whole', () => {
    const { regex } = compileRegex('b|cd');
    assert.deepEqual(
      ['abc', 'cd', 'b', 'a'].map((text) => regex?.search(text)),
      [true, true, true, false],
    );
    assert.deepEqual(
      ['abc', 'cd', 'b', 'cdb'].map((text) => regex?.matches(text)),
      [false, true, true, false],
    );
  });

  for (const pattern of ['(', '[b-a]', '(?=look)', '(a)\\1', 'a{1001}']) {
    it(`is refused with a reason when it is ${pattern}`, () => {
      const { regex, error } = compileRegex(pattern);
      assert.equal(regex, undefined);
      assert.notEqual(error, '');
    });
  }

  it('takes linear time where backtracking would not end', () => {
    assert.equal(compileRegex('^(a+)+$').regex?.search(`${'a'.repeat(5000)}b`), false);
  });
});

describe('what every match of a pattern begins with', () => {
  for (const [pattern, prefix] of [
    ['^cluster\\.web\\.', 'cluster.web.'],
    ['^cluster.web', 'cluster'],
    ['^cluster\\.a-b_c:1$', 'cluster.a-b_c:1'],
    ['^abc*', 'ab'],
    ['^abc?', 'ab'],
    ['^abc{0,2}', 'ab'],
    ['^abc+', 'abc'],
    ['^ab\\.*', 'ab'],
    ['^abc|d', ''],
    ['^(?i)abc', ''],
    ['^\\d', ''],
    ['^\\Qa.b\\E', ''],
    ['cluster', ''],
    ['', ''],
  ] as const) {
    it(`is '${prefix}' for '${pattern}'`, () => {
      assert.equal(literalPrefix(pattern), prefix);
    });
  }
});

describe('a substitution', () => {
  const cases = [
    {
      pattern: '^/service/([^/]+)(/.*)$',
      template: '\\2/instance/\\1',
      text: '/service/foo/v1',
      expected: '/v1/instance/foo',
    },
    { pattern: 'a', template: 'b', text: 'banana', expected: 'bbnbnb' },
    { pattern: '(a)(n)?', template: '[\\2\\0]', text: 'ana', expected: '[nan][a]' },
    { pattern: '(a)', template: '\\10', text: 'a', expected: 'a0' },
    { pattern: 'a', template: '$&$1$$', text: 'a', expected: '$&$1$$' },
    { pattern: 'a', template: '\\\\', text: 'a', expected: '\\' },
    { pattern: 'x', template: 'y', text: 'a', expected: 'a' },
    // Byte text, in which ü is two characters.
    { pattern: 'x', template: '(\\0ü)', text: 'x', expected: '(x\xc3\xbc)' },
    { pattern: '^.x', template: '\\0\\0', text: '\xc3\xbcx\xff', expected: '\xc3\xbcx\xc3\xbcx\xff' },
  ];
  for (const { pattern, template, text, expected } of cases) {
    it(`makes ${expected} of ${text} by ${pattern} and ${template}`, () => {
      assert.equal(compileSubstitution(pattern, template).substitute?.(text), expected);
    });
  }

  for (const [pattern, template] of [
    ['(a)', '\\2'],
    ['a', '\\1'],
    ['a', '\\'],
    ['a', '\\x'],
    ['(', ''],
  ] as const) {
    it(`is refused when it is ${pattern} and ${template}`, () => {
      assert.notEqual(compileSubstitution(pattern, template).error ?? '', '');
    });
  }
});
