import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it, type TestContext } from 'node:test';
import { PACKAGE_ROOT } from '../../../src/base/package-root.ts';
import {
  LogDestination,
  type LogDestinationOptions,
  Loggers,
  LogOutput,
  type LogRecord,
  logTarget,
  TextSink,
} from '../../../src/log/index.ts';
import { MAX_WAITING_BYTES } from '../../../src/log/log-destination.ts';
import { runProgram } from '../../support/child-process.ts';
import { Fifo } from '../../support/fifo.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'weir-log-'));
after(() => rmSync(folder, { recursive: true }));

const RECORD: LogRecord = {
  logger: 'io',
  level: 'info',
  message: '',
  stack: '',
  timeMs: 0,
  file: '',
  line: 0,
  functionName: '',
};

async function makeFifo(t: TestContext, name: string): Promise<Fifo> {
  const fifo = await Fifo.make(path.join(folder, name));
  t.after(() => fifo.close());
  return fifo;
}

interface Watched {
  readonly destination: LogDestination;
  readonly clock: ManualClock;
  dropped: number;
}

function open(target: string, options: LogDestinationOptions = {}): Watched {
  const clock = new ManualClock();
  const onDropped = (lines: number): void => {
    watched.dropped += lines;
  };
  const watched = { destination: LogDestination.open(target, { clock, onDropped, ...options }), clock, dropped: 0 };
  return watched;
}

describe('a log file', () => {
  it('gets whole lines at once and goes on in a new file after a rename and a reopening', () => {
    const file = path.join(folder, 'weir.log');
    const { destination } = open(file);
    const sink = new TextSink({ format: '%l %v', escaped: false, destination });
    const loggers = new Loggers({ levels: { default: 'info' }, sink, threadId: 0 });
    const log = loggers.get('main');
    log.info('one');
    assert.equal(readFileSync(file, 'utf8'), 'info one\n');
    renameSync(file, `${file}.1`);
    log.info('two');
    destination.reopen();
    log.warning('three');
    destination.close();
    destination.close();
    log.info('lost');
    assert.equal(readFileSync(`${file}.1`, 'utf8'), 'info one\ninfo two\n');
    assert.equal(readFileSync(file, 'utf8'), 'warning three\n');
  });

  it('is appended to, not overwritten', () => {
    const file = path.join(folder, 'old.log');
    writeFileSync(file, 'before\n');
    const { destination } = open(file);
    destination.write('after\n');
    destination.close();
    assert.equal(readFileSync(file, 'utf8'), 'before\nafter\n');
  });

  it('goes on in the old file when the new one cannot be opened', () => {
    const file = path.join(folder, 'kept.log');
    const { destination } = open(file);
    destination.write('one\n');
    renameSync(file, `${file}.1`);
    symlinkSync(folder, file);
    assert.throws(() => destination.reopen(), { code: 'WEIR_LOG_FILE' });
    destination.write('two\n');
    destination.close();
    assert.equal(readFileSync(`${file}.1`, 'utf8'), 'one\ntwo\n');
  });

  it('is refused with its name when it cannot be opened', () => {
    assert.throws(() => open(folder), {
      code: 'WEIR_LOG_FILE',
      message: new RegExp(`^failed to open log file '${folder}': EISDIR`),
    });
  });

  it('keeps every message on one line when it is escaped', () => {
    const file = path.join(folder, 'escaped.log');
    const { destination } = open(file);
    new TextSink({ format: '[%n] %v', escaped: true, destination }).write({ ...RECORD, message: 'a\nb' }, 0);
    destination.close();
    assert.equal(readFileSync(file, 'utf8'), '[io] a\\nb\n');
  });
});

