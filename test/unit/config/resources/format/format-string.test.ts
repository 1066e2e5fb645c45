import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseFormat } from '../../../../../src/config/resources/format/format-string.ts';
import {
  ABSENT_OPERATORS,
  METADATA_OPERATORS,
  OPERATORS,
} from '../../../../../src/config/resources/format/operators.ts';

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
  const { segments } = parseFormat('%UPSTREAM_FILTER_STATE(com.test:key):9%%PER_REQUEST_STATE(a)%');
  assert.deepEqual(
    segments?.map((segment) => typeof segment === 'object' && segment.operator),
    ['ABSENT', 'ABSENT'],
  );
});

test('operators for metadata say whose, of which namespace, and which value', () => {
  const command = (...args: string[]) => [{ operator: 'METADATA', args, maxLength: 0 }];
  const cases: Readonly<Record<string, unknown>> = {
    '%METADATA(ROUTE:com.test)%': command('ROUTE', 'com.test'),
    '%METADATA(LISTENER:com.test:a:b)%': command('LISTENER', 'com.test', 'a', 'b'),
    '%CLUSTER_METADATA(com.test:a)%': command('CLUSTER', 'com.test', 'a'),
    '%DYNAMIC_METADATA(com.test:a)%': command('DYNAMIC', 'com.test', 'a'),
    '%UPSTREAM_METADATA(com.test:a)%': command('UPSTREAM_HOST', 'com.test', 'a'),
    '%UPSTREAM_METADATA(["com:test", "a"])%': command('UPSTREAM_HOST', 'com:test', 'a'),
    [Buffer.from('%CLUSTER_METADATA(é:Ü)%').toString('latin1')]: command('CLUSTER', 'é', 'Ü'),
    '%CLUSTER_METADATA(com.test:a):5%': [{ operator: 'METADATA', args: ['CLUSTER', 'com.test', 'a'], maxLength: 5 }],
  };
  for (const [format, segments] of Object.entries(cases)) assert.deepEqual(parseFormat(format), { segments }, format);
});

test('a status of gRPC has a style', () => {
  const command = (operator: string, ...args: string[]) => [{ operator, args, maxLength: 0 }];
  const cases: Readonly<Record<string, unknown>> = {
    '%GRPC_STATUS%': command('GRPC_STATUS', 'CAMEL_STRING'),
    '%GRPC_STATUS()%': command('GRPC_STATUS', 'CAMEL_STRING'),
    '%GRPC_STATUS(SNAKE_STRING)%': command('GRPC_STATUS', 'SNAKE_STRING'),
    '%GRPC_STATUS(NUMBER)%': command('GRPC_STATUS', 'NUMBER'),
    '%GRPC_STATUS_NUMBER%': command('GRPC_STATUS_NUMBER'),
  };
  for (const [format, segments] of Object.entries(cases)) assert.deepEqual(parseFormat(format), { segments }, format);
});

test('what is wrong is named', () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['%RESPONSE_KODE%', /^unknown command operator "RESPONSE_KODE"; did you mean RESPONSE_CODE\?$/],
    ['50% off', /^no command at position 3: a single '%' is written '%%'$/],
    ['%REQ(a?b?c)%', /^REQ\(a\?b\?c\): at most one fallback can be given$/],
    ['%REQ%', /^REQ needs a header name, not ""$/],
    ['%RESP(a b)%', /^RESP needs a header name, not "a b"$/],
    ['%CEL(request.path)%', /^CEL is not supported by this build: there is no CEL$/],
    ['%PROTOCOL(x)%', /^PROTOCOL takes no argument$/],
    ['%GRPC_STATUS(snake)%', /^GRPC_STATUS knows the styles CAMEL_STRING, SNAKE_STRING, NUMBER, not "snake"$/],
    ['%ENVIRONMENT%', /^ENVIRONMENT needs the name of a variable/],
    ['%QUERY_PARAM()%', /^QUERY_PARAM needs a name/],
    ['%QUERY_PARAMS(RAW)%', /^QUERY_PARAMS knows ORIG and DECODED, not "RAW"$/],
    ['%PATH(QN)%', /^PATH knows WQ, NQ first, not "QN"$/],
    ['%PATH(NQ:PATHS)%', /^PATH knows ORIG_OR_PATH, ORIG, PATH behind that, not "PATHS"$/],
    ['%REQUESTED_SERVER_NAME(SNI)%', /^REQUESTED_SERVER_NAME knows SNI_ONLY, SNI_FIRST, HOST_FIRST first, not "SNI"$/],
    [
      '%REQUESTED_SERVER_NAME(SNI_FIRST:X)%',
      /^REQUESTED_SERVER_NAME knows ORIG_OR_HOST, ORIG, HOST behind that, not "X"$/,
    ],
    ['%PATH(NQ:PATH:3)%', /^PATH\(NQ:PATH:3\): takes two arguments at most$/],
    ['%FILTER_STATE()%', /^FILTER_STATE needs a name/],
    ['%FILTER_STATE(a:FIELD:b)%', /^FILTER_STATE\(a:FIELD:b\): texts have no fields; use PLAIN$/],
    ['%METADATA%', /^METADATA needs one of CLUSTER, .*VIRTUAL_HOST first, not ""$/],
    ['%METADATA(CLUSTRE:a)%', /^METADATA needs one of CLUSTER, .* first, not "CLUSTRE"$/],
    ['%METADATA(CLUSTER)%', /^METADATA needs the namespace of the metadata$/],
    ['%CLUSTER_METADATA()%', /^CLUSTER_METADATA needs the namespace/],
    ['%UPSTREAM_METADATA(["a", 1])%', /^UPSTREAM_METADATA\(\["a", 1\]\): a list must be one of strings$/],
    ['%UPSTREAM_METADATA(["a")%', /^UPSTREAM_METADATA\(\["a"\): a list must be one of strings$/],
  ];
  for (const [format, message] of cases) assert.match(parseFormat(format).error ?? 'no error', message, format);
});

test('no operator is both filled in and absent', () => {
  for (const name of [...ABSENT_OPERATORS, ...METADATA_OPERATORS.keys()]) {
    assert.equal(Object.hasOwn(OPERATORS, name), false, name);
  }
  for (const name of METADATA_OPERATORS.keys()) assert.equal(ABSENT_OPERATORS.has(name), false, name);
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
