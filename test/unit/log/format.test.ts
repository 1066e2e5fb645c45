import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { escapeLine } from '../../../src/log/escape.ts';
import { compileLogFormat } from '../../../src/log/format.ts';
import type { LogRecord } from '../../../src/log/index.ts';

// The flags show local time; every zone has the same text for its own noon, so the instants are made locally.
const NOON = new Date(2024, 1, 3, 15, 4, 5).getTime();
const MIDNIGHT = new Date(2024, 11, 31, 0, 0, 9).getTime();

function record(changes: Partial<LogRecord> = {}): LogRecord {
  return {
    logger: 'upstream',
    level: 'warning',
    message: 'said "hi"\nand left',
    stack: '',
    timeMs: NOON + 7.125,
    file: 'src/data-plane/upstream/pool.ts',
    line: 42,
    functionName: 'connect',
    ...changes,
  };
}

function render(pattern: string, changes: Partial<LogRecord> = {}): string {
  return compileLogFormat(pattern)(record(changes), 3);
}

function offsetOf(timeMs: number): string {
  const minutes = -new Date(timeMs).getTimezoneOffset();
  const digits = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  return `${minutes < 0 ? '-' : '+'}${digits(Math.abs(minutes) / 60)}:${digits(Math.abs(minutes) % 60)}`;
}

describe('the log format', () => {
  const flags: [flag: string, text: string, changes?: Partial<LogRecord>][] = [
    ['%v', 'said "hi"\\nand left'],
    ['%_', 'said "hi"\\nand left'],
    ['%v', 'a\\r\\x1B[31mb', { message: 'a\r\u001b[31mb' }],
    ['%v', 'bug\n    at here\n    at there', { message: 'bug', stack: '    at here\n    at there' }],
    ['%_', 'bug\\n    at here', { message: 'bug', stack: '    at here' }],
    ['%j', 'bug\\n    at here', { message: 'bug', stack: '    at here' }],
    ['%j', 'said \\"hi\\"\\nand left'],
    ['%t', '3'],
    ['%P', String(process.pid)],
    ['%n', 'upstream'],
    ['%l', 'warning'],
    ['%L', 'W'],
    ['%L', 'C', { level: 'critical' }],
    ['%a', 'Sat'],
    ['%A', 'Saturday'],
    ['%b', 'Feb'],
    ['%B', 'February'],
    ['%c', 'Sat Feb 3 15:04:05 2024'],
    ['%C', '24'],
    ['%Y', '2024'],
    ['%D', '02/03/24'],
    ['%x', '02/03/24'],
    ['%m', '02'],
    ['%d', '03'],
    ['%H', '15'],
    ['%I', '03'],
    ['%I', '12', { timeMs: MIDNIGHT }],
    ['%M', '04'],
    ['%S', '05'],
    ['%e', '007'],
    ['%f', '007125'],
    ['%F', '007125000'],
    ['%p', 'PM'],
    ['%p', 'AM', { timeMs: MIDNIGHT }],
    ['%r', '03:04:05 PM'],
    ['%r', '12:00:09 AM', { timeMs: MIDNIGHT }],
    ['%R', '15:04'],
    ['%T', '15:04:05'],
    ['%X', '15:04:05'],
    ['%z', offsetOf(NOON)],
    ['%%', '%'],
    ['%@', 'src/data-plane/upstream/pool.ts:42'],
    ['%s', 'pool.ts'],
    ['%g', 'src/data-plane/upstream/pool.ts'],
    ['%#', '42'],
    ['%!', 'connect'],
    ['%^%l%$', 'warning'],
  ];
  for (const [flag, text, changes] of flags) {
    it(`writes ${flag} as ${JSON.stringify(text)}`, () => assert.equal(render(flag, changes), text));
  }

  const layouts: [name: string, pattern: string, text: string][] = [
    ['text around the flags stays', '[%l] {%n}', '[warning] {upstream}'],
    ['a width aligns to the right', '%10l|', '   warning|'],
    ['a dash aligns to the left', '%-10l|', 'warning   |'],
    ['an equals sign centres, the odd space behind', '%=10l|', ' warning  |'],
    ['a wider text is kept', '%3l|', 'warning|'],
    ['an exclamation mark cuts a wider text', '%3!l|', 'war|'],
    ['cutting works with an alignment', '%-4!l|', 'warn|'],
    ['a width is at most 64', '%100l', `${' '.repeat(57)}warning`],
    ['a text of just the width stays', '%7!l', 'warning'],
    ['the function flag may stand before other text', '%!(%v', 'connect(said "hi"\\nand left'],
    ['a flag that does not exist stays as written', '%q %-5q', '%q %-5q'],
    ['a lone percent sign at the end stays', '100%', '100%'],
    ['escaped percent signs do not start flags', '%%v', '%v'],
  ];
  for (const [name, pattern, text] of layouts) {
    it(name, () => assert.equal(render(pattern), text));
  }

  it('leaves the place of a record without location empty', () => {
    const unknown = { file: '', line: 0, functionName: '' };
    assert.equal(render('[%@][%s][%g][%#][%!]', unknown), '[][][][][]');
  });

  it('follows the time from one record to the next', () => {
    const line = compileLogFormat('%T.%e');
    const texts = [0, 999.9, 1000, 3_600_000].map((later) => line(record({ timeMs: NOON + later }), 0));
    assert.deepEqual(texts, ['15:04:05.000', '15:04:05.999', '15:04:06.000', '16:04:05.000']);
  });

  it('accepts any pattern', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('%', '!', '-', '=', '9', 'v', 'T', 'x') }), (pattern) => {
        assert.equal(typeof render(pattern), 'string');
      }),
    );
  });
});

describe('the escaped log line', () => {
  it('holds C escape sequences instead of control characters and quotes', () => {
    assert.equal(escapeLine('a\nb\tc"d\'e\\f\rg\u0001h\u007fi'), 'a\\nb\\tc\\"d\\\'e\\\\f\\rg\\001h\\177i');
  });

  it('keeps white space at its end', () => {
    assert.equal(escapeLine('a\nb \n'), 'a\\nb \n');
  });

  it('keeps text beyond ASCII readable', () => {
    assert.equal(escapeLine('Größe 尺'), 'Größe 尺');
  });

  it('never breaks a line but at its end', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        assert.doesNotMatch(escapeLine(`${text}.`), /[\n\r]/);
      }),
    );
  });
});
