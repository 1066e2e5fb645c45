import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { stackFrames } from '../../../src/base/errors.ts';
import { type LogRecord, TextSink } from '../../../src/log/index.ts';

const RECORD: LogRecord = {
  logger: 'http',
  level: 'error',
  message: '',
  stack: '',
  timeMs: 0,
  file: 'src/a.ts',
  line: 1,
  functionName: 'f',
};
const FORMATS = ['[%l][%n] %v', '[%l] %_', '{"level": "%l", "message": "%j"}'];

function written(record: Partial<LogRecord>, format: string, escaped: boolean): string {
  let text = '';
  const destination = {
    write: (line: string): boolean => {
      text += line;
      return true;
    },
  };
  new TextSink({ format, escaped, destination }).write({ ...RECORD, ...record }, 0);
  return text;
}

/** Messages that try to look like something else. */
const HOSTILE = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom('\r', '\n', '\n    at f (x.ts:1:1)', '\t', '\u001b[2J', '\u0085', '\u2028', '\\', 'a', ' '),
  }),
);

describe('a log record', () => {
  for (const format of FORMATS) {
    for (const escaped of [false, true]) {
      it(`is one line whatever its message holds: ${format}${escaped ? ', escaped' : ''}`, () => {
        fc.assert(
          fc.property(HOSTILE, (message) => {
            const text = written({ message }, format, escaped);
            assert.equal(text.indexOf('\n'), text.length - 1);
            assert.doesNotMatch(text, /\r/);
          }),
        );
      });
    }
  }

  it('has the frames of a stack on lines of their own, and no others, whatever the error says', () => {
    const error = new TypeError('of a peer\n    at forged (peer.ts:1:1)\r\n[critical] forged');
    const lines = written({ message: `fault: ${error}`, stack: stackFrames(error) }, '[%l] %v', false).split('\n');
    assert.equal(lines.pop(), '');
    assert.equal(
      lines.shift(),
      '[error] fault: TypeError: of a peer\\n    at forged (peer.ts:1:1)\\r\\n[critical] forged',
    );
    assert.ok(lines.length > 1);
    for (const line of lines) assert.match(line, /^ {4}at /);
    assert.match(lines[0]!, /text-sink\.test\.ts/);
  });
});

describe('the frames of a stack', () => {
  it('are none for what has none', () => {
    const bare = new Error('bare');
    delete bare.stack;
    assert.deepEqual([stackFrames('text'), stackFrames(undefined), stackFrames(bare)], ['', '', '']);
  });

  it('are found when the message has changed since', () => {
    const error = new Error('before');
    error.message = 'after';
    assert.match(stackFrames(error), /^ {4}at .*text-sink\.test\.ts/);
  });
});
