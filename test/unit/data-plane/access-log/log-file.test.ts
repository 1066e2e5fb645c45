import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { type Clock, SYSTEM_CLOCK } from '../../../../src/base/clock.ts';
import {
  BUFFER_BYTES,
  FINAL_FLUSH_MS,
  LogFile,
  MAX_WAITING_BYTES,
} from '../../../../src/data-plane/access-log/log-file.ts';
import { Loggers } from '../../../../src/log/index.ts';
import { FILESYSTEM_STATS } from '../../../../src/stats/tables/managers.ts';
import { runProgram } from '../../../support/child-process.ts';
import { Fifo } from '../../../support/fifo.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';

type StatName = keyof typeof FILESYSTEM_STATS.index;

interface Fixture {
  readonly file: LogFile;
  readonly path: string;
  readonly messages: string[];
  stat(name: StatName): number;
}

function newFile(options: { path?: string; target?: number; clock?: Clock } = {}): Fixture {
  const path = options.path ?? join(mkdtempSync(join(tmpdir(), 'weir-access-log-')), 'access.log');
  const { owner, workers } = statsFixture({ workerCount: 1 });
  const { stats } = workers[0]!;
  const block = owner.cells.allocate(FILESYSTEM_STATS.size);
  const messages: string[] = [];
  const loggers = new Loggers({
    levels: { default: 'info' },
    threadId: 0,
    sink: { write: ({ message }) => messages.push(message) },
  });
  const file = new LogFile(options.target ?? path, {
    stats,
    statBase: stats.base(block),
    clock: options.clock ?? SYSTEM_CLOCK,
    log: loggers.get('filter'),
    flushIntervalMs: 10_000,
  });
  return { file, path, messages, stat: (name) => stats.values[stats.base(block) + FILESYSTEM_STATS.index[name]]! + 0 };
}

/** A path that opens, and takes nothing. */
function fullDisk(): string {
  const path = join(mkdtempSync(join(tmpdir(), 'weir-access-log-')), 'full.log');
  symlinkSync('/dev/full', path);
  return path;
}

