// Header edits of routes, on heads that pass through the codec and on those of local replies.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FormatFacts } from '../../../../src/data-plane/format/facts.ts';
import { directResponse } from '../../../../src/data-plane/http/local-reply.ts';
import { ReplyHead } from '../../../../src/data-plane/http/reply-head.ts';
import { AttemptEdits } from '../../../../src/data-plane/route/attempt-edits.ts';
import { compileHeaderEdits } from '../../../../src/data-plane/route/header-editor.ts';
import type { HeaderAddition, HeaderAppendAction, HeaderEdits } from '../../../../src/snapshot/index.ts';
import { compileHttp1, Http1Codec, PreparedLines } from '../../../../src/wasm/http1.ts';

const LIMITS = { maxHeadBytes: 60_000, maxFields: 100 };
const codec = new Http1Codec(compileHttp1());
const NO_BODY = new Uint8Array();
const NO_FACTS = {
  get facts(): FormatFacts {
    throw new Error('no fact was to be asked for');
  },
};

function set(
  name: string,
  value: string,
  action: HeaderAppendAction = 'append',
  keepsEmptyValue = false,
): HeaderAddition {
  return { name, value: value === '' ? [] : [value], action, keepsEmptyValue };
}

/** Header lines that the codec writes after the edits, without Host. */
function edited(lines: readonly string[], levels: readonly Partial<HeaderEdits>[]): string[] {
  const bytes = Buffer.from(`GET / HTTP/1.1\r\nHost: h\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`);
  assert.ok(codec.parseRequest(bytes, 0, bytes.length, LIMITS) > 0);
  // What the connection manager has added before, prepared and free.
  codec.request.appendPrepared(new PreparedLines(['x-prepared: 1', 'x-both: 1']));
  codec.request.append('x-free', '1');
  compileHeaderEdits(levels.map((level) => ({ remove: [], add: [], ...level })))?.apply(codec.request, NO_FACTS);
  const length = codec.writeRequest();
  assert.ok(length > 0);
  return codec.requestText(length).split('\r\n').slice(2, -2);
}

const OWN = ['x-prepared: 1', 'x-both: 1', 'x-free: 1'];

describe('header edits', () => {
  const cases: readonly {
    name: string;
    lines: string[];
    levels: readonly Partial<HeaderEdits>[];
    expected: string[];
  }[] = [
    {
      name: 'append beside what is there',
      lines: ['a: 1'],
      levels: [{ add: [set('a', '2')] }],
      expected: ['a: 1', 'a: 2'],
    },
    {
      name: 'overwrite all fields of a name',
      lines: ['A: 1', 'b: 1', 'a: 2'],
      levels: [{ add: [set('a', '3', 'overwrite')] }],
      expected: ['b: 1', 'a: 3'],
    },
    {
      name: 'overwrite what is absent',
      lines: [],
      levels: [{ add: [set('a', '3', 'overwrite')] }],
      expected: ['a: 3'],
    },
    {
      name: 'add if absent',
      lines: ['a: 1'],
      levels: [{ add: [set('a', '2', 'add-if-absent'), set('b', '2', 'add-if-absent')] }],
      expected: ['a: 1', 'b: 2'],
    },
    {
      name: 'overwrite if present',
      lines: ['a: 1'],
      levels: [{ add: [set('a', '2', 'overwrite-if-present'), set('b', '2', 'overwrite-if-present')] }],
      expected: ['a: 2'],
    },
    {
      name: 'remove before they add',
      lines: ['a: 1'],
      levels: [{ remove: ['a'], add: [set('a', '2', 'add-if-absent')] }],
      expected: ['a: 2'],
    },
    {
      name: 'overwrite before they append within a level',
      lines: [],
      levels: [{ add: [set('a', '1'), set('a', '2', 'overwrite')] }],
      expected: ['a: 2', 'a: 1'],
    },
    {
      name: 'leave out empty values',
      lines: [],
      levels: [{ add: [set('a', ''), set('b', '', 'append', true)] }],
      expected: ['b: '],
    },
    { name: 'leave out empty values in constant lines', lines: [], levels: [{ add: [set('a', '')] }], expected: [] },
    {
      name: 'of later levels see those of earlier ones',
      lines: [],
      levels: [{ add: [set('a', '1')] }, { remove: ['a'] }],
      expected: [],
    },
    {
      name: 'of later levels overwrite those of earlier ones',
      lines: [],
      levels: [{ add: [set('a', '1')] }, { add: [set('a', '2', 'overwrite')] }],
      expected: ['a: 2'],
    },
  ];
  for (const { name, lines, levels, expected } of cases) {
    test(name, () => assert.deepEqual(withoutOwn(edited(lines, levels)), expected));
  }

  test('reach what the proxy itself has added, and leave the rest of it in order', () => {
    assert.deepEqual(edited([], [{ remove: ['x-both'] }]), ['x-prepared: 1', 'x-free: 1']);
    assert.deepEqual(edited([], [{ remove: ['x-free', 'x-prepared'] }]), ['x-both: 1']);
    assert.deepEqual(edited([], [{ add: [set('x-free', '2', 'overwrite')] }]), [
      'x-prepared: 1',
      'x-both: 1',
      'x-free: 2',
    ]);
    assert.deepEqual(edited([], [{ add: [set('x-prepared', '2', 'add-if-absent')] }]), OWN);
  });

  test('fill in what is known of the request', () => {
    const facts = { requestHeader: (name: string) => (name === 'x-a' ? 'told' : undefined) } as FormatFacts;
    const operator = (header: string) => ({ operator: 'REQ', args: [header], maxLength: 0 }) as const;
    const add: HeaderAddition[] = [
      { ...set('x-b', ''), value: ['<', operator('x-a'), '>'] },
      { ...set('x-c', ''), value: [operator('x-missing')] },
    ];
    const head = new ReplyHead(directResponse(204, NO_BODY, null));
    compileHeaderEdits([{ remove: [], add }])?.apply(head, { facts });
    assert.equal(head.text(), 'HTTP/1.1 204 No Content\r\nx-b: <told>\r\n\r\n');
  });

  test('are nothing for a route without any', () => assert.equal(compileHeaderEdits([]), null));
});

