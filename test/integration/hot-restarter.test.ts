// The command weir-hot-restarter, as a service manager or an operator runs it.

import assert from 'node:assert/strict';
import { mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { collectOutput, type ExitResult, startProgram } from '../support/child-process.ts';
import { untilEqual } from '../support/eventually.ts';
import { Fifo } from '../support/fifo.ts';
import { PORTS, RestartRow } from '../support/restart-row.ts';
import { UnixReceiver } from '../support/unix-receiver.ts';

interface Restarter {
  readonly exited: Promise<ExitResult>;
  kill(signal: NodeJS.Signals): void;
  /** @param times that it has to stand there. */
  untilSaid(text: string, times?: number): Promise<void>;
  /** Processes by restart epoch. */
  pids(): number[];
}

/** By the name that npm would link. */
function restarterCommand(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-restarter-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const command = path.join(folder, 'weir-hot-restarter');
  symlinkSync(path.join(PACKAGE_ROOT, 'bin/weir'), command);
  return command;
}

function startRestarter(t: TestContext, args: readonly string[], env: Record<string, string> = {}): Restarter {
  const program = startProgram(restarterCommand(t), args, { env });
  const { output, exited } = collectOutput(program);
  return {
    exited,
    kill: (signal) => void program.kill(signal),
    untilSaid: (text, times = 1) =>
      untilEqual(true, () => output.stderr.split(text).length > times, `"${text}" in the output`).catch((error) => {
        throw new Error(output.stderr, { cause: error });
      }),
    pids: () => [...output.stderr.matchAll(/restart epoch \d+ is process (\d+)/g)].map(([, pid]) => Number(pid)),
  };
}

function weirArguments(row: RestartRow, file: string): string[] {
  writeFileSync(file, JSON.stringify(row.bootstrap()));
  return ['-c', file, '--base-id', String(row.baseId), '--concurrency', '1', '--drain-time-s', '1'];
}

test('restarts on SIGHUP, serves on when that fails, and ends on SIGTERM', async (t) => {
  await using row = await RestartRow.open();
  await using manager = await UnixReceiver.open();
  const file = path.join(row.folder, 'bootstrap.json');
  const args = weirArguments(row, file);
  const restarter = startRestarter(t, ['--', 'weir', ...args], { NOTIFY_SOCKET: manager.path });
  await restarter.untilSaid('restart epoch 0 is ready');
  await manager.until(1);
  const serves = async (epoch: number): Promise<void> => {
    assert.equal((await fetch(`http://${row.ip}:${PORTS.http}/`)).status, 200);
    const stats = await (await fetch(`http://${row.ip}:${PORTS.admin}/stats?filter=hot_restart_epoch`)).text();
    assert.equal(stats, `server.hot_restart_epoch: ${epoch}\n`);
  };
  await serves(0);
  restarter.kill('SIGHUP');
  // Meant for the one that is being started, too, which it must not end.
  restarter.kill('SIGUSR1');
  await restarter.untilSaid('restart epoch 1 is ready');
  await manager.until(3);
  assert.match(manager.datagrams[1]!, /^RELOADING=1\nMONOTONIC_USEC=\d+$/);
  const settled = (at: number): string[] => manager.datagrams[at]!.split('\n');
  assert.deepEqual(settled(0), ['READY=1', 'STATUS=restart epoch 0 is ready']);
  assert.deepEqual(settled(2), ['READY=1', 'STATUS=restart epoch 1 is ready']);
  await serves(1);
  writeFileSync(file, '{"no_such_field": 1}');
  restarter.kill('SIGHUP');
  const failure = 'restart epoch 2 has not taken over; the process before it serves on';
  await restarter.untilSaid(failure);
  await manager.until(5);
  assert.deepEqual(settled(4), ['READY=1', `STATUS=${failure}`]);
  await serves(1);
  restarter.kill('SIGTERM');
  assert.equal((await restarter.exited).code, 0);
  for (const pid of restarter.pids()) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
});

test('has the process before serve again when the newest dies, and ends with 1 when nobody is left', async (t) => {
  await using row = await RestartRow.open();
  const restarter = startRestarter(t, ['weir', ...weirArguments(row, path.join(row.folder, 'bootstrap.json'))]);
  await restarter.untilSaid('restart epoch 0 is ready');
  restarter.kill('SIGHUP');
  await restarter.untilSaid('restart epoch 1 is ready');
  const [parent, child] = restarter.pids();
  process.kill(child!, 'SIGKILL');
  await restarter.untilSaid('restart epoch 0 is ready', 2);
  assert.equal((await fetch(`http://${row.ip}:${PORTS.http}/`)).status, 200);
  // The number of the lost one is given once more.
  restarter.kill('SIGHUP');
  await restarter.untilSaid('restart epoch 1 is ready', 2);
  const next = restarter.pids()[2]!;
  await restarter.untilSaid('has taken over from the process of restart epoch 0', 2);
  process.kill(parent!, 'SIGKILL');
  await restarter.untilSaid('it had been taken over from already');
  process.kill(next, 'SIGKILL');
  const { code, stderr } = await restarter.exited;
  assert.equal(code, 1);
  assert.match(stderr, /the process of restart epoch 1 has ended: signal SIGKILL\n.*nobody serves any more/);
});

for (const [what, open] of [
  ['the disk is full', async () => openSync('/dev/full', 'w')],
  [
    'its reader has gone',
    async (t: TestContext) => {
      const folder = mkdtempSync(path.join(tmpdir(), 'weir-log-'));
      t.after(() => rmSync(folder, { recursive: true }));
      const fifo = await Fifo.make(path.join(folder, 'log'));
      fifo.openReader();
      const writer = fifo.openWriter();
      fifo.closeReader();
      return writer;
    },
  ],
] as const) {
  test(`goes on where nobody takes what it says: ${what}`, async (t) => {
    await using row = await RestartRow.open();
    await using manager = await UnixReceiver.open();
    const args = weirArguments(row, path.join(row.folder, 'bootstrap.json'));
    const stderr = await open(t);
    const program = startProgram(restarterCommand(t), ['weir', ...args], {
      env: { NOTIFY_SOCKET: manager.path },
      descriptors: { stderr },
    });
    const { exited } = collectOutput(program);
    await manager.until(1);
    program.kill('SIGHUP');
    await manager.until(3);
    assert.equal(manager.datagrams[2], 'READY=1\nSTATUS=restart epoch 1 is ready');
    program.kill('SIGTERM');
    assert.equal((await exited).code, 0);
  });
}

for (const moment of ['is ready', 'is process']) {
  test(`takes its processes along when it is killed as soon as one ${moment}`, async (t) => {
    await using row = await RestartRow.open();
    const args = weirArguments(row, path.join(row.folder, 'bootstrap.json'));
    // Head of the group, which would be killed with it, stays another.
    const script = '"$@" & echo "the restarter is process $!" >&2; wait; exec sleep 1000';
    const program = startProgram('sh', ['-c', script, 'sh', restarterCommand(t), 'weir', ...args]);
    const { output } = collectOutput(program);
    const pidOf = (what: string): number => Number(new RegExp(`${what} is process (\\d+)`).exec(output.stderr)?.[1]);
    await untilEqual(true, () => output.stderr.includes(`restart epoch 0 ${moment}`), moment);
    process.kill(pidOf('the restarter'), 'SIGKILL');
    const isThere = (): boolean => {
      try {
        return process.kill(pidOf('restart epoch 0'), 0);
      } catch {
        return false;
      }
    };
    await untilEqual(false, isThere, 'whether the process is there');
    assert.equal(program.exitCode, null);
    program.kill('SIGKILL');
  });
}

test('says what it is for, and what it cannot start', async (t) => {
  const help = await startRestarter(t, ['--help']).exited;
  assert.equal(help.code, 0);
  assert.match(help.stdout, /^usage: weir-hot-restarter/);
  assert.equal((await startRestarter(t, []).exited).code, 1);
  const unknown = await startRestarter(t, ['/no/such/program']).exited;
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /cannot start \/no\/such\/program: spawn .*ENOENT/);
});
