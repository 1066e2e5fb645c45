import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeUnknownLogFlags, LOG_FLAGS, unknownLogFlags } from '../../../src/base/log-flags.ts';
import { compileLogFormat } from '../../../src/log/format.ts';

const RECORD = {
  logger: 'main',
  level: 'info',
  message: 'text',
  stack: '',
  timeMs: 0,
  file: 'src/a.ts',
  line: 7,
  functionName: 'f',
} as const;
const PRINTABLE = Array.from({ length: 0x7f - 0x20 }, (_, index) => String.fromCharCode(0x20 + index));
/** They belong to a flag that goes on behind them. */
const OPENINGS = '-=0123456789';

describe('the flags of a log format', () => {
  it('are those that a line is made of: all others stay as they were written, and are named', () => {
    for (const letter of PRINTABLE.filter((each) => !OPENINGS.includes(each))) {
      const flag = `%${letter}`;
      const isKnown = compileLogFormat(`${flag}:`)(RECORD, 1) !== `${flag}:`;
      assert.equal(LOG_FLAGS.includes(letter), isKnown, letter);
      assert.deepEqual(unknownLogFlags(`[%l] ${flag}:`), isKnown ? [] : [flag]);
    }
  });

  it('are found behind alignments and widths, and each is named once', () => {
    assert.deepEqual(unknownLogFlags('[%Y-%m-%d %T.%e][%t][%l][%n] [%g:%#] %v'), []);
    assert.deepEqual(unknownLogFlags('%-8l%=20!n%9t%%Q%!Q'), []);
    assert.deepEqual(unknownLogFlags('%Q %Q %-8N %5!O 100% %%k'), ['%Q', '%-8N', '%5!O', '% ']);
    assert.deepEqual(unknownLogFlags('%v 100%'), ['%']);
  });

  it('are what a complaint says there is', () => {
    assert.equal(describeUnknownLogFlags('%v'), undefined);
    const flags = `flags are % with one of ${LOG_FLAGS}`;
    assert.equal(describeUnknownLogFlags('%Q %v'), `'%Q' is no flag and stays in each line as written; ${flags}`);
    assert.match(describeUnknownLogFlags('%Q%N')!, /^'%Q', '%N' are no flags and stay in each line/);
  });
});
