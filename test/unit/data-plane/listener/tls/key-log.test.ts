// Keys that go to a file, or to somebody who does not read: lines are lost then, and nothing else.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { KeyLog } from '../../../../../src/data-plane/listener/tls/key-log.ts';
import type { Logger } from '../../../../../src/log/index.ts';
import { eventually } from '../../../../support/eventually.ts';
import { Fifo } from '../../../../support/fifo.ts';

const ANYWHERE = { localIp: undefined, remoteIp: undefined };
const LINE = Buffer.from(`CLIENT_RANDOM ${'0'.repeat(64)} ${'1'.repeat(96)}\n`);
/** As many as may wait. */
const MOST = 1000;

let folder: string;
before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'weir-key-log-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

function logTo(file: string): { readonly warnings: string[]; readonly write: (lines: number) => void } {
  const warnings: string[] = [];
  const log = { warning: (text: string) => void warnings.push(text) } as unknown as Logger;
  const socket = new EventEmitter();
  new KeyLog({ path: file, localRanges: [], remoteRanges: [] }, log).watch(socket as TLSSocket, ANYWHERE);
  const write = (lines: number): void => {
    for (let line = 0; line < lines; line++) socket.emit('keylog', LINE);
  };
  return { warnings, write };
}

describe('a key log', () => {
  it('is for its owner alone, and has every line', async () => {
    const file = path.join(folder, 'keys');
    const { warnings, write } = logTo(file);
    write(3);
    await eventually(() => statSync(file, { throwIfNoEntry: false })?.size === 3 * LINE.length, 'all lines');
    assert.equal(readFileSync(file, 'latin1'), LINE.toString().repeat(3));
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.deepEqual(warnings, []);
  });

  it('loses lines where too many wait, and says so once', async () => {
    const file = path.join(folder, 'many');
    const { warnings, write } = logTo(file);
    write(MOST + 5);
    assert.deepEqual(warnings, [`keys are not logged: ${file} does not take them as fast as they come`]);
    await eventually(() => statSync(file, { throwIfNoEntry: false })?.size === MOST * LINE.length, 'the others');
  });

  it('waits for no reader of a pipe, says so once, and goes on when there is one', async () => {
    const fifo = await Fifo.make(path.join(folder, 'pipe'));
    const { warnings, write } = logTo(fifo.path);
    // More than Node has threads for files, which would all wait.
    write(20);
    await eventually(() => warnings.length > 0, 'a warning');
    assert.match(warnings[0]!, /^keys are not logged: ENXIO/);
    fifo.openReader();
    let read = '';
    await eventually(() => {
      write(1);
      read += fifo.read();
      return read.includes('CLIENT_RANDOM');
    }, 'a line');
    assert.equal(warnings.length, 1);
    // It has been written again since.
    fifo.closeReader();
    await eventually(() => {
      write(1);
      return warnings.length === 2;
    }, 'the next warning');
  });
});
