import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { build } from 'esbuild';
import { lineTable } from '../../../scripts/bundle/line-table.mjs';
import { PACKAGE_ROOT } from '../../../src/base/package-root.ts';
import {
  createTextSink,
  LOG_COMPONENTS,
  LOG_LEVELS,
  Loggers,
  type LogLevels,
  type LogRecord,
  openLogDestination,
} from '../../../src/log/index.ts';
import { type SourceLocation, SourceLocator } from '../../../src/log/source-location.ts';
import { runProgram } from '../../support/child-process.ts';

interface Written extends LogRecord {
  readonly threadId: number;
}

function collect(levels: LogLevels = { default: 'info' }): { loggers: Loggers; written: Written[] } {
  const written: Written[] = [];
  const sink = { write: (record: LogRecord, threadId: number) => written.push({ ...record, threadId }) };
  return { loggers: new Loggers({ levels, sink, threadId: 5, now: () => 1234.5 }), written };
}

describe('loggers', () => {
  it('write messages from their level on', () => {
    const { loggers, written } = collect();
    const log = loggers.get('http');
    const messages = LOG_LEVELS.filter((level) => level !== 'off');
    const passed = Object.fromEntries(
      LOG_LEVELS.map((threshold) => {
        loggers.setAll(threshold);
        written.length = 0;
        for (const level of messages) log[level](`at ${level}`);
        assert.deepEqual(
          messages.map((level) => log.enabled(level)),
          messages.map((level) => written.some((record) => record.level === level)),
        );
        return [threshold, written.map(({ message }) => message).join()];
      }),
    );
    assert.equal(passed.trace, 'at trace,at debug,at info,at warning,at error,at critical');
    assert.equal(passed.warning, 'at warning,at error,at critical');
    assert.equal(passed.critical, 'at critical');
    assert.equal(passed.off, '');
  });

  it('name the place of the call', () => {
    const { loggers, written } = collect();
    function namedCaller(): void {
      loggers.get('pool').info('here');
    }
    namedCaller();
    const { line, ...record } = written[0]!;
    assert.deepEqual(record, {
      logger: 'pool',
      level: 'info',
      message: 'here',
      timeMs: 1234.5,
      file: 'test/unit/log/loggers.test.ts',
      functionName: 'namedCaller',
      threadId: 5,
    });
    assert.ok(line > 1);
  });

  it('name the place of each call of the same function', () => {
    const { loggers, written } = collect();
    const log = loggers.get('main');
    log.info('one');
    log.error('two');
    assert.equal(written[1]!.line - written[0]!.line, 1);
  });

  it('start with the levels that they are given', () => {
    const { loggers } = collect({ default: 'error', upstream: 'trace', nonsense: 'debug' });
    assert.equal(loggers.get('upstream').level, 'trace');
    assert.equal(loggers.get('http').level, 'error');
  });

  it('change one by one, all together, or not at all when a name is unknown', () => {
    const { loggers } = collect();
    assert.equal(
      loggers.set([
        ['http', 'debug'],
        ['router', 'off'],
      ]),
      undefined,
    );
    assert.equal(loggers.get('http').level, 'debug');
    assert.equal(
      loggers.set([
        ['http', 'trace'],
        ['htpp', 'trace'],
      ]),
      'htpp',
    );
    assert.equal(loggers.get('http').level, 'debug');
    loggers.setAll('warning');
    assert.deepEqual(new Set(loggers.list().map(({ level }) => level)), new Set(['warning']));
  });

  it('are listed in their fixed order', () => {
    assert.deepEqual(
      collect()
        .loggers.list()
        .map(({ name }) => name),
      [...LOG_COMPONENTS],
    );
  });

  it('hand their levels on to another thread', () => {
    const { loggers } = collect();
    const other = collect().loggers;
    const stop = loggers.onLevelsChanged(() => other.applyLevels(loggers.levels()));
    loggers.setAll('error');
    loggers.set([['filter', 'trace']]);
    assert.deepEqual(loggers.levels(), { default: 'error', filter: 'trace' });
    assert.deepEqual(
      other.list().map(({ level }) => level),
      loggers.list().map(({ level }) => level),
    );
    stop();
    loggers.setAll('off');
    assert.equal(other.get('filter').level, 'trace');
  });

  it('pass on the records of other threads with their thread id', async () => {
    const { loggers, written } = collect();
    const entry = `
      import { parentPort, threadId } from 'node:worker_threads';
      import { Loggers } from ${JSON.stringify(new URL('../../../src/log/index.ts', import.meta.url).href)};
      const sink = { write: (record) => parentPort.postMessage(record) };
      new Loggers({ levels: { default: 'info' }, sink, threadId }).get('connection').error('from afar');
    `;
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(entry)}`));
    const { threadId } = worker;
    await new Promise<void>((resolve, reject) => {
      worker.once('error', reject);
      worker.once('message', (record: LogRecord) => {
        loggers.emit(record, threadId);
        resolve();
      });
    });
    await worker.terminate();
    assert.equal(written[0]!.message, 'from afar');
    assert.equal(written[0]!.logger, 'connection');
    assert.equal(written[0]!.threadId, threadId);
    assert.ok(Math.abs(written[0]!.timeMs - Date.now()) < 60_000);
  });
});

describe('the log file', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'weir-log-'));
  });
  after(() => rm(folder, { recursive: true }));

  it('gets whole lines at once and goes on in a new file after a rename and a reopening', async () => {
    const file = path.join(folder, 'deep', 'weir.log');
    const destination = openLogDestination(file);
    const sink = createTextSink({ format: '%l %v', escaped: false, destination });
    const loggers = new Loggers({ levels: { default: 'info' }, sink, threadId: 0 });
    const log = loggers.get('main');
    log.info('one');
    assert.equal(await readFile(file, 'utf8'), 'info one\n');
    await rename(file, `${file}.1`);
    log.info('two');
    destination.reopen();
    log.warning('three');
    destination.close();
    destination.close();
    log.info('lost');
    assert.equal(await readFile(`${file}.1`, 'utf8'), 'info one\ninfo two\n');
    assert.equal(await readFile(file, 'utf8'), 'warning three\n');
  });

  it('is appended to, not overwritten', async () => {
    const file = path.join(folder, 'old.log');
    await writeFile(file, 'before\n');
    const destination = openLogDestination(file);
    destination.write('after\n');
    destination.close();
    assert.equal(await readFile(file, 'utf8'), 'before\nafter\n');
  });

  it('goes on in the old file when the new one cannot be opened', async () => {
    const file = path.join(folder, 'kept.log');
    const destination = openLogDestination(file);
    destination.write('one\n');
    await rename(file, `${file}.1`);
    await symlink(folder, file);
    assert.throws(() => destination.reopen(), { code: 'WEIR_LOG_FILE' });
    destination.write('two\n');
    destination.close();
    assert.equal(await readFile(`${file}.1`, 'utf8'), 'one\ntwo\n');
  });

  it('is refused with its name when it cannot be opened', () => {
    assert.throws(() => openLogDestination(folder), {
      code: 'WEIR_LOG_FILE',
      message: new RegExp(`^failed to open log file '${folder}': EISDIR`),
    });
  });

  it('keeps every message on one line when it is escaped', async () => {
    const file = path.join(folder, 'escaped.log');
    const destination = openLogDestination(file);
    createTextSink({ format: '[%n] %v', escaped: true, destination }).write(
      { logger: 'io', level: 'info', message: 'a\nb', timeMs: 0, file: '', line: 0, functionName: '' },
      0,
    );
    destination.close();
    assert.equal(await readFile(file, 'utf8'), '[io] a\\nb\n');
  });

  it('is standard error without a path', async () => {
    const script = `
      import { createTextSink, Loggers, openLogDestination } from ${JSON.stringify(path.join(PACKAGE_ROOT, 'src/log/index.ts'))};
      const sink = createTextSink({ format: '[%l][%n] %v', escaped: false, destination: openLogDestination('') });
      const loggers = new Loggers({ levels: { default: 'info' }, sink, threadId: 0 });
      for (let i = 0; i < 2000; i++) loggers.get('main').critical('line ' + i);
      process.abort();
    `;
    const { stderr } = await runProgram(process.execPath, ['--input-type=module', '-e', script]);
    assert.match(stderr, /\[critical\]\[main\] line 1999\n/);
  });
});

describe('the place of a log call in compiled code', () => {
  it('is the line of the source, by the line table of the bundle', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'weir-lines-'));
    await writeFile(
      path.join(folder, 'first.ts'),
      'interface A {\n  b: string;\n}\n\nexport const here = (): A => ({ b: "" });\n',
    );
    await writeFile(
      path.join(folder, 'second.ts'),
      '// Of two files.\nimport { here } from "./first.ts";\n\nconsole.log(\n  here(),\n);\n',
    );
    const { outputFiles } = await build({
      absWorkingDir: folder,
      entryPoints: ['second.ts'],
      outdir: 'dist',
      ...{ bundle: true, format: 'esm', sourcemap: 'linked', write: false },
    });
    const [map, script] = ['.js.map', '.js'].map((end) => outputFiles.find((file) => file.path.endsWith(end))!);
    await mkdir(path.join(folder, 'dist'));
    await writeFile(`${script!.path}.lines`, lineTable(JSON.parse(map!.text), path.dirname(map!.path), folder));
    const locate = (text: string): SourceLocation => {
      const lines = script!.text.split('\n');
      const index = lines.findIndex((line) => line.includes(text));
      const columnNumber = lines[index]!.indexOf(text) + 1;
      const site = { scriptName: `file://${script!.path}`, lineNumber: index + 1, columnNumber, functionName: 'f' };
      return new SourceLocator(folder).locate(site);
    };
    assert.deepEqual(locate('b: ""'), { file: 'first.ts', line: 5, functionName: 'f' });
    assert.deepEqual(locate('console.log'), { file: 'second.ts', line: 4, functionName: 'f' });
    assert.deepEqual(locate('here()'), { file: 'second.ts', line: 5, functionName: 'f' });
    await rm(folder, { recursive: true });
  });

  it('is the compiled line when there is no table', () => {
    const site = {
      scriptName: `file://${PACKAGE_ROOT}/dist/src/gone.js`,
      lineNumber: 7,
      columnNumber: 1,
      functionName: '',
    };
    assert.deepEqual(new SourceLocator().locate(site), { file: 'dist/src/gone.js', line: 7, functionName: '' });
  });
});
