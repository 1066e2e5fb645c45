import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readWholeFile } from '../../../src/base/file-bytes.ts';
import { Fifo } from '../../support/fifo.ts';

const GIB = 1024 ** 3;
const LIMIT = 1024 * 1024;

let folder: string;

function place(name: string): string {
  return path.join(folder, name);
}

before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'weir-file-bytes-'));
});

after(() => rmSync(folder, { recursive: true, force: true }));

describe('a file that is read whole', () => {
  it('has all that is in it, up to its limit', () => {
    for (const length of [0, 1, LIMIT]) {
      writeFileSync(place('file'), Buffer.alloc(length, 7));
      assert.deepEqual(readWholeFile(place('file'), LIMIT).bytes, Buffer.alloc(length, 7));
    }
    appendFileSync(place('file'), 'x');
    const problem = `has ${LIMIT + 1} bytes, more than the limit ${LIMIT}`;
    assert.deepEqual(readWholeFile(place('file'), LIMIT), { problem });
  });

  it('is not touched where it is far too large', () => {
    writeFileSync(place('large'), '');
    truncateSync(place('large'), GIB);
    const before = process.memoryUsage().rss;
    assert.deepEqual(readWholeFile(place('large'), LIMIT), {
      problem: `has ${GIB} bytes, more than the limit ${LIMIT}`,
    });
    assert.ok(process.memoryUsage().rss - before < GIB / 4);
  });

  it('is closed again, whatever it is', () => {
    writeFileSync(place('file'), 'x');
    const before = readdirSync('/proc/self/fd').length;
    for (let n = 0; n < 5; n++) {
      readWholeFile(place('file'), LIMIT);
      readWholeFile(place('file'), 0);
      readWholeFile(folder, LIMIT);
      readWholeFile(place('none'), LIMIT);
    }
    assert.equal(readdirSync('/proc/self/fd').length, before);
  });

  it('of the kernel has a limit, too, which it may reach', () => {
    const bytes = readFileSync('/proc/version');
    assert.deepEqual(readWholeFile('/proc/version', bytes.length), { bytes });
    const most = bytes.length - 1;
    assert.deepEqual(readWholeFile('/proc/version', most), {
      problem: `has ${most} and more bytes, more than the limit ${most}`,
    });
  });

  it('may be one of the kernel, which says that it is empty', () => {
    assert.match(String(readWholeFile('/proc/self/status', LIMIT).bytes), /^Name:/);
    // One that has no end.
    assert.deepEqual(readWholeFile('/proc/self/pagemap', LIMIT), {
      problem: `has ${LIMIT} and more bytes, more than the limit ${LIMIT}`,
    });
  });

  it('is nothing that is no file, and nobody waits for what comes out of it', async () => {
    const fifo = await Fifo.make(place('pipe'));
    const irregular = { problem: 'is not a regular file' };
    assert.deepEqual(readWholeFile(fifo.path, LIMIT), irregular);
    assert.deepEqual(readWholeFile('/dev/zero', LIMIT), irregular);
    assert.deepEqual(readWholeFile(folder, LIMIT), { problem: 'is a directory, not a file' });
  });

  it('is told of by the system where it is not there', () => {
    assert.equal(readWholeFile(place('none'), LIMIT).error?.code, 'ENOENT');
  });
});
