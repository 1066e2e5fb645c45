// A process of the benchmark, bound to cores with taskset where the system has it. Knows what the process has cost:
// processor time and resident memory, as Linux' /proc tells them.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Also of a program that another one runs, at a fiftieth of its speed. */
const START_LIMIT_MS = 300_000;
const STOP_LIMIT_MS = 5000;
const POLL_MS = 5;
const KIB = 1024;
/** Fields of /proc/<pid>/stat behind the name, which may itself hold blanks. */
const USER_TICKS = 11;
const SYSTEM_TICKS = 12;

const hasTaskset = spawnSync('taskset', ['--version']).status === 0;
/** Processor time is told in these; 100 on every Linux that people run. */
const ticksPerSecond = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100;

/** Puts taskset in front of a command line. */
export function pinned(cores: string, command: readonly string[]): readonly string[] {
  return hasTaskset ? ['taskset', '-c', cores, ...command] : command;
}

export class PinnedProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  #errors = '';

  private constructor(command: readonly string[], env: Readonly<Record<string, string>>) {
    this.#child = spawn(command[0]!, command.slice(1), {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...env },
    });
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text;
    });
    this.#exited = once(this.#child, 'close');
  }

  /** Starts the command and resolves once something accepts connections on the port. */
  static async start(
    cores: string,
    command: readonly string[],
    port: number,
    env: Readonly<Record<string, string>> = {},
  ): Promise<PinnedProcess> {
    const started = new PinnedProcess(pinned(cores, command), env);
    await started.#untilAccepting(port, command.join(' '));
    return started;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Processor time of all threads and of child processes that still run, in seconds. */
  cpuSeconds(): number {
    return [this.pid, ...this.#children()].reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
  }

  /** Resident memory in bytes, child processes included. */
  residentBytes(): number {
    return [this.pid, ...this.#children()].reduce((sum, pid) => sum + residentBytesOf(pid), 0);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGTERM');
    const killer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_LIMIT_MS);
    await this.#exited;
    clearTimeout(killer);
  }

  #children(): number[] {
    const file = `/proc/${this.pid}/task/${this.pid}/children`;
    return readFileSync(file, 'utf8').split(' ').filter(Boolean).map(Number);
  }

  async #untilAccepting(port: number, what: string): Promise<void> {
    const giveUpAt = performance.now() + START_LIMIT_MS;
    while (performance.now() < giveUpAt && this.#child.exitCode === null) {
      if (await accepts(port)) return;
      await delay(POLL_MS);
    }
    await this.stop();
    throw new Error(`${what} does not serve port ${port}:\n${this.#errors}`);
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}

/** Processor time of one thread of a process, in seconds; the main thread has the number of the process. */
export function cpuSecondsOfThread(pid: number, tid: number): number {
  return cpuSecondsOf(`${pid}/task/${tid}`);
}

/** @param place of a process or thread below /proc. */
function cpuSecondsOf(place: number | string): number {
  const stat = readFileSync(`/proc/${place}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[USER_TICKS]) + Number(fields[SYSTEM_TICKS])) / ticksPerSecond;
}

export function residentBytesOf(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  return Number(match?.[1] ?? 0) * KIB;
}
