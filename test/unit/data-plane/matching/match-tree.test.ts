// Decision trees over a subject of the test's own, over connections, and what is chosen by hashes.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import type { DownstreamFacts } from '../../../../src/data-plane/format/facts.ts';
import { CONNECTION_INPUTS } from '../../../../src/data-plane/matching/connection-inputs.ts';
import {
  compileMatchTree,
  compilePredicate,
  type InputReaders,
  type MatchTools,
} from '../../../../src/data-plane/matching/match-tree.ts';
import type { MatchInput, MatchOutcome, MatchPredicate, MatchTree } from '../../../../src/snapshot/index.ts';
import { UpstreamWorkers } from '../../../support/upstream-workers.ts';

type Subject = Readonly<Record<string, string>>;

const READERS: InputReaders<Subject> = {
  text: (input) => (subject) => (input.kind === 'request-header' ? subject[input.name] : undefined),
  metadata: () => undefined,
};
const KERNEL = new UpstreamWorkers(1, () => {}).contexts[0]!.lbKernel;
const TOOLS: MatchTools = { runtime: new RuntimeValues(), kernel: KERNEL };

const header = (name: string): MatchInput => ({ kind: 'request-header', name });
const to = (action: string, keepsMatching = false): MatchOutcome<string> => ({
  next: { kind: 'action', action },
  keepsMatching,
});
const into = (tree: MatchTree<string>, keepsMatching = false): MatchOutcome<string> => ({
  next: { kind: 'tree', tree },
  keepsMatching,
});
const is = (name: string, value: string): MatchPredicate => ({
  kind: 'input',
  input: header(name),
  test: { kind: 'text', match: { kind: 'exact', value, ignoresCase: false } },
});

/** What a tree finds, and what it notes on the way. */
function found(tree: MatchTree<string>, subject: Subject): [string | undefined, string[]] {
  const noted: string[] = [];
  const find = compileMatchTree(tree, READERS, TOOLS, (action) => action);
  return [find(subject, (action) => noted.push(action)), noted];
}

describe('a list', () => {
  const list: MatchTree<string> = {
    kind: 'list',
    entries: [
      { predicate: is('a', '1'), outcome: to('noted', true) },
      {
        predicate: is('a', '1'),
        outcome: into({ kind: 'list', entries: [{ predicate: is('b', '1'), outcome: to('inner') }] }),
      },
      { predicate: is('a', '1'), outcome: into({ kind: 'anything', otherwise: to('also noted') }, true) },
      { predicate: is('a', '1'), outcome: to('found') },
      { predicate: is('a', '1'), outcome: to('too late') },
    ],
    otherwise: to('otherwise'),
  };

  test('leads to the first that holds and does not keep matching', () => {
    assert.deepEqual(found(list, { a: '1' }), ['found', ['noted', 'also noted']]);
  });

  test('goes on behind a tree that leads nowhere, and ends with one that leads somewhere', () => {
    assert.deepEqual(found(list, { a: '1', b: '1' }), ['inner', ['noted']]);
  });

  test('that holds nothing leads to what it has for that, or nowhere', () => {
    assert.deepEqual(found(list, {}), ['otherwise', []]);
    assert.deepEqual(found({ kind: 'list', entries: [] }, {}), [undefined, []]);
  });

  test('keeps matching though nobody notes what is found', () => {
    assert.equal(compileMatchTree(list, READERS, TOOLS, (action) => action)({ a: '1' }), 'found');
  });
});

test('what is missing passes no test, and so the contrary of each', () => {
  const holds = (predicate: MatchPredicate): boolean => compilePredicate(predicate, READERS, TOOLS)({});
  assert.equal(holds(is('a', '')), false);
  assert.equal(holds({ kind: 'not', of: is('a', '') }), true);
  assert.equal(holds({ kind: 'or', of: [] }), false);
  assert.equal(holds({ kind: 'and', of: [] }), true);
});

test('the longest prefix that leads somewhere is the same that trying all of them finds', () => {
  const text = fc.stringMatching(/^[ab]{0,4}$/);
  const outcome = fc.constantFrom('action', 'nowhere');
  fc.assert(
    fc.property(fc.dictionary(text, outcome), text, (map, value) => {
      const entries = Object.entries(map).map(
        ([prefix, kind]) => [prefix, kind === 'action' ? to(prefix) : into({ kind: 'anything' })] as const,
      );
      const expected = Object.keys(map)
        .filter((prefix) => value.startsWith(prefix) && map[prefix] === 'action')
        .sort((a, b) => b.length - a.length)[0];
      assert.equal(found({ kind: 'prefix', input: header('a'), entries }, { a: value })[0], expected);
    }),
  );
});

test('names of servers are found by the longest domain, then by order', () => {
  const entries = [
    { domains: ['*.b.c', '*'], outcome: into({ kind: 'anything' }) },
    { domains: ['*.c'], outcome: to('c') },
    { domains: ['a.b.c', 'x'], outcome: to('whole') },
    { domains: ['*.b.c'], outcome: to('b.c') },
    { domains: ['*'], outcome: to('any') },
  ];
  const tree: MatchTree<string> = { kind: 'domains', input: header('a'), entries };
  const cases = {
    'a.b.c': 'whole',
    'A.B.C': 'whole',
    'd.b.c': 'b.c',
    'e.d.b.c': 'b.c',
    'b.c': 'c',
    c: 'any',
    x: 'whole',
  };
  for (const [name, expected] of Object.entries(cases)) assert.equal(found(tree, { a: name })[0], expected, name);
  assert.equal(found(tree, {})[0], undefined);
});

