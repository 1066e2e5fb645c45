import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseFormat } from '../../../../src/config/resources/format/format-string.ts';
import { OPERATORS } from '../../../../src/config/resources/format/operators.ts';
import { HeadText } from '../../../../src/data-plane/format/head-text.ts';
import { JsonFormatter } from '../../../../src/data-plane/format/json-formatter.ts';
import { escapeForLog, jsonString } from '../../../../src/data-plane/format/quoted-bytes.ts';
import { StreamFacts } from '../../../../src/data-plane/format/stream-facts.ts';
import { TextFormatter } from '../../../../src/data-plane/format/text-formatter.ts';
import { compileTimeFormat } from '../../../../src/data-plane/format/time-format.ts';
import { longFlags, ResponseFlag, shortFlags } from '../../../../src/data-plane/response-flags.ts';
import type { JsonFormat } from '../../../../src/snapshot/index.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const CLIENT = { ip: '10.1.2.3', port: 4567 };
const PEER = { ip: '::1', port: 9 };
const LOCAL = { ip: '10.0.0.1', port: 80 };
const DOWNSTREAM = {
  startMs: 900,
  securedMs: -1,
  connectionId: 7,
  remote: CLIENT,
  directRemote: PEER,
  local: LOCAL,
  directLocal: { ip: '/run/weir.sock', port: 0 },
  originalDestination: null,
  requestedServerName: '',
  transportProtocol: 'raw_buffer' as const,
  applicationProtocols: [],
  tls: null,
  metadata: undefined,
  state: () => undefined,
  transportFailure: '',
};

const CLUSTER_METADATA = {
  'com.test': { text: 'a"é', size: 1.5, on: false, none: null, list: [1, 'é'], deep: { er: { still: 'x' } } },
};
const INGRESS = { chainName: 'chain', chainMetadata: undefined, listenerMetadata: undefined };

function newFacts(): StreamFacts {
  const clock = new ManualClock();
  return new StreamFacts(clock, clock.monotonicMs(), DOWNSTREAM, 'DownstreamEnd', INGRESS);
}

function finishedFacts(): StreamFacts {
  const facts = newFacts();
  const head =
    'GET /a/b?x=1&y=2 HTTP/1.1\r\nHost: web:80\r\nUser-Agent: curl "x"\\\r\nX-Twice: one\r\nx-twice: two\r\n\r\n';
  return Object.assign(facts, {
    protocol: 'HTTP/1.1',
    status: 503,
    details: 'no_healthy_upstream',
    flags: ResponseFlag.UH | ResponseFlag.UF,
    bytesReceived: 12,
    bytesSent: 345,
    requestEndMs: 1001.9,
    requestSentMs: 1002,
    responseStartMs: 1010,
    endMs: 1015.5,
    routeName: 'route \u00e9',
    upstreamCluster: 'web',
    attempts: 2,
    requestHead: head,
    responseHead: 'HTTP/1.1 503 No\r\nX-Up: 1\r\n\r\n',
    upstream: {
      remote: { ip: 'fd00::1', port: 8080 },
      hostname: 'up.test:8080',
      local: { ip: '127.0.0.1', port: 555 },
      protocol: 'HTTP/1.1',
      metadata: undefined,
    },
    clusterMetadata: CLUSTER_METADATA,
  });
}

function render(format: string, facts = finishedFacts()): string {
  return new TextFormatter(parseFormat(format).segments!, { missing: '-' }).render(facts);
}

