import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseFormat } from '../../../../../src/config/resources/format/format-string.ts';
import { ABSENT_OPERATORS, OPERATORS } from '../../../../../src/config/resources/format/operators.ts';

test('literal text and commands are taken apart in order', () => {
  assert.deepEqual(parseFormat('a %PROTOCOL% b%RESPONSE_CODE%'), {
    segments: [
      'a ',
      { operator: 'PROTOCOL', args: [], maxLength: 0 },
      ' b',
      { operator: 'RESPONSE_CODE', args: [], maxLength: 0 },
    ],
  });
});

test('two percent signs are one, and join the text around them', () => {
  assert.deepEqual(parseFormat('100%% of %%PROTOCOL%%'), { segments: ['100% of %PROTOCOL%'] });
});

test('a header command has a fallback and a length, and names in lower case', () => {
  assert.deepEqual(parseFormat('%REQ(X-Original-Path?:PATH):20%'), {
    segments: [{ operator: 'REQ', args: ['x-original-path', ':path'], maxLength: 20 }],
  });
});

test('a time format may hold percent signs and parentheses', () => {
  assert.deepEqual(parseFormat('%START_TIME(%Y-%m-%d (%H) %3f)% %START_TIME%'), {
    segments: [
      { operator: 'START_TIME', args: ['%Y-%m-%d (%H) %3f'], maxLength: 0 },
      ' ',
      { operator: 'START_TIME', args: [], maxLength: 0 },
    ],
  });
});

test('the host name and variables of the environment become text', () => {
  const environment = { POD: 'web-1', EMPTY: '', NAME: 'é' };
  const { segments } = parseFormat(
    '%HOSTNAME%|%ENVIRONMENT(POD):3%|%ENVIRONMENT(EMPTY)%|%ENVIRONMENT(NAME)%',
    environment,
  );
  assert.deepEqual(segments, [`${hostname()}|web|-|\u00c3\u00a9`]);
});

test('operators of what this build lacks are accepted and never have a value', () => {
  const { segments } = parseFormat('%DYNAMIC_METADATA(com.test:key):9%%UPSTREAM_METADATA(["a", "b"])%%TRACE_ID%');
  assert.deepEqual(
    segments?.map((segment) => typeof segment === 'object' && segment.operator),
    ['ABSENT', 'ABSENT', 'ABSENT'],
  );
});

test('what is wrong is named', () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['%RESPONSE_KODE%', /^unknown command operator "RESPONSE_KODE"; did you mean RESPONSE_CODE\?$/],
    ['50% off', /^no command at position 3: a single '%' is written '%%'$/],
    ['%REQ(a?b?c)%', /^REQ\(a\?b\?c\): at most one fallback can be given$/],
    ['%REQ%', /^REQ needs a header name, not ""$/],
    ['%RESP(a b)%', /^RESP needs a header name, not "a b"$/],
    ['%PROTOCOL(x)%', /^PROTOCOL takes no argument$/],
    ['%ENVIRONMENT%', /^ENVIRONMENT needs the name of a variable/],
    ['%QUERY_PARAM()%', /^QUERY_PARAM needs a name/],
  ];
  for (const [format, message] of cases) assert.match(parseFormat(format).error ?? 'no error', message, format);
});

test('no operator is both filled in and absent', () => {
  for (const name of ABSENT_OPERATORS) assert.equal(Object.hasOwn(OPERATORS, name), false, name);
});

test('text without percent signs stays as it is, and any text is parsed or refused with a message', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const { segments, error } = parseFormat(text);
      if (!text.includes('%')) assert.deepEqual(segments, text === '' ? [] : [text]);
      else assert.notEqual(segments === undefined, error === undefined);
    }),
  );
});

test('escaping percent signs brings any text back', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (text) => {
      assert.deepEqual(parseFormat(text.replaceAll('%', '%%')).segments, [text]);
    }),
  );
});
