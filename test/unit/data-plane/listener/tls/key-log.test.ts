// Keys that go to a file, or to somebody who does not read: lines are lost then, and nothing else.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { parseIp } from '../../../../../src/base/ip-number.ts';
import { KeyLog } from '../../../../../src/data-plane/listener/tls/key-log.ts';
import type { Logger } from '../../../../../src/log/index.ts';
import type { CidrRange } from '../../../../../src/snapshot/index.ts';
import { eventually } from '../../../../support/eventually.ts';
import { Fifo } from '../../../../support/fifo.ts';

const ANYWHERE = { localIp: undefined, remoteIp: undefined };
const LINE = Buffer.from(`CLIENT_RANDOM ${'0'.repeat(64)} ${'1'.repeat(96)}\n`);
/** As many as may wait. */
const MOST = 1000;

let folder: string;
const logs: KeyLog[] = [];
before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'weir-key-log-'));
});
after(async () => {
  // A line that waits would make its file anew.
  await eventually(() => logs.every(({ waitingLines }) => waitingLines === 0), 'the last line');
  rmSync(folder, { recursive: true, force: true });
});

interface Logged {
  readonly warnings: string[];
  readonly write: (lines: number) => void;
  /** Until the file has taken or refused all of them. */
  readonly untilWritten: () => Promise<void>;
}

function logTo(file: string): Logged {
  const warnings: string[] = [];
  const log = { warning: (text: string) => void warnings.push(text) } as unknown as Logger;
  const socket = new EventEmitter();
  const keyLog = new KeyLog({ path: file, localRanges: [], remoteRanges: [] }, log);
  logs.push(keyLog);
  keyLog.watch(socket as TLSSocket, ANYWHERE);
  const write = (lines: number): void => {
    for (let line = 0; line < lines; line++) socket.emit('keylog', LINE);
  };
  const untilWritten = (): Promise<void> => eventually(() => keyLog.waitingLines === 0, 'the last line');
  return { warnings, write, untilWritten };
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

  it('is of connections whose ends are both in its ranges, and of none whose ends nobody knows', () => {
    const V4 = [
      { ip: '192.0.2.0', prefixLength: 24 },
      { ip: '198.51.100.7', prefixLength: 32 },
    ];
    const V6 = [{ ip: '2001:db8::', prefixLength: 32 }];
    const isLogged = (
      localRanges: readonly CidrRange[],
      remoteRanges: readonly CidrRange[],
      local: string,
      remote: string,
    ) => {
      const socket = new EventEmitter();
      const log = new KeyLog(
        { path: path.join(folder, 'ranges'), localRanges, remoteRanges },
        null as unknown as Logger,
      );
      log.watch(socket as TLSSocket, { localIp: parseIp(local), remoteIp: parseIp(remote) });
      return socket.listenerCount('keylog') === 1;
    };
    for (const [localRanges, remoteRanges, local, remote, expected] of [
      [[], [], 'a pipe', 'a pipe', true],
      [V4, [], '192.0.2.9', 'a pipe', true],
      [V4, [], '198.51.100.7', '::1', true],
      [V4, [], '198.51.100.8', '192.0.2.9', false],
      [V4, [], 'a pipe', '192.0.2.9', false],
      [[], V4, '198.51.100.8', '192.0.2.9', true],
      [[], V4, '192.0.2.9', '198.51.100.8', false],
      [[], V4, '192.0.2.9', 'a pipe', false],
      [V6, V4, '2001:db8::1', '192.0.2.9', true],
      [V6, V4, '2001:db9::1', '192.0.2.9', false],
      [V6, V4, '2001:db8::1', '192.0.3.9', false],
    ] as const) {
      assert.equal(isLogged(localRanges, remoteRanges, local, remote), expected, `${local} ${remote}`);
    }
  });

  it('takes further lines when those that waited have been written, also behind ones that failed', async () => {
    const target = path.join(folder, 'later');
    const file = path.join(target, 'keys');
    const { warnings, write, untilWritten } = logTo(file);
    write(MOST);
    await untilWritten();
    assert.equal(warnings.length, 1);
    assert.match(warnings[0]!, /^keys are not logged: ENOENT/);
    mkdirSync(target);
    // Those that waited have failed, each for itself.
    write(MOST);
    await untilWritten();
    assert.equal(statSync(file).size, MOST * LINE.length);
    assert.equal(warnings.length, 1);
  });

  it('adds to what stands in its file', async () => {
    const file = path.join(folder, 'older');
    writeFileSync(file, 'older\n');
    logTo(file).write(1);
    await eventually(() => statSync(file).size === LINE.length + 6, 'a line');
    assert.equal(readFileSync(file, 'latin1'), `older\n${LINE}`);
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