describe('text formats', () => {
  test('each operator finds its fact', () => {
    const cases: Readonly<Record<string, string>> = {
      '%REQ(:METHOD)% %REQ(:PATH)% %REQ(:AUTHORITY)%': 'GET /a/b?x=1&y=2 web:80',
      '%REQ(X-TWICE)% %REQ(nope?host)% %REQ(nope)%': 'one web:80 -',
      '%RESP(x-up)% %RESP(:status)% %RESP(nope)%': '1 503 -',
      '%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS%': '503 no_healthy_upstream UH,UF',
      '%RESPONSE_FLAGS_LONG%': 'NoHealthyUpstream,UpstreamConnectionFailure',
      '%BYTES_RECEIVED% %BYTES_SENT% %PROTOCOL%': '12 345 HTTP/1.1',
      '%DURATION% %REQUEST_DURATION% %REQUEST_TX_DURATION% %RESPONSE_DURATION% %RESPONSE_TX_DURATION%': '15 1 2 10 5',
      '%DOWNSTREAM_REMOTE_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% %DOWNSTREAM_REMOTE_PORT%':
        '10.1.2.3:4567 10.1.2.3 4567',
      '%DOWNSTREAM_DIRECT_REMOTE_ADDRESS% %DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%': '[::1]:9 ::1',
      '%DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_PORT%': '10.0.0.1:80 80',
      '%DOWNSTREAM_DIRECT_LOCAL_ADDRESS% %DOWNSTREAM_DIRECT_LOCAL_PORT%': '/run/weir.sock -',
      '%UPSTREAM_HOST% %UPSTREAM_CLUSTER% %UPSTREAM_LOCAL_ADDRESS%': '[fd00::1]:8080 web 127.0.0.1:555',
      '%UPSTREAM_HOST_NAME% %UPSTREAM_HOST_NAME_WITHOUT_PORT%': 'up.test:8080 up.test',
      '%UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% %UPSTREAM_REMOTE_PORT%': 'fd00::1 8080',
      '%UPSTREAM_REQUEST_ATTEMPT_COUNT% %CONNECTION_ID% %FILTER_CHAIN_NAME%': '2 7 chain',
      '%ACCESS_LOG_TYPE% %QUERY_PARAM(y)% %QUERY_PARAM(z)%': 'DownstreamEnd 2 -',
      '%VIRTUAL_CLUSTER_NAME% %REQUESTED_SERVER_NAME% %LOCAL_REPLY_BODY%': '- - -',
      '%START_TIME% %START_TIME(%s.%6f)%': '2026-01-01T00:00:01.000Z 1767225601.000000',
      '%REQ(:PATH):4%|%RESPONSE_CODE:2%|%REQ(nope):1%': '/a/b|50|-',
    };
    for (const [format, expected] of Object.entries(cases)) assert.equal(render(format), expected, format);
  });

  test('a stream that has just begun has no value for what is still to come', () => {
    const format =
      '%RESPONSE_CODE% %DURATION% %UPSTREAM_HOST% %RESPONSE_FLAGS% %REQ(:path)% %RESP(x)% %UPSTREAM_HOST_NAME%';
    assert.equal(render(format, newFacts()), '0 - - - - - -');
  });

  test('no flags are a value of their own, which nothing else stands in for', () => {
    const { segments } = parseFormat('%RESPONSE_FLAGS% %RESPONSE_FLAGS_LONG% [%UPSTREAM_HOST%]');
    assert.equal(new TextFormatter(segments!, { missing: '' }).render(newFacts()), '- - []');
  });

  test('every operator can be filled in for any stream', () => {
    for (const [operator, { argument }] of Object.entries(OPERATORS)) {
      const text = {
        duration: '(DS_RX_BEG:DS_RX_END:ms)',
        header: '(x)',
        name: '(x)',
        state: '(x)',
        metadata: '(CLUSTER:com.test)',
        time: '',
        style: '',
        path: '',
        server: '(HOST_FIRST)',
        query: '(DECODED)',
        none: '',
      }[argument];
      const format = `%${operator}${text}%`;
      assert.notEqual(render(format), '', format);
      assert.notEqual(render(format, newFacts()), '', format);
    }
  });

  test('names of the configuration are written in UTF-8', () => {
    assert.equal(Buffer.from(render('%ROUTE_NAME%'), 'latin1').toString(), 'route \u00e9');
  });

  test('metadata that is no text is written as JSON', () => {
    const cases: Readonly<Record<string, string>> = {
      text: 'a"é',
      size: '1.5',
      on: 'false',
      none: 'null',
      list: '[1,"é"]',
      deep: '{"er":{"still":"x"}}',
      'deep:er:still': 'x',
      'deep:er:still:0': '-',
      'deep:nothing': '-',
      toString: '-',
      'list:0': '-',
    };
    const facts = finishedFacts();
    for (const [keys, expected] of Object.entries(cases)) {
      const format = `%CLUSTER_METADATA(com.test:${keys})%`;
      assert.equal(Buffer.from(render(format, facts), 'latin1').toString(), expected, keys);
    }
    assert.equal(
      render('%CLUSTER_METADATA(com.test:deep):5%|%CLUSTER_METADATA(nobody)%|%METADATA(ROUTE:com.test)%'),
      '{"er"|-|-',
    );
  });

  test('metadata is looked for once, and anew where it is another', () => {
    const formatter = new TextFormatter(parseFormat('%CLUSTER_METADATA(a:b)%').segments!, { missing: '-' });
    const facts = finishedFacts();
    let reads = 0;
    const metadata = { a: Object.defineProperty({}, 'b', { get: () => String(++reads), enumerable: true }) };
    for (const [given, expected] of [
      [metadata, '1'],
      [{ a: { b: 'x' } }, 'x'],
      [metadata, '1'],
      [undefined, '-'],
    ] as const) {
      assert.equal(formatter.render(Object.assign(facts, { clusterMetadata: given })), expected);
    }
  });

  test('a stream keeps the identifier that it is asked for first', () => {
    const facts = finishedFacts();
    assert.match(render('%STREAM_ID%', facts), /^[0-9a-f-]{36}$/);
    assert.equal(render('%STREAM_ID%', facts), render('%STREAM_ID%', facts));
  });
});

