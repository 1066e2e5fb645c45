import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { optionsFromValues } from '../../../src/cli/index.ts';

function valuesOf(given: Readonly<Record<string, unknown>>) {
  const checked = optionsFromValues(given);
  assert.equal(checked.error, undefined);
  return checked.options!;
}

describe('options as values', () => {
  it('are those of the table, with its defaults and its rules', () => {
    const options = valuesOf({
      drainTimeS: 5,
      statsTag: ['a:b'],
      componentLogLevel: 'http:debug',
      logLevel: undefined,
    });
    assert.deepEqual([options.drainTimeS, options.statsTag, options.logLevel], [5, ['a:b'], 'info']);
    assert.deepEqual(options.componentLogLevels, [{ component: 'http', level: 'debug' }]);
    assert.equal(valuesOf({ concurrency: 0 }).concurrency, 1);
    assert.equal(optionsFromValues({ statsTag: ['a'] }).error, "misformatted stats-tag 'a'; allowed: tag:value");
  });

  it('have the types of the table', () => {
    const count = 'a whole number from 0 to 4294967295';
    const cases: readonly (readonly [string, unknown, string])[] = [
      ['drainTimeS', 1.5, `${count}, got 1.5`],
      ['drainTimeS', -1, `${count}, got -1`],
      ['drainTimeS', 2 ** 32, `${count}, got 4294967296`],
      ['drainTimeS', '1', `${count}, got string`],
      ['concurrency', 512, 'a whole number from 0 to 511, got 512'],
      ['adminReadOnly', 'yes', 'a boolean, got string'],
      ['serviceNode', null, 'a string, got null'],
      ['logLevel', 3, 'a string, got 3'],
      ['statsTag', ['a:b', 1], 'a list of strings, got object'],
      ['statsTag', 'a:b', 'a list of strings, got string'],
    ];
    for (const [name, value, complaint] of cases) {
      assert.equal(optionsFromValues({ [name]: value }).error, `option ${name}: expected ${complaint}`);
    }
    assert.equal(optionsFromValues({ 'drain-time-s': 1 }).error, 'unknown option drain-time-s');
    assert.equal(valuesOf({ drainTimeS: 2 ** 32 - 1 }).drainTimeS, 2 ** 32 - 1);
  });
});
