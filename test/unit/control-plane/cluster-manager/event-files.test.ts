// Files of events: how long they stay open, and for whom.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { EventFiles } from '../../../../src/control-plane/cluster-manager/event-files.ts';
import { Loggers } from '../../../../src/log/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { isOpenFile } from '../../../support/open-files.ts';

const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-event-files-')));
after(() => rmSync(folder, { recursive: true }));

function openFiles(): EventFiles {
  const loggers = new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } });
  return new EventFiles(new ManualClock(), loggers, 'events');
}

/** The system closes a file in its own time. */
const untilClosed = (file: string): Promise<void> => eventually(() => !isOpenFile(file), `the end of ${file}`);

describe('files of events', () => {
  it('are opened by their first event, and closed when the last who holds them lets go', async () => {
    const [own, shared] = [path.join(folder, 'own'), path.join(folder, 'shared')];
    const files = openFiles();
    const [letGoBoth, letGoShared] = [files.hold([own, shared]), files.hold([shared])];
    assert.deepEqual([isOpenFile(own), isOpenFile(shared)], [false, false]);
    files.write([own, shared], 'one');
    assert.deepEqual([isOpenFile(own), isOpenFile(shared)], [true, true]);
    letGoBoth();
    await untilClosed(own);
    assert.ok(isOpenFile(shared));
    files.write([shared], 'two');
    letGoShared();
    await untilClosed(shared);
    assert.deepEqual([readFileSync(own, 'latin1'), readFileSync(shared, 'latin1')], ['one\n', 'one\ntwo\n']);
  });

  it('are opened again for who comes later', async () => {
    const file = path.join(folder, 'later');
    const files = openFiles();
    for (const line of ['one', 'two']) {
      const letGo = files.hold([file]);
      files.write([file], line);
      assert.ok(isOpenFile(file));
      letGo();
      await untilClosed(file);
    }
    assert.equal(readFileSync(file, 'latin1'), 'one\ntwo\n');
  });

  it('may be let go of that no event has opened', () => {
    const file = path.join(folder, 'unused');
    const files = openFiles();
    files.hold([file])();
    assert.equal(isOpenFile(file), false);
  });

  it('go on in new files when the old ones have been moved, and are all closed at the end', async () => {
    const paths = ['a', 'b'].map((name) => path.join(folder, name));
    const files = openFiles();
    files.hold(paths);
    files.write(paths, 'one');
    for (const file of paths) renameSync(file, `${file}.1`);
    files.reopen();
    files.write(paths, 'two');
    for (const file of paths) {
      assert.deepEqual([readFileSync(`${file}.1`, 'latin1'), readFileSync(file, 'latin1')], ['one\n', 'two\n']);
      await untilClosed(`${file}.1`);
      assert.ok(isOpenFile(file));
    }
    files.close();
    for (const file of paths) await untilClosed(file);
    files.close();
    // What still comes is not lost.
    files.write(paths, 'three');
    for (const file of paths) assert.equal(readFileSync(file, 'latin1'), 'two\nthree\n');
    files.close();
    for (const file of paths) await untilClosed(file);
  });
});
