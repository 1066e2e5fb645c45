// The access log files of a worker: one for each destination, open for as long as somebody writes to it.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { SYSTEM_CLOCK } from '../../../../src/base/clock.ts';
import { LogFiles } from '../../../../src/data-plane/access-log/log-files.ts';
import { Loggers } from '../../../../src/log/index.ts';
import { FILESYSTEM_STATS } from '../../../../src/stats/tables/managers.ts';
import { untilEqual } from '../../../support/eventually.ts';
import { statsFixture } from '../../../support/stats.ts';

function newFiles(t: TestContext) {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-log-files-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const { owner, workers } = statsFixture({ workerCount: 1 });
  const { stats } = workers[0]!;
  const statBlock = owner.cells.allocate(FILESYSTEM_STATS.size);
  const log = new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } }).get('filter');
  const files = new LogFiles({ flushIntervalMs: 3_600_000, statBlock }, { stats, clock: SYSTEM_CLOCK, log });
  const file = (name: string) => ({ kind: 'file', path: path.join(folder, name) }) as const;
  const stat = (name: keyof typeof FILESYSTEM_STATS.index): number =>
    stats.values[stats.base(statBlock) + FILESYSTEM_STATS.index[name]]! + 0;
  return { files, folder, file, stat };
}

/** Descriptors of this process that are open below a folder. */
function openBelow(folder: string): number {
  return readdirSync('/proc/self/fd').filter((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`).startsWith(folder);
    } catch {
      // Closed since it was listed.
      return false;
    }
  }).length;
}

describe('the access log files of a worker', () => {
  test('are one for each destination', async (t) => {
    const { files, file } = newFiles(t);
    assert.equal(files.hold(file('a')), files.hold(file('a')));
    assert.notEqual(files.hold(file('a')), files.hold(file('b')));
    assert.notEqual(files.hold({ kind: 'stdout' }), files.hold({ kind: 'stderr' }));
    assert.equal(files.hold({ kind: 'stdout' }), files.hold({ kind: 'file', path: '/dev/stdout' }));
    await files.close();
  });

  test('close behind their last entry when nobody holds them any more, and open again', async (t) => {
    const { files, folder, file, stat } = newFiles(t);
    const [first, second] = [files.hold(file('a')), files.hold(file('a'))];
    const text = (): string => readFileSync(file('a').path, 'latin1');
    await untilEqual(1, () => openBelow(folder), 'open files');
    first.write('one\n');
    files.release(file('a'));
    second.write('two\n');
    second.flush();
    await untilEqual('one\ntwo\n', text, 'entries');
    assert.equal(openBelow(folder), 1);
    second.write('three\n');
    files.release(file('a'));
    await untilEqual(0, () => openBelow(folder), 'open files');
    assert.equal(text(), 'one\ntwo\nthree\n');
    const third = files.hold(file('a'));
    assert.notEqual(third, first);
    third.write('four\n');
    await files.close();
    assert.equal(text(), 'one\ntwo\nthree\nfour\n');
    assert.equal(stat('write_failed'), 0);
  });

  test('are closed also while they are being opened or written, and the end waits for their entries', async (t) => {
    const { files, folder, file } = newFiles(t);
    for (let round = 0; round < 20; round += 1) {
      const held = files.hold(file(`a${round}`));
      if (round % 2 === 1) held.write(`${round}\n`);
      if (round % 3 === 0) held.flush();
      files.release(file(`a${round}`));
    }
    await files.close();
    for (let round = 1; round < 20; round += 2) {
      assert.equal(readFileSync(file(`a${round}`).path, 'latin1'), `${round}\n`);
    }
    await untilEqual(0, () => openBelow(folder), 'open files');
  });
});
