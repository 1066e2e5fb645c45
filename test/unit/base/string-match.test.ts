import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { lowerCaseBytes, utf8Bytes } from '../../../src/base/byte-text.ts';
import { compileByteMatch, compileStringMatch, type StringMatch } from '../../../src/base/string-match.ts';

const KINDS = ['exact', 'prefix', 'suffix', 'contains'] as const;
/** Few characters, so that texts are often alike: of one to four bytes, with and without a lower case. */
const TEXT = fc.string({ unit: fc.constantFrom('a', 'A', 'é', 'É', '水', '🌊'), maxLength: 5 });

describe('a test of byte text', () => {
  test('finds of UTF-8 what the same test finds of its characters', () => {
    fc.assert(
      fc.property(fc.constantFrom(...KINDS), TEXT, TEXT, (kind, value, text) => {
        const match: StringMatch = { kind, value, ignoresCase: false };
        assert.equal(compileByteMatch(match)(utf8Bytes(text)), compileStringMatch(match)(text));
      }),
    );
  });

  test('of a regular expression, too', () => {
    const pattern = fc.array(fc.constantFrom('é', '.', 'a*', '[水É]', '🌊?', '|'), { maxLength: 6 });
    fc.assert(
      fc.property(pattern, TEXT, (parts, text) => {
        const match: StringMatch = { kind: 'regex', pattern: parts.join('') };
        assert.equal(compileByteMatch(match)(utf8Bytes(text)), compileStringMatch(match)(text));
      }),
    );
  });

  test('ignores the case of ASCII only', () => {
    const passes = compileByteMatch({ kind: 'exact', value: 'Gruß-É', ignoresCase: true });
    assert.deepEqual(['GRUß-É', 'gruß-É', 'gruß-é', 'gru-É'].map(utf8Bytes).map(passes), [true, true, false, false]);
    // The lower case of the character with the number of the first byte is that of another byte.
    assert.equal(lowerCaseBytes('\xc3\x89A'), '\xc3\x89a');
  });

  test('takes a byte that is part of no character for nothing that a pattern could mean', () => {
    const any = compileByteMatch({ kind: 'regex', pattern: '.*' });
    assert.deepEqual([any(utf8Bytes('ü')), any('\xfc')], [true, false]);
  });
});
