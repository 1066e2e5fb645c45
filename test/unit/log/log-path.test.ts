import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { findLogPathFault } from '../../../src/log/index.ts';
import { asNobody } from '../../support/as-nobody.ts';
import { runProgram } from '../../support/child-process.ts';
import { Fifo } from '../../support/fifo.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'weir-log-path-'));
after(() => rmSync(folder, { recursive: true }));
// Others may pass, but not look or write.
chmodSync(folder, 0o711);

function within(...names: string[]): string {
  return path.join(folder, ...names);
}

describe('a path for a log', () => {
  it('passes where a file is or can be made, and is left as it is', () => {
    writeFileSync(within('old.log'), 'old');
    symlinkSync('old.log', within('link.log'));
    symlinkSync('made-later.log', within('link-to-nothing.log'));
    const before = statSync(within('old.log')).mtimeMs;
    for (const name of ['old.log', 'new.log', 'link.log', 'link-to-nothing.log']) {
      assert.equal(findLogPathFault(within(name)), undefined, name);
    }
    assert.deepEqual(readdirSync(folder).sort(), ['link-to-nothing.log', 'link.log', 'old.log']);
    assert.equal(statSync(within('old.log')).mtimeMs, before);
  });

  it('passes where a device, a FIFO or a standard stream is', async (t) => {
    const fifo = await Fifo.make(within('fifo'));
    t.after(() => fifo.close());
    for (const file of [fifo.path, '/dev/null', '/dev/full', '/dev/stdout', '/dev/stderr']) {
      assert.equal(findLogPathFault(file), undefined, file);
    }
    fifo.openReader();
    assert.equal(findLogPathFault(fifo.path), undefined);
  });

  it('does not pass where no file can be', async (t) => {
    writeFileSync(within('file'), '');
    mkdirSync(within('folder'));
    symlinkSync('missing/a.log', within('astray'));
    symlinkSync('loop', within('loop'));
    const server = createServer().listen(within('socket'));
    await once(server, 'listening');
    t.after(() => server.close());
    const faults: readonly (readonly [string, string])[] = [
      [within('missing', 'a.log'), 'its folder does not exist'],
      [within('folder'), 'it is a folder'],
      [`${within('folder')}/`, 'it is a folder'],
      [`${within('new')}/`, 'it is a folder'],
      [within('file', 'a.log'), 'its parent is not a folder'],
      [within('astray'), 'its folder does not exist'],
      [within('socket'), 'it is a socket'],
      [within('loop'), 'too many symbolic links encountered'],
      [within('x'.repeat(300)), 'name too long'],
    ];
    assert.deepEqual(
      faults.map(([file]) => [file, findLogPathFault(file)]),
      faults,
    );
    assert.match(findLogPathFault('a\0b')!, /null bytes/);
  });

  it('does not pass where the file may not be written', () => {
    writeFileSync(within('others.log'), '');
    chmodSync(within('others.log'), 0o444);
    assert.equal(
      asNobody(() => findLogPathFault(within('others.log'))),
      'permission denied',
    );
  });

  it('does not pass where the folder takes no file', async (t) => {
    const readOnly = within('read-only');
    mkdirSync(readOnly, { mode: 0o555 });
    if (process.geteuid?.() === 0) {
      const disk = await runProgram('mount', ['-t', 'tmpfs', '-o', 'ro', 'tmpfs', readOnly]);
      if (disk.code !== 0) {
        t.skip(`root may write everywhere, and a disk cannot be mounted: ${disk.stderr.trim()}`);
        return;
      }
      t.after(() => runProgram('umount', ['-l', readOnly]));
    }
    assert.match(findLogPathFault(path.join(readOnly, 'a.log'))!, /read-only|permission denied/);
  });
});