describe('a log file on a full disk', () => {
  it('never throws; lines wait within a bound and are then dropped, counted', () => {
    const watched = open('/dev/full');
    const line = `${'x'.repeat(1023)}\n`;
    for (let number = 0; number < MAX_WAITING_BYTES / line.length; number++) {
      assert.equal(watched.destination.write(line), true);
    }
    assert.equal(watched.dropped, 0);
    assert.equal(watched.destination.write(line), false);
    assert.equal(watched.dropped, 1);
    watched.clock.turn(10_000);
    assert.equal(watched.clock.timerCount, 1, 'it is tried again, and nothing else waits');
    watched.destination.close();
    assert.equal(watched.dropped, 1 + MAX_WAITING_BYTES / line.length);
    assert.equal(watched.clock.timerCount, 0);
  });

  it('writes what waits to the new file when it is reopened', () => {
    const file = path.join(folder, 'full.log');
    symlinkSync('/dev/full', file);
    const { destination } = open(file);
    destination.write('one\n');
    destination.write('two\n');
    unlinkSync(file);
    destination.reopen();
    destination.write('three\n');
    assert.equal(readFileSync(file, 'utf8'), 'one\ntwo\nthree\n');
    destination.close();
  });

  it('lets go of the file that it cannot write even when the new one cannot be opened, and waits for that', () => {
    const file = path.join(folder, 'full-then-folder.log');
    symlinkSync('/dev/full', file);
    const { destination, clock } = open(file);
    destination.write('one\n');
    unlinkSync(file);
    symlinkSync(folder, file);
    assert.throws(() => destination.reopen(), { code: 'WEIR_LOG_FILE' });
    unlinkSync(file);
    clock.turn(1_000);
    assert.equal(readFileSync(file, 'utf8'), 'one\n');
    destination.close();
  });
});

describe('a log pipe', () => {
  it('is waited for when nobody reads it yet', async (t) => {
    const fifo = await makeFifo(t, 'unread');
    const { destination, clock } = open(fifo.path);
    destination.write('one\n');
    destination.write('two\n');
    fifo.openReader();
    clock.turn(1_000);
    assert.equal(fifo.read(), 'one\ntwo\n');
    destination.write('three\n');
    assert.equal(fifo.read(), 'three\n', 'without a wait');
    destination.close();
  });

  it('whose reader stalls holds up nobody, and tells of its one gap when it flows again', async (t) => {
    const fifo = await makeFifo(t, 'stalled');
    fifo.openReader();
    const watched = open(fifo.path, { onResumed: () => sink.reportDropped() });
    const { destination, clock } = watched;
    const sink = new TextSink({ format: '%v', escaped: false, destination });
    let written = 0;
    while (watched.dropped === 0) sink.write({ ...RECORD, message: `${written++} ${'x'.repeat(1000)}` }, 0);
    for (let more = 0; more < 9; more++) sink.write({ ...RECORD, message: 'lost' }, 0);
    assert.equal(watched.dropped, 10);
    let text = '';
    while (!text.endsWith('in time\n')) {
      text += fifo.read();
      clock.turn(500);
    }
    const lines = text.split('\n');
    assert.deepEqual(lines.splice(-2), ['10 lines are missing here: they could not be written in time', '']);
    assert.deepEqual(
      lines.map((line) => Number.parseInt(line, 10)),
      Array.from({ length: written - 1 }, (_, number) => number),
    );
    sink.write({ ...RECORD, message: 'flows' }, 0);
    assert.equal(fifo.read(), 'flows\n');
    destination.close();
  });

  it('is tried again less and less often while its reader stands still', async (t) => {
    const fifo = await makeFifo(t, 'still');
    fifo.openReader();
    let tries = 0;
    const clock = new ManualClock();
    const { after } = clock;
    const counting = Object.assign(clock, {
      after: (delayMs: number, callback: () => void) => {
        tries += 1;
        return after.call(clock, delayMs, callback);
      },
    });
    const { destination } = open(fifo.path, { clock: counting });
    for (let number = 0; number < 100; number++) destination.write(`${'x'.repeat(1000)}\n`);
    clock.turn(60_000);
    assert.ok(tries < 200, `${tries} tries in a minute`);
    destination.close();
  });

  it('whose reader has gone keeps its lines for the next one', async (t) => {
    const fifo = await makeFifo(t, 'left');
    fifo.openReader();
    const { destination, clock } = open(fifo.path);
    fifo.closeReader();
    destination.write('one\n');
    destination.write('two\n');
    fifo.openReader();
    clock.turn(1_000);
    assert.equal(fifo.read(), 'one\ntwo\n');
    destination.close();
  });

  it('is not waited for at the end for longer than a second, and its lines are counted', async (t) => {
    const fifo = await makeFifo(t, 'end');
    fifo.openReader();
    const watched = open(fifo.path);
    let taken = 0;
    for (let number = 0; number < 200; number++) watched.destination.write(`${'x'.repeat(999)}\n`);
    watched.destination.close();
    taken = fifo.read().length / 1000;
    assert.ok(taken > 0);
    assert.equal(watched.dropped, 200 - taken);
  });
});

