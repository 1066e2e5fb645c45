// SIGUSR1 at every moment of the life of weir, from the first command of its launcher to its end: it reopens the log, and
// neither ends the process nor opens Node's debugger. Before that command no program can know of a signal. Linux.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { collectOutput, type ExitResult, type Program, startProgram } from '../support/child-process.ts';
import { untilEqual } from '../support/eventually.ts';

const SIGUSR1_BIT = 1n << 9n;
const BOOTSTRAP = 'admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }';
/** Between two signals: far less than any step of the start takes. */
const GAP_MS = 0.5;

const { start } = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')).scripts;
/** What becomes the process that the signals go to. */
const WAYS = [
  { name: 'the command', command: [path.join(PACKAGE_ROOT, 'bin/weir')] },
  // As npm runs a script: further arguments stand behind it.
  { name: 'npm start', command: ['sh', '-c', `${start} "$@"`, 'sh'] },
];

/** Whether the launcher's shell has begun to ignore the signal, or what it has become handles it already. */
function isSafe({ pid }: Program): boolean {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return ['SigIgn', 'SigCgt'].some((field) => {
    const signals = new RegExp(`^${field}:\\s*([0-9a-f]+)$`, 'm').exec(status)?.[1] ?? '0';
    return (BigInt(`0x${signals}`) & SIGUSR1_BIT) !== 0n;
  });
}

/** Sends the signal again and again, until it is told to stop or the process has ended. */
function hammer(program: Program): { readonly sent: () => number; stop(): Promise<void> } {
  let sent = 0;
  let isStopped = false;
  const done = (async (): Promise<void> => {
    for (; !isStopped && program.kill('SIGUSR1'); sent += 1) await delay(GAP_MS);
  })();
  return {
    sent: () => sent,
    stop: () => {
      isStopped = true;
      return done;
    },
  };
}

interface Running {
  readonly program: Program;
  readonly log: string;
  readonly exited: Promise<ExitResult>;
  /** The admin interface is there: the program has started, the log is open. */
  untilStarted(): Promise<void>;
}

function startUnderFire(t: TestContext, command: readonly string[]): Running {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-early-signals-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [log, address] = ['weir.log', 'admin-address'].map((name) => path.join(folder, name)) as [string, string];
  const options = [
    '--disable-hot-restart',
    '--concurrency',
    '1',
    '--config-yaml',
    BOOTSTRAP,
    '--log-path',
    log,
    '--admin-address-path',
    address,
  ];
  const [file, ...args] = [...command, ...options];
  const program = startProgram(file!, args, { cwd: PACKAGE_ROOT });
  const { exited } = collectOutput(program);
  let hasEnded = false;
  void exited.then(() => {
    hasEnded = true;
  });
  const hasStarted = (): boolean => hasEnded || (existsSync(address) && statSync(address).size > 0);
  return { program, log, exited, untilStarted: () => untilEqual(true, hasStarted, 'the start') };
}

describe('SIGUSR1 from the first command to the end', () => {
  it('is ignored by the shell of npm start before it does anything else', () => {
    assert.ok(start.startsWith("trap '' USR1; "), start);
  });

  for (const { name, command } of WAYS) {
    it(`reopens the log and does nothing else: ${name}`, async (t) => {
      const { program, log, exited, untilStarted } = startUnderFire(t, command);
      while (!isSafe(program)) await delay(0);
      const fire = hammer(program);
      await untilStarted();
      // Beside other programs this one may have sent few by then.
      await untilEqual(true, () => fire.sent() > 10, 'more signals');
      renameSync(log, `${log}.1`);
      await untilEqual(true, () => existsSync(log), 'a new log');
      program.kill('SIGTERM');
      const { code, signal, stdout, stderr } = await exited;
      await fire.stop();
      assert.deepEqual({ code, signal, stdout, stderr }, { code: 0, signal: null, stdout: '', stderr: '' });
    });
  }
});
