import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { readValueFiles, type ValueFiles, valueText } from '../../../../src/control-plane/runtime/value-files.ts';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'weir-runtime-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

function put(file: string, text: string): void {
  const target = path.join(folder, file);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, text);
}

function readAll(from: string): ValueFiles {
  const steps = readValueFiles(from);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

function values(): Record<string, string> {
  const read = readAll(folder);
  assert.ok(read.kind === 'read', JSON.stringify(read));
  return Object.fromEntries(read.values);
}

function reason(): string {
  const read = readAll(folder);
  assert.ok(read.kind === 'failed', JSON.stringify(read));
  return read.reason;
}

describe('files of runtime values', () => {
  it('have folders for parts of their keys', () => {
    put('top', '1\n');
    put('upstream/use_retry', '50');
    put('a/b.c/d', 'text of words');
    put('empty', '');
    assert.deepEqual(values(), { top: '1', 'upstream.use_retry': '50', 'a.b.c.d': 'text of words', empty: '' });
  });

  it('have comments, and end without blanks', () => {
    const cases: [text: string, value: string][] = [
      ['5 \t\r\n', '5'],
      ['# five\n5\n', '5'],
      ['# nothing yet\n', ''],
      ['numerator: 1\n\ndenominator: HUNDRED  \n\n', 'numerator: 1\ndenominator: HUNDRED'],
      ['a \nb\n   \n', 'a \nb\n'],
      ['  # no comment', '  # no comment'],
    ];
    for (const [text, value] of cases) assert.equal(valueText(text), value, JSON.stringify(text));
  });

  it('are found behind links, as mounts of containers have them, and once', () => {
    put('..2026/limit', '7');
    symlinkSync('..2026', path.join(folder, '..data'));
    symlinkSync('..data/limit', path.join(folder, 'limit'));
    put('elsewhere/x', '1');
    symlinkSync('elsewhere', path.join(folder, 'linked'));
    assert.deepEqual(values(), { limit: '7', 'elsewhere.x': '1', 'linked.x': '1' });
  });

  it('may be missing', () => {
    put('file', '');
    for (const name of ['nowhere', 'file', 'file/below']) {
      assert.deepEqual(readAll(path.join(folder, name)), { kind: 'missing' });
    }
  });

  it('lie 16 folders deep at most', () => {
    put(`${'d/'.repeat(16)}key`, '1');
    assert.deepEqual(values(), { [`${'d.'.repeat(16)}key`]: '1' });
    put(`${'d/'.repeat(17)}key`, '1');
    assert.match(reason(), /more than 16 folders deep/);
  });

  it('are left alone where links lead back to where they came from', () => {
    put('a/key', '1');
    symlinkSync('..', path.join(folder, 'a', 'up'));
    assert.match(reason(), /more than 16 folders deep/);
  });

  it('have no folders with the names of parts of a fraction', () => {
    put('numerator', '1');
    assert.deepEqual(values(), { numerator: '1' });
    put('share/denominator/x', '1');
    assert.match(reason(), /no folder may be called denominator/);
  });

  it('are not looked for among devices and processes', () => {
    symlinkSync('/proc/self', path.join(folder, 'self'));
    assert.match(reason(), /no place for values/);
    assert.equal(readAll('/dev').kind, 'failed');
  });

  it('are bounded in size', () => {
    put('large', '');
    truncateSync(path.join(folder, 'large'), 16 * 1024 * 1024 + 1);
    assert.match(reason(), /more than 100000 files or 16777216 bytes/);
  });

  it('fail together where one cannot be read', () => {
    put('fine', '1');
    symlinkSync('nowhere', path.join(folder, 'dangling'));
    assert.match(reason(), /ENOENT/);
  });
});
