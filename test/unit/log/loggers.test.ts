import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { build } from 'esbuild';
import { lineTable } from '../../../scripts/bundle/line-table.mjs';
import { PACKAGE_ROOT } from '../../../src/base/package-root.ts';
import {
  LineTable,
  LOG_COMPONENTS,
  LOG_LEVELS,
  Loggers,
  type LogLevels,
  type LogRecord,
} from '../../../src/log/index.ts';
import { type SourceLocation, SourceLocator } from '../../../src/log/source-location.ts';

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
      stack: '',
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
    const { loggers } = collect({ default: 'error', components: { upstream: 'trace', nonsense: 'debug' } });
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
    assert.deepEqual(loggers.levels(), { default: 'error', components: { filter: 'trace' } });
    assert.deepEqual(
      other.list().map(({ level }) => level),
      loggers.list().map(({ level }) => level),
    );
    stop();
    loggers.setAll('off');
    assert.equal(other.get('filter').level, 'trace');
  });

  it('are those of source files where they are told to be', () => {
    const here = 'test/unit/log/loggers.test.ts';
    const { loggers, written } = collect({ default: 'warning', files: [{ pattern: 'test/*', level: 'debug' }] });
    const log = loggers.get('http');
    log.debug('one');
    log.trace('two');
    loggers.write('main', 'info', 'of no file');
    loggers.write('main', 'error', 'of no file');
    assert.deepEqual(
      written.map(({ logger, message }) => [logger, message]),
      [
        [here, 'one'],
        ['main', 'of no file'],
      ],
    );
    assert.deepEqual(loggers.list(), [{ name: here, level: 'debug' }]);
    assert.equal(loggers.isFineGrain, true);

    assert.equal(loggers.set([['nothing-of-this-name', 'trace']]), undefined);
    log.info('off, because patterns are replaced');
    assert.deepEqual(loggers.list(), [{ name: here, level: 'warning' }]);
    assert.deepEqual(loggers.levels(), {
      default: 'warning',
      files: [{ pattern: 'nothing-of-this-name', level: 'trace' }],
    });
    assert.equal(written.length, 2);

    loggers.setAll('info');
    log.info('three');
    assert.deepEqual(loggers.levels(), { default: 'info', files: [] });
    assert.equal(written.length, 3);
  });

  it('of source files hand their levels on, and know the files of other threads', () => {
    const { loggers, written } = collect({ default: 'info', files: [] });
    const other = collect({ default: 'info', files: [] });
    loggers.onLevelsChanged(() => other.loggers.applyLevels(loggers.levels()));
    loggers.set([['loggers.test', 'debug']]);
    other.loggers.get('pool').debug('here');
    const record = other.written[0]!;
    loggers.emit(record, 3);
    assert.equal(written[0]!.logger, 'test/unit/log/loggers.test.ts');
    assert.deepEqual(loggers.list(), [{ name: 'test/unit/log/loggers.test.ts', level: 'debug' }]);
  });

  it('of a file that is known have the level of their component, or of the file where files have one', () => {
    const { loggers, written } = collect();
    const log = loggers.get('http').ofFile('src/data-plane/some.ts');
    const levels = (): string[] => [log.level, loggers.get('http').level];
    assert.deepEqual(levels(), ['info', 'info']);
    loggers.set([['http', 'debug']]);
    assert.deepEqual(levels(), ['debug', 'debug']);
    loggers.setAll('error');
    assert.deepEqual(levels(), ['error', 'error']);
    loggers.applyLevels({ default: 'info', files: [{ pattern: 'other', level: 'trace' }] });
    assert.deepEqual(levels(), ['info', 'trace']);
    loggers.set([['some', 'debug']]);
    assert.deepEqual(levels(), ['debug', 'debug']);
    assert.equal(loggers.get('http').ofFile('src/data-plane/third.ts').level, 'info');
    assert.equal(loggers.get('http').ofFile('src/data-plane/some.ts'), log);
    loggers.applyLevels({ default: 'info' });
    log.info('here');
    assert.deepEqual(
      written.map(({ logger, message }) => [logger, message]),
      [['http', 'here']],
    );
  });

  it('lose a line that its sink cannot write, count it, and never throw', () => {
    const sink = {
      write: (): void => {
        throw new Error('no descriptors');
      },
    };
    const loggers = new Loggers({ levels: { default: 'info' }, sink, threadId: 0 });
    loggers.get('main').error('one');
    loggers.write('main', 'error', 'two');
    const record = { logger: 'main', level: 'error', message: 'three', stack: '', timeMs: 0 } as const;
    loggers.emit({ ...record, file: '', line: 0, functionName: '' }, 1);
    assert.equal(loggers.dropped, 3);
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
    const bundle = [
      { file: path.join(folder, 'dist/other.js'), map: { sources: ['../other.ts'], mappings: 'AAAA' } },
      { file: script!.path, map: JSON.parse(map!.text) },
    ];
    await writeFile(`${script!.path}.lines`, lineTable(bundle, folder));
    const lines = LineTable.read(pathToFileURL(script!.path).href);
    // A log line must not depend on a file that is there when it is written.
    await rm(`${script!.path}.lines`);
    const locate = (text: string): SourceLocation => {
      const written = script!.text.split('\n');
      const index = written.findIndex((line) => line.includes(text));
      const columnNumber = written[index]!.indexOf(text) + 1;
      const site = { scriptName: `file://${script!.path}`, lineNumber: index + 1, columnNumber, functionName: 'f' };
      return new SourceLocator({ lines, root: folder }).locate(site);
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
    assert.equal(LineTable.read(site.scriptName), undefined);
    assert.deepEqual(new SourceLocator({}).locate(site), { file: 'dist/src/gone.js', line: 7, functionName: '' });
  });
});
