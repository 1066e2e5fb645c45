import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import RE2 from 're2';
import { compileEcmaNameFilter } from '../../../src/base/ecma-name-filter.ts';
import { compileNameFilter, type NameFilter } from '../../../src/base/name-filter.ts';

function filterOf(pattern: string, compile = compileNameFilter): NameFilter {
  const { filter, error } = compile(pattern);
  if (filter === undefined) throw new Error(error);
  return filter;
}

const NAMES = [
  'cluster.web.upstream_rq_200',
  'cluster.web.upstream_cx_total',
  'cluster.api.upstream_rq_200',
  'server.live',
];

describe('a filter of names', () => {
  const cases: [pattern: string, parts: string[], places: number[]][] = [
    ['web', ['web'], [0, 1]],
    ['^cluster\\.web\\.', ['cluster.web.'], [0, 1]],
    ['rq_\\d+$', ['rq_'], [0, 2]],
    ['upstream_(rq|cx)_', ['upstream_', '_'], [0, 1, 2]],
    ['live|total', [], [1, 3]],
    ['cluster\\.(web|api)\\.upstream.*_200', ['.upstream', 'cluster.', '_200'], [0, 2]],
    ['(?:live|total)$', [], [1, 3]],
    ['upstreams?_rq', ['upstream', '_rq'], [0, 2]],
    ['[a-v]eb', ['eb'], []],
    ['[v-x]eb', ['eb'], [0, 1]],
    ['api.*200', ['api', '200'], [2]],
    ['.', [], [0, 1, 2, 3]],
    ['^$', [], []],
    ['a{2}|e{1,2}r', [], [0, 1, 2, 3]],
    // What could match a line break, or changes the meaning of the rest.
    ['web[^x]*200', [], [0]],
    ['(?i)WEB', [], [0, 1]],
    ['live\\z', [], [3]],
    ['\\Aserver', [], [3]],
    ['web\\S+rq', [], [0]],
  ];
  for (const [pattern, parts, places] of cases) {
    it(`finds /${pattern}/`, () => {
      const filter = filterOf(pattern);
      assert.deepEqual(filter.pick(NAMES), places);
      assert.deepEqual(filter.parts, parts);
    });
  }

  it('begins with what plain text the expression begins with', () => {
    assert.equal(filterOf('^cluster\\.web\\.').prefix, 'cluster.web.');
    assert.equal(filterOf('(?i)^cluster').prefix, '');
  });

  it('finds what asking for each name finds, and every find has the plain text in it', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', '.', '_', '\n'), maxLength: 6 });
    const atom = fc.constantFrom(
      'a',
      'b',
      '\\.',
      '_',
      '.',
      '[ab]',
      '[^a]',
      '\\d',
      '\\w',
      '\\W',
      '(a|b)',
      '(?:ab)',
      '^',
      '$',
      '\\b',
      '|',
    );
    const piece = fc
      .tuple(atom, fc.constantFrom('', '', '', '*', '+', '?', '{2}', '*?'))
      .map(([text, quantifier]) => (/^(?:\^|\$|\||\\b)$/.test(text) ? text : text + quantifier));
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 5 }),
        fc.array(word, { maxLength: 12 }),
        (pieces, names) => {
          const pattern = pieces.join('');
          const regex = new RE2(pattern);
          const filter = filterOf(pattern);
          const expected = [...names.keys()].filter((at) => regex.test(names[at]!));
          assert.deepEqual(filter.pick(names), expected);
          for (const at of expected) {
            assert.ok(
              filter.parts.every((part) => names[at]!.includes(part)) && names[at]!.startsWith(filter.prefix),
              `${names[at]} by /${pattern}/`,
            );
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('says what is wrong with an expression', () => {
    assert.match(compileNameFilter('(').error ?? '', /missing/);
    assert.match(compileNameFilter('a(?=b)').error ?? '', /invalid perl operator/i);
    assert.match(compileEcmaNameFilter('(').error ?? '', /Unterminated group/);
  });

  it('takes 100 KB', () => {
    const many = Array.from({ length: 10_000 }, (_, at) => `name_${at}`).join('|');
    assert.deepEqual(filterOf(`^(${many})$`).pick(['name_7', 'name_x', 'name_9999']), [0, 2]);
  });

  it('knows ECMAScript where that is asked for', () => {
    const filter = filterOf('web(?=.*200)', compileEcmaNameFilter);
    assert.deepEqual(filter.pick(NAMES), [0]);
    assert.deepEqual([filter.prefix, filter.parts], ['', []]);
  });

  it('gives up an expression of ECMAScript that would take for ever', () => {
    const filter = filterOf('^(a+)+$', compileEcmaNameFilter);
    assert.throws(() => filter.pick([`${'a'.repeat(60)}!`]), { code: 'WEIR_FILTER_TIME' });
  });
});