describe('a share by hashes', () => {
  const shareOf = (test: Extract<MatchPredicate, { kind: 'input' }>['test'], tools = TOOLS): number => {
    const holds = compilePredicate({ kind: 'input', input: header('a'), test }, READERS, tools);
    return Array.from({ length: 1000 }, (_, index) => holds({ a: `user-${index}` })).filter(Boolean).length;
  };

  test('is the one above the threshold, always the same, and another one for another seed', () => {
    const hash = (threshold: number, seed = '0') => ({ kind: 'hash', threshold, modulo: 100, seed }) as const;
    assert.equal(shareOf(hash(0)), 1000);
    const share = shareOf(hash(70));
    assert.ok(share > 230 && share < 370, String(share));
    assert.equal(shareOf(hash(70)), share);
    const value = 'user-1';
    const own = [0n, 1n, 2n, 3n].map((seed) => Number(KERNEL.xxHash64(value, seed) % 100n) >= 50);
    for (const [seed, expected] of own.entries()) {
      const test = hash(50, String(seed));
      assert.equal(
        compilePredicate({ kind: 'input', input: header('a'), test }, READERS, TOOLS)({ a: value }),
        expected,
      );
    }
  });

  test('may be set by the runtime', () => {
    const runtime = new RuntimeValues();
    const share = { key: 'my.share', default: { numerator: 30, denominator: 100 } };
    const test = { kind: 'share', share, seed: '0' } as const;
    const tools = { runtime, kernel: KERNEL };
    const some = shareOf(test, tools);
    assert.ok(some > 230 && some < 370, String(some));
    runtime.replace(new Map([['my.share', '100']]));
    assert.equal(shareOf(test, tools), 1000);
    runtime.replace(new Map([['my.share', '0']]));
    assert.equal(shareOf(test, tools), 0);
  });
});

describe('of a connection', () => {
  const end = (ip: string, port: number) => ({ ip, port });
  const connection = {
    remote: end('10.0.0.1', 1234),
    directRemote: end('10.0.0.2', 1235),
    local: end('10.0.0.3', 443),
    requestedServerName: 'a.example',
    transportProtocol: 'tls',
    applicationProtocols: ['h2', 'http/1.1'],
    tls: { protocol: '', peer: { subject: 'CN=x', names: { uri: ['spiffe://a', 'spiffe://b'], dns: ['a', 'b'] } } },
    metadata: { ns: { text: 'é', number: 1 } },
    state: (key: string) => (key === 'known' ? 'value' : undefined),
  } as unknown as DownstreamFacts;
  const empty = {
    ...connection,
    remote: end('', 0),
    directRemote: end('', 0),
    local: end('', 0),
    requestedServerName: '',
    applicationProtocols: [],
    tls: null,
    metadata: undefined,
  } as DownstreamFacts;
  const metadata = (...path: string[]): MatchInput => ({ kind: 'dynamic-metadata', namespace: 'ns', path });

  const cases: readonly (readonly [MatchInput, string | undefined, string | undefined])[] = [
    [{ kind: 'destination-ip' }, '10.0.0.3', undefined],
    [{ kind: 'destination-port' }, '443', undefined],
    [{ kind: 'source-ip' }, '10.0.0.1', undefined],
    [{ kind: 'source-port' }, '1234', undefined],
    [{ kind: 'direct-source-ip' }, '10.0.0.2', undefined],
    [{ kind: 'source-type' }, undefined, undefined],
    [{ kind: 'server-name' }, 'a.example', undefined],
    [{ kind: 'transport-protocol' }, 'tls', 'tls'],
    [{ kind: 'application-protocol' }, "'h2','http/1.1'", undefined],
    [{ kind: 'uri-san' }, 'spiffe://a,spiffe://b', undefined],
    [{ kind: 'dns-san' }, 'a,b', undefined],
    [{ kind: 'subject' }, 'CN=x', undefined],
    [{ kind: 'filter-state', key: 'known' }, 'value', 'value'],
    [{ kind: 'filter-state', key: 'other' }, undefined, undefined],
    [metadata('text'), 'Ã©', undefined],
    [metadata('number'), undefined, undefined],
    [{ kind: 'constant', value: 'é' }, 'Ã©', 'Ã©'],
    [{ kind: 'constant', value: null }, undefined, undefined],
    [header('host'), undefined, undefined],
    [{ kind: 'query-parameter', name: 'a' }, undefined, undefined],
  ];
  for (const [input, expected, ofEmpty] of cases) {
    test(`${JSON.stringify(input)} is ${expected}`, () => {
      const read = CONNECTION_INPUTS.text(input);
      assert.equal(read(connection), expected);
      assert.equal(read(empty), ofEmpty);
    });
  }

  test('the source is local by loopback, and by the address that it meant to reach', () => {
    const read = CONNECTION_INPUTS.text({ kind: 'source-type' });
    assert.equal(read({ ...connection, remote: end('127.0.0.9', 1) }), 'local');
    assert.equal(read({ ...connection, remote: end('::1', 1) }), 'local');
    assert.equal(read({ ...connection, remote: end('10.0.0.3', 1) }), 'local');
  });

  test('the protocol that was agreed on stands for those that were offered', () => {
    const tls = { ...connection.tls!, protocol: 'h2' };
    assert.equal(CONNECTION_INPUTS.text({ kind: 'application-protocol' })({ ...connection, tls }), "'h2'");
  });

  test('what filters say is tested whatever type it has', () => {
    const test = { kind: 'value', match: { kind: 'number', value: 1 }, isInverted: false } as const;
    const predicate = { kind: 'input', input: metadata('number'), test } as const;
    const holds = compilePredicate(predicate, CONNECTION_INPUTS, TOOLS);
    assert.equal(holds(connection), true);
    assert.equal(holds(empty), false);
  });
});
