// What becomes of the program when what it writes to does not take it: a full disk, a reader that stalls or has gone, a
// closed stream. It goes on, ends when it is told to, and its exit code is that of what it was asked for.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it, type TestContext } from 'node:test';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { LOG_COMPONENTS } from '../../src/log/index.ts';
import { httpFilter, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { type ExitResult, runProgram } from '../support/child-process.ts';
import { untilEqual } from '../support/eventually.ts';
import { Fifo } from '../support/fifo.ts';
import { runWeir, startWeir, type WeirProcess } from '../support/weir-process.ts';

const CONFIG = 'admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }';
const MAIN = path.join(PACKAGE_ROOT, process.env.WEIR_TEST_MAIN ?? 'src/main.ts');
const TRACE = /\n\s+at |node:internal/;

const folder = mkdtempSync(path.join(tmpdir(), 'weir-outputs-'));
after(() => rmSync(folder, { recursive: true, force: true }));

async function makeFifo(t: TestContext, name: string): Promise<Fifo> {
  const fifo = await Fifo.make(path.join(folder, name));
  t.after(() => fifo.close());
  return fifo;
}

/** A pipe that nobody reads any more. */
async function deadPipe(t: TestContext, name: string): Promise<number> {
  const fifo = await makeFifo(t, name);
  fifo.openReader();
  const writer = fifo.openWriter();
  fifo.closeReader();
  return writer;
}

/** Some hundred KB of log lines of the main thread. */
async function flood(weir: WeirProcess): Promise<void> {
  const paths = LOG_COMPONENTS.map((name) => `${name}=debug`).join(',');
  for (let request = 0; request < 100; request++) {
    const response = await fetch(`${weir.adminUrl}/logging?paths=${paths}`, { method: 'POST' });
    assert.equal(response.status, 200, await response.text());
  }
}

/** Until more lines wait than may. */
async function floodUntilDropped(weir: WeirProcess): Promise<void> {
  const before = await weir.stat('server.dropped_log_lines');
  while ((await weir.stat('server.dropped_log_lines')) === before) await flood(weir);
}

describe('the log of a running weir', () => {
  it('on a full disk does not disturb it, and its loss is counted', async () => {
    await using weir = await startWeir({ configYaml: CONFIG, args: ['--log-path', '/dev/full'] });
    await floodUntilDropped(weir);
    const { code, stderr } = await weir.stop();
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  });

  it('on a disk that fills up and is emptied tells of the gap, and loses nothing else', async (t) => {
    const disk = path.join(folder, 'disk');
    mkdirSync(disk);
    const mounted = ['unshare', '--map-root-user', '--mount', 'sh', '-c'];
    const mount = 'mount -t tmpfs -o size=2m none "$0"';
    const { code } = await runProgram(mounted[0]!, [...mounted.slice(1), mount, disk]).catch(() => ({ code: 1 }));
    if (code !== 0) return t.skip('no small disk here');
    const file = path.join(disk, 'weir.log');
    const runBy = [...mounted, `${mount} && exec "$@"`, disk];
    await using weir = await startWeir({ configYaml: CONFIG, args: ['--log-path', file], runBy });
    const seen = `/proc/${weir.pid}/root${file}`;
    await floodUntilDropped(weir);
    assert.ok(statSync(seen).size > 1024 * 1024);
    truncateSync(seen);
    const gap = await untilMatch(/\[warning\]\[main\] \[:\] (\d+) lines are missing here/, () =>
      readFileSync(seen, 'latin1'),
    );
    assert.equal(await weir.stat('server.dropped_log_lines'), Number(gap[1]));
    await flood(weir);
    const text = readFileSync(seen, 'latin1');
    const behind = text.slice(text.indexOf('lines are missing here')).split('\n');
    assert.equal(behind.filter((line) => line.includes('change log level')).length, 100 * LOG_COMPONENTS.length);
  });

  it('has every line that was written before the process was killed', async () => {
    const file = path.join(folder, 'killed.log');
    await using weir = await startWeir({ configYaml: CONFIG, args: ['--log-path', file] });
    await flood(weir);
    await weir.stop('SIGKILL');
    const lines = readFileSync(file, 'utf8').split('\n');
    assert.equal(lines.pop(), '');
    assert.equal(lines.filter((line) => line.includes('change log level')).length, 100 * LOG_COMPONENTS.length);
    // Workers write as well, when what is left of their start is given back in the middle of it.
    assert.ok(lines.every((line) => /^\[\d{4}-.*\]\[\d+\]\[/.test(line)));
  });

  it('has the lines of each worker in their order, under its thread', async () => {
    const listener = listenerWith([httpFilter({})], { address: socketAddress('127.0.0.1', 0) });
    const configYaml = `${CONFIG}\nstatic_resources: ${JSON.stringify({ listeners: [listener] })}`;
    const args = ['--concurrency', '2', '-l', 'debug', '--log-format', '%t %f %v'];
    await using weir = await startWeir({ configYaml, args });
    const { port } = (await weir.listeners()).get('main')!;
    const lines = (): string[][] => linesOf(weir.output.stderr);
    const threads = (): number => new Set(lines().flatMap(([thread]) => (thread === '0' ? [] : thread!))).size;
    const count = (): number => lines().filter(([, , text]) => text!.includes('broke the protocol')).length;
    let sent = 0;
    // Which worker gets a connection is the system's choice.
    while (threads() < 2 || count() < 50) {
      const client = connect(port, '127.0.0.1').end('no request\r\n\r\n').resume();
      // The answer may end in a reset, which is not the question.
      client.on('error', () => {});
      await new Promise((resolve) => client.once('close', resolve));
      sent += 1;
    }
    await untilEqual(sent, count, 'a line for each');
    // By the numbers of connections, which each worker counts up: the system's clock may be set back meanwhile.
    const last = new Map<string, number>();
    for (const [thread, , text] of lines()) {
      const id = Number(/^\[C(\d+)\] new connection/.exec(text!)?.[1] ?? Number.NaN);
      if (Number.isNaN(id)) continue;
      assert.ok((last.get(thread!) ?? -1) < id, `connection ${id} of thread ${thread} comes late`);
      last.set(thread!, id);
    }
    assert.equal(last.size, 2);
  });

  it('in a folder that is taken away while it runs does not disturb it', async () => {
    const logs = path.join(folder, 'logs');
    mkdirSync(logs);
    await using weir = await startWeir({ configYaml: CONFIG, args: ['--log-path', path.join(logs, 'weir.log')] });
    rmSync(logs, { recursive: true });
    writeFileSync(logs, 'in the way');
    const response = await fetch(`${weir.adminUrl}/reopen_logs`, { method: 'POST' });
    assert.equal(response.status, 200);
    const { code, stderr } = await weir.stop();
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  });

  it('whose reader has gone does not disturb it', async (t) => {
    const descriptors = { stderr: await deadPipe(t, 'gone') };
    await using weir = await startWeir({ configYaml: CONFIG, descriptors });
    await flood(weir);
    assert.equal((await weir.stop()).code, 0);
  });

  it('whose reader stalls holds up neither requests nor the end; the gap is told of, and counted', async (t) => {
    const fifo = await makeFifo(t, 'stalled');
    fifo.openReader();
    await using weir = await startWeir({ configYaml: CONFIG, descriptors: { stderr: fifo.openWriter() } });
    await floodUntilDropped(weir);
    let text = '';
    const gap = await untilMatch(/\[warning\]\[main\] \[:\] (\d+) lines are missing here/, () => {
      text += fifo.read();
      return text;
    });
    assert.equal(await weir.stat('server.dropped_log_lines'), Number(gap[1]));
    await floodUntilDropped(weir);
    assert.equal((await weir.stop()).code, 0);
  });

  it('is nowhere when standard error is closed', async () => {
    const file = path.join(folder, 'closed.yaml');
    writeFileSync(file, CONFIG);
    const address = path.join(folder, 'closed-address');
    const stop = `until [ -s ${address} ] || ! kill -0 $!; do sleep 0.05; done; kill $!; wait $!`;
    const { code, stdout } = await sh(
      `"$0" "$@" --disable-hot-restart --concurrency 1 -c ${file} --admin-address-path ${address} 2>&- & ${stop}; echo "code $?"`,
    );
    assert.deepEqual({ code, stdout }, { code: 0, stdout: 'code 0\n' });
  });
});

/** Runs the program in a shell: as `"$0" "$@"`. */
function sh(script: string): Promise<ExitResult> {
  const flags = ['--disable-warning=ExperimentalWarning', '--enable-source-maps'];
  return runProgram('sh', ['-c', script, process.execPath, ...flags, MAIN]);
}

/** Thread, time and text. */
function linesOf(text: string): string[][] {
  const whole = text.slice(0, text.lastIndexOf('\n'));
  return whole.split('\n').map((line) => /^(\d+) (\d+) (.*)$/.exec(line)?.slice(1) ?? ['', '', line]);
}

async function untilMatch(pattern: RegExp, read: () => string): Promise<RegExpExecArray> {
  await untilEqual(true, () => pattern.test(read()), String(pattern));
  return pattern.exec(read())!;
}

describe('what the program prints', () => {
  const good = path.join(folder, 'good.yaml');
  const bad = path.join(folder, 'bad.yaml');
  writeFileSync(good, CONFIG);
  writeFileSync(bad, 'nod: {}');
  const questions: readonly { readonly name: string; readonly args: readonly string[]; readonly code: number }[] = [
    { name: '--help', args: ['--help'], code: 0 },
    { name: '--version', args: ['--version'], code: 0 },
    { name: 'a good verdict', args: ['--mode', 'validate', '-c', good], code: 0 },
    { name: 'a bad verdict', args: ['--mode', 'validate', '-c', bad], code: 1 },
    { name: 'the refusal of a bad option', args: ['--nonsense'], code: 1 },
  ];

  for (const { name, args, code } of questions) {
    it(`changes no exit code when nobody reads it: ${name}`, async (t) => {
      const pipe = await deadPipe(t, `dead-${name.replaceAll(' ', '-')}`);
      const withoutStdout = await runWeir(args, { descriptors: { stdout: pipe } });
      assert.equal(withoutStdout.code, code);
      assert.doesNotMatch(withoutStdout.stderr, TRACE);
      assert.equal((await runWeir(args, { descriptors: { stderr: pipe } })).code, code);
      const closed = await sh(`"$0" "$@" ${args.join(' ')} >&- 2>&-; echo "code $?"`);
      assert.equal(closed.stdout, `code ${code}\n`);
    });
  }

  for (const option of ['--help', '--version', '--print-schema', `--mode validate -c ${good} -l off`]) {
    it(`is a failure when the disk is full: ${option}`, async () => {
      const { code, stderr } = await sh(`exec "$0" "$@" ${option} > /dev/full`);
      assert.deepEqual([code, stderr], [1, 'error: standard output: ENOSPC: no space left on device, write\n']);
    });
  }

  it('waits for a reader that takes its time', async (t) => {
    const fifo = await makeFifo(t, 'pager');
    fifo.openReader();
    const file = path.join(folder, 'long.yaml');
    writeFileSync(file, Array.from({ length: 900 }, (_, at) => `wrong_${'x'.repeat(100)}_${at}: 1\n`).join(''));
    const ended = runWeir(['--mode', 'validate', '-c', file], { descriptors: { stderr: fifo.openWriter() } });
    let text = '';
    const hasLastFault = (): boolean => {
      text += fifo.read();
      return text.includes('_899');
    };
    await untilEqual(true, hasLastFault, 'the last fault is there');
    assert.equal((await ended).code, 1);
  });
});