function withoutOwn(lines: readonly string[]): string[] {
  return lines.filter((line) => !OWN.includes(line));
}

describe('the head of a local reply', () => {
  test('can be edited, but what the connection manager insists on comes last', () => {
    const head = new ReplyHead(directResponse(200, Buffer.from('hé'), null));
    const add = [set('content-type', 'text/html', 'overwrite'), set('server', 'mine'), set('x-a', '1')];
    compileHeaderEdits([{ remove: ['x-none'], add }])?.apply(head, NO_FACTS);
    head.setOwn('server: weir\r\nvia: 1.1 weir\r\n', 'now');
    assert.equal(
      head.text(),
      'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-type: text/html\r\nx-a: 1\r\nserver: weir\r\nvia: 1.1 weir\r\ndate: now\r\n\r\n',
    );
  });

  test('takes no value that would end its line', () => {
    const head = new ReplyHead(directResponse(204, NO_BODY, null));
    head.append('x-a', 'a\r\nx-b: 1');
    head.append('x-c', '\u0100');
    assert.equal(head.text(), 'HTTP/1.1 204 No Content\r\n\r\n');
  });
});

describe('edits of an attempt', () => {
  const head = 'GET / HTTP/1.1\r\nhost: old\r\nx-proxy-attempt-count: 1\r\n\r\n';
  const cases = [
    {
      name: "put the upstream host's name in",
      edits: new AttemptEdits(true, ''),
      hostname: 'new',
      attempt: 2,
      expected: head.replace('old', 'new'),
    },
    {
      name: 'leave the host without a name',
      edits: new AttemptEdits(true, ''),
      hostname: '',
      attempt: 1,
      expected: head,
    },
    {
      name: 'take no name that is none',
      edits: new AttemptEdits(true, ''),
      hostname: 'a\r\nb',
      attempt: 1,
      expected: head,
    },
    {
      name: 'leave the host of other routes',
      edits: new AttemptEdits(false, 'x-proxy-attempt-count'),
      hostname: 'new',
      attempt: 1,
      expected: head,
    },
    {
      name: 'count',
      edits: new AttemptEdits(false, 'x-proxy-attempt-count'),
      hostname: '',
      attempt: 2,
      expected: head.replace(': 1', ': 2'),
    },
  ];
  for (const { name, edits, hostname, attempt, expected } of cases) {
    test(name, () => assert.equal(edits.apply(head, hostname, attempt), expected));
  }
});
