import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { FileLevels, matchesFile } from '../../../src/log/file-levels.ts';

const FILE = 'src/log/log-destination.ts';

describe('a pattern of source files', () => {
  const matching = [
    'src/log/log-destination',
    'src/log/log-destination.ts',
    'log-destination',
    'log-destination.ts',
    'log-*',
    '*dest*',
    '*',
    'log?destination',
    'src/*',
    'src/log/*',
    's?c/*/log-*',
    '*/log-destination',
    'src/l*n',
    'src/*-destination',
  ];
  for (const pattern of matching) it(`finds ${FILE}: ${pattern}`, () => assert.ok(matchesFile(pattern, FILE)));

  const others = ['log', 'destination', 'log-destinations', 'log/log-destination', 'src', 'src/log', '?', '', '/'];
  for (const pattern of others) {
    it(`finds something else than ${FILE}: ${JSON.stringify(pattern)}`, () => assert.ok(!matchesFile(pattern, FILE)));
  }

  it('means what a regular expression of its wildcards means', () => {
    const letters = fc.constantFrom('a', 'b', '*', '?');
    const pattern = fc.array(letters, { maxLength: 8 }).map((each) => each.join(''));
    const name = fc.array(fc.constantFrom('a', 'b'), { maxLength: 10 }).map((each) => each.join(''));
    fc.assert(
      fc.property(pattern, name, (glob, text) => {
        const expression = new RegExp(`^${glob.replaceAll('*', '.*').replaceAll('?', '.')}$`);
        assert.equal(matchesFile(glob, text), expression.test(text));
        assert.equal(matchesFile(`d/${glob}`, `d/${text}`), expression.test(text));
      }),
    );
  });

  it('takes no longer for many wildcards', () => {
    assert.ok(!matchesFile(`${'*a'.repeat(5000)}b`, 'a'.repeat(5000)));
  });
});

describe('levels of files', () => {
  const levels = new FileLevels('warning', [
    { pattern: 'src/log/*', level: 'error' },
    { pattern: 'log-*', level: 'debug' },
    { pattern: 'router', level: 'off' },
  ]);

  it('are those of the first pattern that matches, or the default', () => {
    const files = [FILE, 'src/process/log-x.ts', 'src/data-plane/router/router.ts', 'src/main.ts', 'src/main.ts'];
    assert.deepEqual(
      files.map((file) => levels.levelOf(file)),
      ['error', 'debug', 'off', 'warning', 'warning'],
    );
  });

  it('have a lowest one, below which nothing is written', () => {
    assert.equal(levels.lowest, 'debug');
    assert.equal(new FileLevels('info', [{ pattern: 'a', level: 'off' }]).lowest, 'info');
  });
});