describe('escapes', () => {
  test('a value can neither end its line nor its quotes', () => {
    assert.equal(escapeForLog('a"b\\c\r\nd\te\x7f'), 'a\\x22b\\x5Cc\\x0D\\x0Ad\\x09e\\x7F');
    assert.equal(escapeForLog('plain /path?x=1'), 'plain /path?x=1');
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 20 }), (text) => {
        assert.doesNotMatch(escapeForLog(text), /["\n\r]/);
      }),
    );
  });

  test('bytes that are no UTF-8 become replacement characters in JSON, and others survive', () => {
    assert.equal(Buffer.from(jsonString('\u00c3\u00a9\xff'), 'latin1').toString(), '"\u00e9\ufffd"');
    fc.assert(
      fc.property(fc.string(), (text) => {
        const bytes = Buffer.from(text).toString('latin1');
        assert.equal(JSON.parse(Buffer.from(jsonString(bytes), 'latin1').toString()), Buffer.from(text).toString());
      }),
    );
  });
});

describe('JSON formats', () => {
  const text = (format: string): JsonFormat => ({ kind: 'text', segments: parseFormat(format).segments! });
  const root: JsonFormat = {
    kind: 'object',
    entries: [
      ['agent', text('%REQ(user-agent)%')],
      ['code', text('%RESPONSE_CODE%')],
      ['list', { kind: 'list', items: [text('%PROTOCOL%'), { kind: 'constant', value: 5 }, text('%REQ(nope)%')] }],
      ['mixed', text('took %DURATION% ms, %REQ(nope)%')],
      ['nested', { kind: 'object', entries: [['none', text('%REQ(nope)%')]] }],
    ],
  };

  test('a typed format keeps numbers, and writes null for what is missing', () => {
    const formatter = new JsonFormatter(root, { isTyped: true, omitEmptyValues: false });
    assert.deepEqual(JSON.parse(formatter.render(finishedFacts())), {
      agent: 'curl "x"\\',
      code: 503,
      list: ['HTTP/1.1', 5, null],
      mixed: 'took 15 ms, -',
      nested: { none: null },
    });
  });

  test('an untyped format writes text throughout', () => {
    const formatter = new JsonFormatter(root, { isTyped: false, omitEmptyValues: false });
    assert.deepEqual(JSON.parse(formatter.render(finishedFacts())), {
      agent: 'curl "x"\\',
      code: '503',
      list: ['HTTP/1.1', 5, '-'],
      mixed: 'took 15 ms, -',
      nested: { none: '-' },
    });
  });

  test('metadata keeps its type in a typed format', () => {
    const entries = ['text', 'size', 'on', 'none', 'list'].map(
      (key) => [key, text(`%CLUSTER_METADATA(com.test:${key})%`)] as const,
    );
    const render = (isTyped: boolean): unknown => {
      const formatter = new JsonFormatter({ kind: 'object', entries }, { isTyped, omitEmptyValues: false });
      return JSON.parse(Buffer.from(formatter.render(finishedFacts()), 'latin1').toString());
    };
    assert.deepEqual(render(true), { text: 'a"é', size: 1.5, on: false, none: null, list: [1, 'é'] });
    assert.deepEqual(render(false), { text: 'a"é', size: '1.5', on: 'false', none: 'null', list: '[1,"é"]' });
  });

  test('empty values can be left out, with the objects that hold nothing else', () => {
    const formatter = new JsonFormatter(root, { isTyped: true, omitEmptyValues: true });
    assert.deepEqual(JSON.parse(formatter.render(finishedFacts())), {
      agent: 'curl "x"\\',
      code: 503,
      list: ['HTTP/1.1', 5],
      mixed: 'took 15 ms, ',
    });
  });
});

