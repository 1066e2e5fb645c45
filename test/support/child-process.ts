// The programs that tests run; the only place in test/ that starts any. None outlives the test that needed it:
//
//   tests of the file over   what still runs is killed, so that it cannot keep the test process waiting
//   test process gone        beside each program waits a guardian, which kills it when its input ends
//
// A program is the head of a process group of its own, and is killed with all that it has started itself.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { after } from 'node:test';

/** Far beyond what any program takes that ends by itself: one that runs this long has failed its test. */
const RUN_LIMIT_MS = 180_000;
/** Its input is a pipe from the test process, which the system closes at the latest when that process is gone. */
const GUARDIAN = 'read -r _; kill -s KILL -- "-$1"';

export type Program = ChildProcessByStdio<null, Readable, Readable>;
/** One that is told things while it runs. */
export type SpokenProgram = ChildProcessByStdio<Writable, Readable, Readable>;
/** Without the streams that it has got as descriptors. */
type Streams = Partial<Pick<Program, 'stdout' | 'stderr'>>;

export interface ProgramOptions {
  readonly cwd?: string;
  /** Set beside those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Descriptors of this process that the program gets for its output; pipes that are read, where absent. */
  readonly descriptors?: { readonly stdout?: number; readonly stderr?: number };
}

export interface ExitResult {
  /** Exit code; null when a signal ended the process. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

const running = new Set<Program | SpokenProgram>();

// The soak uses this without a test runner, and ends its programs itself.
if (process.env.NODE_TEST_CONTEXT !== undefined) after(() => running.forEach(killGroup));

/** Starts a program without input whose output is read as text. */
export function startProgram(command: string, args: readonly string[], options: ProgramOptions = {}): Program {
  const { stdout, stderr } = options.descriptors ?? {};
  const program = start(command, args, options, ['ignore', stdout ?? 'pipe', stderr ?? 'pipe']) as Program;
  const streams: Streams = program;
  streams.stdout?.setEncoding('utf8');
  streams.stderr?.setEncoding('utf8');
  return program;
}

/** Starts a program whose output is read as bytes, and which has an input. */
export function startSpokenProgram(command: string, args: readonly string[], cwd: string): SpokenProgram {
  return start(command, args, { cwd }, ['pipe', 'pipe', 'pipe']) as SpokenProgram;
}

function start(
  command: string,
  args: readonly string[],
  { cwd, env }: ProgramOptions,
  stdio: (number | 'ignore' | 'pipe')[],
): Program | SpokenProgram {
  const program = spawn(command, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...process.env, ...env },
    stdio,
    detached: true,
  }) as Program;
  if (program.pid === undefined) return program;
  const guardian = guard(program.pid);
  running.add(program);
  program.once('exit', () => {
    // Whatever it has left behind goes, too.
    killGroup(program);
    running.delete(program);
    guardian.kill('SIGKILL');
  });
  return program;
}

/**
 * Runs a program to its end.
 * @throws Error when it cannot be started, or has not ended after three minutes; it is killed then.
 */
export async function runProgram(
  command: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<ExitResult> {
  const program = startProgram(command, args, options);
  const { output, exited } = collectOutput(program);
  let isOverdue = false;
  const limit = setTimeout(() => {
    isOverdue = true;
    killGroup(program);
  }, RUN_LIMIT_MS);
  try {
    const result = await exited;
    if (!isOverdue) return result;
  } finally {
    clearTimeout(limit);
  }
  const written = `${output.stdout}${output.stderr}`;
  throw new Error(`${command} ${args.join(' ')} has not ended after ${RUN_LIMIT_MS} ms:\n${written}`);
}

/** Everything a program writes, as far as it has written it, and at its end. */
export function collectOutput(program: Program): {
  readonly output: { stdout: string; stderr: string };
  readonly exited: Promise<ExitResult>;
} {
  const output = { stdout: '', stderr: '' };
  const streams: Streams = program;
  for (const name of ['stdout', 'stderr'] as const) {
    streams[name]?.on('data', (text: string) => {
      output[name] += text;
    });
  }
  // 'close' comes after both streams have ended, so the output is whole.
  const exited = once(program, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
    ...output,
  }));
  return { output, exited };
}

function guard(group: number) {
  const guardian = spawn('sh', ['-c', GUARDIAN, 'guardian', String(group)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // Whoever kills the test process with its group must not take the guardian along.
    detached: true,
  });
  guardian.unref();
  (guardian.stdin as unknown as { unref(): void }).unref();
  guardian.stdin.on('error', () => {});
  return guardian;
}

function killGroup({ pid }: Program | SpokenProgram): void {
  try {
    process.kill(-pid!, 'SIGKILL');
  } catch {
    // The last of it has ended.
  }
}
