// Loggers of single source files: what they are called, that /logging lists all that there are and sets them by pattern,
// on main and in workers.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { filesThatLog } from '../../scripts/bundle/files-that-log.mjs';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { httpFilter, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const CONFIG = JSON.stringify({
  admin: { address: socketAddress('127.0.0.1', 0) },
  static_resources: { listeners: [listenerWith([httpFilter({})], { address: socketAddress('127.0.0.1', 0) })] },
});
const FINE = ['--enable-fine-grain-logging', '--log-format', '%n|%l|%g|%v'];
const IS_BUNDLED = process.env.WEIR_TEST_MAIN !== undefined;

async function setLevels(weir: WeirProcess, query: string): Promise<{ status: number; levels: Map<string, string> }> {
  const response = await fetch(`${weir.adminUrl}/logging?${query}`, { method: 'POST' });
  const text = await response.text();
  const lines = text.slice(text.indexOf('active loggers:\n')).trimEnd().split('\n').slice(1);
  return { status: response.status, levels: new Map(lines.map((line) => line.trim().split(': ') as [string, string])) };
}

function lines(weir: WeirProcess): string[][] {
  return weir.output.stderr
    .trimEnd()
    .split('\n')
    .map((line) => line.split('|'));
}

function isChatty(level: string | undefined): boolean {
  return level === 'debug' || level === 'trace';
}

describe('--enable-fine-grain-logging', () => {
  it('names each line by its source file', async () => {
    await using weir = await startWeir({ configYaml: CONFIG, args: FINE });
    await weir.stop();
    assert.ok(lines(weir).length > 1);
    for (const [name, level, file] of lines(weir)) {
      assert.equal(name, file);
      assert.match(name!, /^src\/.*\.ts$/);
      assert.notEqual(level, 'debug');
    }
  });

  it('lists every file that logs, and sets levels by pattern', {
    skip: !IS_BUNDLED && 'only a bundle knows its files',
  }, async () => {
    await using weir = await startWeir({ configYaml: CONFIG, args: FINE });
    const { levels: before } = await setLevels(weir, '');
    assert.deepEqual([...before.keys()], filesThatLog(PACKAGE_ROOT));
    assert.deepEqual(new Set(before.values()), new Set(['2']));

    const { status, levels } = await setLevels(weir, 'paths=src/data-plane/*:debug,serve=off,src/*/workers/*:error');
    assert.equal(status, 200);
    for (const [name, level] of levels) {
      const expected = name.startsWith('src/data-plane/') ? '1' : /\/serve\.ts$/.test(name) ? '6' : undefined;
      assert.equal(level, expected ?? (name.includes('/workers/') ? '4' : '2'), name);
    }

    const { levels: single } = await setLevels(weir, 'src/process/serve.ts=critical');
    assert.deepEqual(
      [...single].filter(([, level]) => level !== '2'),
      [['src/process/serve.ts', '5']],
    );
    assert.equal((await setLevels(weir, 'no-such-file=debug')).status, 200);
    assert.deepEqual(new Set((await setLevels(weir, 'level=off')).levels.values()), new Set(['6']));
    assert.equal((await setLevels(weir, 'paths=serve')).status, 400);
    assert.equal((await setLevels(weir, 'paths=serve:loud')).status, 400);
  });

  it('reaches the files of workers, and no other', async () => {
    const args = [...FINE, '--component-log-level', 'active-listener:off'];
    await using weir = await startWeir({ configYaml: CONFIG, args });
    await setLevels(weir, 'paths=src/data-plane/*:trace');
    const { port } = (await weir.listeners()).get('main')!;
    const hasTraces = (): boolean => {
      const client = connect(port, '127.0.0.1', () => client.end('no request\r\n\r\n'));
      // What becomes of the connection is not the question.
      client.on('error', () => {}).resume();
      return lines(weir).some(([name, level]) => name!.startsWith('src/data-plane/') && isChatty(level));
    };
    await untilEqual(true, hasTraces, 'a line of a worker');
    for (const [name, level] of lines(weir)) {
      if (isChatty(level)) assert.ok(name!.startsWith('src/data-plane/'));
    }
  });
});

describe('the file of the lines about requests', () => {
  it('has a level of its own, by the name that it is listed by', async () => {
    await using weir = await startWeir({
      configYaml: CONFIG,
      args: [...FINE, '--component-log-level', 'traffic-log:debug'],
    });
    const { port } = (await weir.listeners()).get('main')!;
    await fetch(`http://127.0.0.1:${port}/`);
    const told = () =>
      lines(weir).some(([name, , , text]) => name === 'src/data-plane/traffic-log.ts' && / GET \/ /.test(text!));
    await untilEqual(true, told, 'the line of the request');
  });
});

describe('the files that log', () => {
  it('are those with a call of a logger', () => {
    const files = filesThatLog(PACKAGE_ROOT);
    for (const file of [
      'process/serve',
      'data-plane/listener/active-listener',
      'data-plane/router/router',
      'base/clock',
    ]) {
      assert.equal(files.includes(`src/${file}.ts`), file !== 'base/clock', file);
    }
    assert.ok(!files.some((file) => file.startsWith('src/config/')), 'faults of a configuration are no log calls');
  });
});