/** Lets file operations end without a timer: polls the event loop until the condition holds. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise<void>((resolve) => setImmediate(resolve));
}

describe('an access log file', () => {
  test('keeps entries until the flush interval has passed, and then appends them', async () => {
    const clock = new ManualClock();
    const { file, path, stat } = newFile({ clock });
    writeFileSync(path, 'before\n');
    file.write('one\n');
    file.write('two \u00e9\n');
    assert.equal(stat('write_buffered'), 2);
    assert.equal(stat('write_total_buffered'), 10);
    clock.turn(9_999);
    assert.equal(stat('flushed_by_timer'), 0);
    clock.turn(1);
    assert.equal(stat('flushed_by_timer'), 1);
    await until(() => stat('write_completed') === 1);
    assert.equal(readFileSync(path, 'latin1'), 'before\none\ntwo \u00e9\n');
    assert.equal(stat('write_total_buffered'), 0);
    assert.equal(clock.timerCount, 0, 'an empty buffer waits for nothing');
    await file.close();
  });

  test('is written before the interval when its buffer is full, in whole entries', async () => {
    const { file, path, stat } = newFile({ clock: new ManualClock() });
    const entry = `${'x'.repeat(999)}\n`;
    const entries = Math.ceil(BUFFER_BYTES / entry.length);
    for (let index = 0; index < entries; index++) file.write(entry);
    await until(() => stat('write_completed') === 1);
    assert.equal(readFileSync(path).length, (entries - 1) * entry.length);
    await file.close();
    assert.equal(readFileSync(path).length, entries * entry.length);
  });

  test('takes an entry longer than the buffer, in its place', async () => {
    const { file, path } = newFile();
    const long = `${'y'.repeat(2 * BUFFER_BYTES)}\n`;
    for (const entry of ['a\n', long, 'b\n']) file.write(entry);
    await file.close();
    assert.equal(readFileSync(path, 'latin1'), `a\n${long}b\n`);
  });

  test('loses no entry when it is renamed and reopened, and keeps the order between the files', async () => {
    const { file, path, stat } = newFile();
    file.write('1\n');
    file.flush();
    await until(() => stat('write_completed') === 1);
    file.write('2\n');
    renameSync(path, `${path}.1`);
    file.reopen();
    file.write('3\n');
    await file.close();
    assert.equal(readFileSync(`${path}.1`, 'latin1'), '1\n2\n');
    assert.equal(readFileSync(path, 'latin1'), '3\n');
  });

  test('goes on with the open file when it cannot be reopened', async () => {
    const { file, path, stat, messages } = newFile();
    file.write('1\n');
    file.flush();
    await until(() => stat('write_completed') === 1);
    const folder = join(path, '..');
    renameSync(folder, `${folder}-moved`);
    file.reopen();
    file.write('2\n');
    await file.close();
    assert.equal(stat('reopen_failed'), 1);
    assert.match(messages[0]!, /^cannot reopen access log '.*access\.log': ENOENT/);
    assert.equal(readFileSync(join(`${folder}-moved`, 'access.log'), 'latin1'), '1\n2\n');
  });

  test('in a folder that is missing counts failures, says so once, and writes when the folder is there', async () => {
    const clock = new ManualClock();
    const folder = mkdtempSync(join(tmpdir(), 'weir-access-log-'));
    const { file, path, stat, messages } = newFile({ clock, path: join(folder, 'missing', 'access.log') });
    file.write('1\n');
    file.flush();
    await until(() => stat('write_failed') === 1);
    clock.turn(1_000);
    await until(() => stat('write_failed') === 2);
    assert.equal(messages.length, 1);
    renameSync(mkdtempSync(join(tmpdir(), 'weir-access-log-')), join(folder, 'missing'));
    clock.turn(1_000);
    await until(() => stat('write_completed') === 1);
    assert.equal(readFileSync(path, 'latin1'), '1\n');
    await file.close();
  });

  test('on a full disk keeps a bounded number of entries and drops the rest, counted', async () => {
    const { file, stat, messages } = newFile({ path: '/dev/full', clock: new ManualClock() });
    const entry = `${'z'.repeat(1023)}\n`;
    const fitting = MAX_WAITING_BYTES / entry.length;
    for (let index = 0; index < fitting + 5; index++) file.write(entry);
    assert.equal(stat('write_total_buffered'), MAX_WAITING_BYTES);
    assert.equal(stat('write_failed'), 5);
    await until(() => stat('write_failed') === 6);
    assert.equal(stat('write_buffered'), fitting);
    assert.equal(messages.length, 2);
    assert.equal(messages[0], "access log '/dev/full' loses entries: they cannot be written in time");
    assert.match(messages[1]!, /^cannot write access log '\/dev\/full': ENOSPC/);
    await file.close();
    assert.equal(stat('write_failed'), 7 + fitting, 'and what waited to the end');
  });

  test('leaves a full disk when it is reopened, before it writes what waits', async () => {
    const { file, path, stat } = newFile({ clock: new ManualClock(), path: fullDisk() });
    const long = `${'y'.repeat(2 * BUFFER_BYTES)}\n`;
    file.write('one\n');
    file.write(long);
    file.flush();
    await until(() => stat('write_failed') === 1);
    file.write('two\n');
    unlinkSync(path);
    file.reopen();
    file.write('three\n');
    await file.close();
    assert.equal(readFileSync(path, 'latin1'), `one\n${long}two\nthree\n`);
    assert.equal(stat('write_failed'), 1, 'no entry is lost');
  });

  test('lets go of a full disk even when it cannot be reopened, and goes on as soon as it can', async () => {
    const clock = new ManualClock();
    const { file, path, stat } = newFile({ clock, path: fullDisk() });
    file.write('one\n');
    file.flush();
    await until(() => stat('write_failed') === 1);
    unlinkSync(path);
    symlinkSync(tmpdir(), path);
    file.reopen();
    await until(() => stat('reopen_failed') === 1 && stat('write_failed') === 2);
    unlinkSync(path);
    clock.turn(1_000);
    await until(() => stat('write_completed') === 1);
    assert.equal(readFileSync(path, 'latin1'), 'one\n');
    await file.close();
  });

  test('frees a disk that its own entries have filled, when they are taken away', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-full-disk-'));
    const disk = await runProgram('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder]);
    if (disk.code !== 0) {
      t.skip(`a small disk cannot be mounted: ${disk.stderr.trim()}`);
      return;
    }
    t.after(() => runProgram('umount', ['-l', folder]));
    const { file, path, stat } = newFile({ clock: new ManualClock(), path: join(folder, 'access.log') });
    const entry = `${'z'.repeat(1023)}\n`;
    let written = 0;
    for (; stat('write_failed') === 0; written++) {
      file.write(entry);
      file.flush();
      await until(() => stat('write_total_buffered') === 0 || stat('write_failed') > 0);
    }
    // Deleted only, it still fills the disk for as long as it is open.
    unlinkSync(path);
    file.write('next\n');
    file.reopen();
    await file.close();
    const text = readFileSync(path, 'latin1');
    assert.ok(text.length < 2 * entry.length, `${text.length} bytes behind ${written} entries`);
    assert.ok(
      text.endsWith(`${entry}next\n`) && text.startsWith(entry),
      'an entry that was cut is whole in the new file',
    );
  });

  test('is not waited for at the end when it cannot be written', async () => {
    const { file, stat } = newFile({ path: '/dev/full' });
    file.write('1\n');
    await file.close();
    assert.equal(stat('write_failed'), 2, 'the write, and the entry that is lost');
    assert.equal(stat('write_total_buffered'), 0);
  });

  test('that cannot be opened says so before there is an entry', async () => {
    const { file, path, stat, messages } = newFile({
      path: join(mkdtempSync(join(tmpdir(), 'weir-')), 'none', 'a.log'),
    });
    await until(() => messages.length === 1);
    assert.match(messages[0]!, new RegExp(`^cannot open access log '${path}': ENOENT`));
    assert.equal(stat('write_failed'), 0);
    await file.close();
  });
});

describe('a pipe as access log', () => {
  test('is given pieces that it takes at one go, each ending with an entry', async () => {
    const socketPath = join(mkdtempSync(join(tmpdir(), 'weir-access-log-')), 'socket');
    const received: Buffer[] = [];
    const server = createServer((socket) => socket.on('data', (chunk: Buffer) => received.push(chunk)));
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    const client: Socket = connect(socketPath);
    await new Promise<void>((resolve) => client.once('connect', () => resolve()));
    // The descriptor of the connected socket, as a worker finds standard output to be one.
    const target = (client as unknown as { _handle: { fd: number } })._handle.fd;
    assert.ok(target > 2);
    const { file, stat } = newFile({ target });
    const entry = `${'p'.repeat(1499)}\n`;
    for (let index = 0; index < 10; index++) file.write(entry);
    await file.close();
    assert.equal(stat('write_completed'), 5, 'two entries of 1,500 bytes fit into 4,096');
    client.end();
    await until(() => Buffer.concat(received).length === 15_000);
    server.close();
  });
});

describe('a FIFO as access log', () => {
  async function newFifo(t: TestContext): Promise<Fifo> {
    const fifo = await Fifo.make(join(mkdtempSync(join(tmpdir(), 'weir-access-log-')), 'fifo'));
    t.after(() => fifo.close());
    return fifo;
  }

  test('that nobody reads yet is waited for', async (t) => {
    const fifo = await newFifo(t);
    const clock = new ManualClock();
    const { file, stat, messages } = newFile({ path: fifo.path, clock });
    file.write('one\n');
    file.flush();
    await until(() => stat('write_failed') === 1);
    assert.deepEqual(messages, [`cannot open access log '${fifo.path}': nobody reads it`]);
    fifo.openReader();
    clock.turn(1_000);
    await until(() => stat('write_completed') === 1);
    assert.equal(fifo.read(), 'one\n');
    await file.close();
  });

  test('whose reader stalls takes a bounded number of entries, in order and whole, and holds up no other file', async (t) => {
    // As many as the threads of the pool that file operations share, and one more.
    const stalled = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const fifo = await newFifo(t);
        fifo.openReader();
        return { fifo, clock: new ManualClock() };
      }),
    );
    const logs = stalled.map(({ fifo, clock }) => newFile({ path: fifo.path, clock }));
    const entries = Math.ceil((2 * MAX_WAITING_BYTES) / 1000);
    for (const { file, stat } of logs) {
      file.write(`0 ${'x'.repeat(997)}\n`);
      file.flush();
      await until(() => stat('write_completed') === 1);
      for (let number = 1; number < entries; number++) file.write(`${`${number} ${'x'.repeat(997)}`.slice(0, 999)}\n`);
    }
    const other = newFile();
    other.file.write('goes on\n');
    await other.file.close();
    assert.equal(readFileSync(other.path, 'latin1'), 'goes on\n');

    const { fifo, clock } = stalled[0]!;
    const { file, stat, messages } = logs[0]!;
    assert.deepEqual(messages, [`access log '${fifo.path}' loses entries: its reader is behind`]);
    assert.equal(stat('write_buffered') + stat('write_failed'), entries);
    let text = fifo.read();
    while (stat('write_total_buffered') > 0) {
      clock.turn(500);
      text += fifo.read();
    }
    const numbers = text
      .split('\n')
      .slice(0, -1)
      .map((line) => Number.parseInt(line, 10));
    assert.deepEqual(
      numbers,
      Array.from({ length: stat('write_buffered') }, (_, number) => number),
    );
    await Promise.all([
      file.close(),
      ...logs.slice(1).map(({ file: each }, at) => closeAfterBound(each, stalled[at + 1]!.clock)),
    ]);
    for (const log of logs.slice(1)) {
      assert.equal(log.stat('write_total_buffered'), 0);
    }
  });

  /** The end waits for the reader until its bound. */
  async function closeAfterBound(file: LogFile, clock: ManualClock): Promise<void> {
    let isClosed = false;
    const closed = file.close().then(() => {
      isClosed = true;
    });
    clock.turn(FINAL_FLUSH_MS - 1);
    await new Promise(setImmediate);
    assert.equal(isClosed, false);
    clock.turn(1);
    await closed;
  }

  test('whose reader has gone keeps its entries for the next one', async (t) => {
    const fifo = await newFifo(t);
    fifo.openReader();
    const clock = new ManualClock();
    const { file, stat, messages } = newFile({ path: fifo.path, clock });
    file.write('one\n');
    file.flush();
    await until(() => stat('write_completed') === 1);
    assert.equal(fifo.read(), 'one\n');
    fifo.closeReader();
    file.write('two\n');
    file.flush();
    assert.match(messages[0]!, /^cannot write access log '.*': EPIPE/);
    fifo.openReader();
    clock.turn(1_000);
    assert.equal(fifo.read(), 'two\n');
    await file.close();
  });
});

test('no entry of two threads that write one file is torn or lost', async () => {
  const { path } = newFile();
  const workers = [0, 1].map(
    (index) =>
      new Worker(new URL('./writer.worker.ts', import.meta.url), { workerData: { path, index, entries: 20_000 } }),
  );
  await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve))));
  const next = [0, 0];
  const lines = readFileSync(path, 'latin1').split('\n');
  assert.equal(lines.pop(), '');
  for (const line of lines) {
    const [, worker, number, filling] = /^(\d) (\d+) (=*)\.$/.exec(line) ?? assert.fail(`torn: ${line}`);
    assert.equal(Number(number), next[Number(worker)]!++, 'a thread keeps its order');
    assert.equal(filling!.length, Number(number) % 300);
  }
  assert.deepEqual(next, [20_000, 20_000]);
});