describe('times', () => {
  const instantMs = Date.UTC(2026, 1, 3, 14, 5, 6) + 78.5;

  test('conversions of strftime and fractions of a second', () => {
    const cases: Readonly<Record<string, string>> = {
      '': '2026-02-03T14:05:06.078Z',
      '%Y/%m/%d %H:%M:%S': '2026/02/03 14:05:06',
      '%a %A %b %B %h %e|%k|%l|%I %p': 'Tue Tuesday Feb February Feb  3|14| 2|02 PM',
      '%s.%3f %f %E3S %E*S': '1770127506.078 078500000 06.078 06.078500000',
      '%j %u %w %U %W %y %C': '034 2 2 05 05 26 20',
      '%D %F %T %R %r %x %X': '02/03/26 2026-02-03 14:05:06 14:05 02:05:06 PM 02/03/26 14:05:06',
      '%c%n%t%%': 'Tue Feb  3 14:05:06 2026\n\t%',
      '%z %Ez %Z %Q': '+0000 +00:00 UTC %Q',
    };
    for (const [format, expected] of Object.entries(cases)) {
      assert.equal(compileTimeFormat(format, false)(instantMs), expected, format);
    }
  });

  test('what is kept for a second does not outlive it', () => {
    const format = compileTimeFormat('%S.%1f', false);
    assert.deepEqual([0, 900, 1000, 61_500, 100].map(format), ['00.0', '00.9', '01.0', '01.5', '00.1']);
  });
});

describe('heads and flags', () => {
  test('a header is found whatever its case, and only where a line begins', () => {
    const head = new HeadText('GET /x-a:b HTTP/1.1\r\nAccept: x-a: no\r\nX-A:  Yes \r\n\r\n');
    assert.equal(head.header('x-a'), 'Yes');
    assert.equal(head.header('a'), undefined);
    assert.equal(head.header('x-a-long-name-beyond-the-end-of-the-head'), undefined);
  });

  test("the proxy's own headers are found under both spellings", () => {
    const head = new HeadText('GET / HTTP/1.1\r\nx-proxy-original-path: /a\r\nx-envoy-peer: b\r\n\r\n');
    assert.equal(head.header('x-envoy-original-path'), '/a');
    assert.equal(head.header('x-proxy-peer'), 'b');
  });

  test('flags are written in the order of their table', () => {
    assert.equal(shortFlags(ResponseFlag.DC | ResponseFlag.UT), 'UT,DC');
    assert.equal(longFlags(ResponseFlag.DO), 'DropOverload');
    assert.equal(shortFlags(0), '');
  });
});