/** Runs a module that writes with the log, in the form of the sources. */
function runScript(body: string): Promise<{ readonly stderr: string }> {
  const log = JSON.stringify(path.join(PACKAGE_ROOT, 'src/log/index.ts'));
  const script = `import { LogDestination, Loggers, TextSink } from ${log}; ${body}`;
  return runProgram(process.execPath, ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script]);
}

describe('the log on standard error', () => {
  it('has written a line when the call returns', async () => {
    const { stderr } = await runScript(`
      const sink = new TextSink({ format: '[%l][%n] %v', escaped: false, destination: LogDestination.open(2) });
      const loggers = new Loggers({ levels: { default: 'info' }, sink, threadId: 0 });
      for (let i = 0; i < 100; i++) loggers.get('main').critical('line ' + i);
      process.abort();
    `);
    assert.match(stderr, /\[critical\]\[main\] line 99\n/);
  });

  it('waits for a reader that is behind where it is told to', async () => {
    const { stderr } = await runScript(`
      const destination = LogDestination.open(2);
      for (let i = 0; i < 5000; i++) destination.write('x'.repeat(99) + '\\n');
      destination.close('endless');
    `);
    assert.equal(stderr.length, 500_000);
  });
});

describe('a standard stream', () => {
  it('that is a pipe is opened anew, so that it stays as it was for those who share it', async (t) => {
    const fifo = await makeFifo(t, 'shared');
    fifo.openReader();
    const descriptor = fifo.openWriter();
    const output = LogOutput.open(descriptor);
    const line = Buffer.alloc(4096, 'x');
    assert.throws(
      () => {
        for (;;) output.write(line, 0, line.length);
      },
      { code: 'EAGAIN' },
    );
    const [, flags] = /flags:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1'))!;
    assert.equal(Number.parseInt(flags!, 8) & constants.O_NONBLOCK, 0);
    output.close();
  });

  it('that is a socket is never waited for', async (t) => {
    const server = createServer({ pauseOnConnect: true }).listen(path.join(folder, 'socket'));
    await once(server, 'listening');
    const client = connect(path.join(folder, 'socket'));
    await once(client, 'connect');
    t.after(() => {
      client.destroy();
      server.close();
    });
    const output = LogOutput.open((client as unknown as { _handle: { fd: number } })._handle.fd);
    const line = Buffer.alloc(4096, 'x');
    assert.throws(
      () => {
        for (;;) output.write(line, 0, line.length);
      },
      { code: 'EAGAIN' },
    );
    client.destroy();
    await once(client, 'close');
    assert.throws(() => output.write(line, 0, line.length), { code: 'EBADF' });
  });

  it('that is a file is written where it stands, also behind what others have written', () => {
    const file = path.join(folder, 'redirected');
    const descriptor = openSync(file, 'w');
    writeSync(descriptor, 'one\n');
    const output = LogOutput.open(descriptor);
    output.write(Buffer.from('two\n'), 0, 4);
    writeSync(descriptor, 'three\n');
    closeSync(descriptor);
    assert.equal(readFileSync(file, 'utf8'), 'one\ntwo\nthree\n');
  });

  it('is meant by the paths that stand for it', () => {
    assert.deepEqual(['/dev/stdout', '/dev/stderr', '/dev/null'].map(logTarget), [1, 2, '/dev/null']);
  });
});
