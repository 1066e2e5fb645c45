// Runs the real program for a test: one process per weir, real sockets, no shared state. `npm test` has built dist/ and
// says so in WEIR_TEST_MAIN, which is quicker to start and what is shipped; a test run by itself uses the sources.
//
//   await using weir = await startWeir({ configYaml });   // resolves once the server is live
//   await fetch(`${weir.adminUrl}/stats`);                // stopped at the end of the scope

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { MAIN_FLAG } from '../../src/process/young-generation.ts';
import {
  collectOutput,
  type ExitResult,
  type Program,
  type ProgramOptions,
  runProgram,
  startProgram,
} from './child-process.ts';
import { untilEqual } from './eventually.ts';

const MAIN = path.join(import.meta.dirname, '../..', process.env.WEIR_TEST_MAIN ?? 'src/main.ts');
const NODE_FLAGS = [MAIN_FLAG, '--disable-sigusr1', '--disable-warning=ExperimentalWarning', '--enable-source-maps'];
/** Far beyond any real start: a test that waits this long has failed. */
const START_LIMIT_MS = 90_000;
const ENDS_AT_ONCE = /^--(?:version|help|hot-restart-version)$/;
const HOT_RESTART_OPTIONS = /^--(?:base-id|use-dynamic-base-id|disable-hot-restart)/;
/** After this the process is killed, so that no test leaves one behind, and its test has failed. */
const STOP_LIMIT_MS = 90_000;
/** /ready is polled: a listener that comes up later has no event of its own outside the process. */
const POLL_MS = 5;

export interface WeirOptions {
  /** Bootstrap text, written to a file of its own; it needs an `admin` block, best with port 0. */
  readonly configYaml?: string;
  /** Name of that file; the extension chooses the format. Default `bootstrap.yaml`. */
  readonly configName?: string;
  /** Further arguments. `--concurrency 1` is the default when they do not name another, */
  readonly args?: readonly string[];
  /** unless weir is to find out by itself how many workers it wants. */
  readonly choosesConcurrency?: boolean;
  /** A command that runs another, `['taskset', '-c', '0']`. */
  readonly runBy?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Descriptors of this process that weir gets for its output; `output` has nothing of these. */
  readonly descriptors?: NonNullable<ProgramOptions['descriptors']>;
  /** Descriptors that it may have open; those of this process by default. */
  readonly descriptorLimit?: number;
}

export interface ListenerAddress {
  readonly ip: string;
  readonly port: number;
}

export interface WeirProcess extends AsyncDisposable {
  readonly pid: number;
  /** `http://127.0.0.1:43210`, without a final slash. */
  readonly adminUrl: string;
  /** Everything written so far. */
  readonly output: { stdout: string; stderr: string };
  readonly exited: Promise<ExitResult>;
  /** Bound addresses by listener name, as GET /listeners gives them. */
  listeners(): Promise<Map<string, ListenerAddress>>;
  /** Text of GET `path` from the admin interface; throws unless it answers 200. */
  admin(path: string): Promise<string>;
  /** Value of one counter or gauge; undefined when there is none of that name. */
  stat(name: string): Promise<number | undefined>;
  /**
   * Resolves when the stat has the value. A worker may have answered a client, or closed its connection, before it
   * counts that, so a test never reads a stat of a worker just once.
   */
  untilStat(name: string, value: number): Promise<void>;
  /** Sends the signal, waits for the end, removes the files. Safe to call twice. */
  stop(signal?: NodeJS.Signals): Promise<ExitResult>;
}

interface Child {
  readonly process: Program;
  readonly output: { stdout: string; stderr: string };
  readonly exited: Promise<ExitResult>;
}

/**
 * Runs weir to its end: for --version, --mode validate and everything that should fail.
 * @throws Error when it has not ended after three minutes.
 */
export async function runWeir(
  args: readonly string[],
  options: Pick<WeirOptions, 'env' | 'descriptors'> = {},
): Promise<ExitResult> {
  const [command, ...rest] = programOf(args);
  return runProgram(command!, rest, options);
}

/** The command that runs weir, for a test that starts it in its own way. */
export function programOf(args: readonly string[]): readonly string[] {
  return [process.execPath, ...NODE_FLAGS, MAIN, ...inOwnPlace(args)];
}

/** Starts weir and resolves once GET /ready answers LIVE; throws with the program's output when it ends before. */
export async function startWeir(options: WeirOptions): Promise<WeirProcess> {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-test-'));
  const addressFile = path.join(folder, 'admin-address');
  const args = [...NODE_FLAGS, MAIN, '--admin-address-path', addressFile, ...weirArguments(options, folder)];
  const command = [...(options.runBy ?? []), process.execPath, ...args];
  if (options.descriptorLimit !== undefined) command.unshift(...limitedTo(options.descriptorLimit));
  const program = startProgram(command[0]!, command.slice(1), options);
  const child: Child = { process: program, ...collectOutput(program) };
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<ExitResult> => {
    const result = await stopChild(child, signal);
    rmSync(folder, { recursive: true, force: true });
    return result;
  };
  try {
    const adminUrl = `http://${await untilLive(child, addressFile)}`;
    return weirProcess(child, adminUrl, stop);
  } catch (error) {
    await stop('SIGKILL');
    throw error;
  }
}

/** A command that takes another as its arguments. Node raises the soft limit to the hard one, so both are set. */
function limitedTo(descriptors: number): readonly string[] {
  return ['sh', '-c', `ulimit -n ${descriptors} && exec "$@"`, 'sh'];
}

function weirArguments(options: WeirOptions, folder: string): string[] {
  const args = inOwnPlace(options.args ?? []);
  const isOurChoice = options.choosesConcurrency !== true && !args.some((arg) => arg.startsWith('--concurrency'));
  if (isOurChoice) args.push('--concurrency', '1');
  if (options.configYaml !== undefined) {
    const file = path.join(folder, options.configName ?? 'bootstrap.yaml');
    writeFileSync(file, options.configYaml);
    args.push('-c', file);
  }
  return args;
}

/** Only one process of a machine may have the default place of hot restarts: tests do without unless they say where. */
function inOwnPlace(args: readonly string[]): string[] {
  const serves = !args.some((arg) => ENDS_AT_ONCE.test(arg));
  return serves && !args.some((arg) => HOT_RESTART_OPTIONS.test(arg)) ? [...args, '--disable-hot-restart'] : [...args];
}

async function untilLive(child: Child, addressFile: string): Promise<string> {
  const giveUpAt = performance.now() + START_LIMIT_MS;
  let ended: ExitResult | undefined;
  void child.exited.then((result) => {
    ended = result;
  });
  while (performance.now() < giveUpAt) {
    if (ended)
      throw new Error(`weir ended with code ${ended.code} before it was live:\n${ended.stdout}${ended.stderr}`);
    const address = readIfPresent(addressFile);
    if (address !== '' && (await isLive(address))) return address;
    await delay(POLL_MS);
  }
  throw new Error(`weir was not live after ${START_LIMIT_MS} ms:\n${child.output.stdout}${child.output.stderr}`);
}

function readIfPresent(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

async function isLive(address: string): Promise<boolean> {
  try {
    const response = await fetch(`http://${address}/ready`);
    await response.text();
    return response.status === 200;
  } catch {
    return false;
  }
}

async function stopChild(child: Child, signal: NodeJS.Signals): Promise<ExitResult> {
  child.process.kill(signal);
  let isOverdue = false;
  const limit = setTimeout(() => {
    isOverdue = true;
    child.process.kill('SIGKILL');
  }, STOP_LIMIT_MS);
  const result = await child.exited;
  clearTimeout(limit);
  if (!isOverdue) return result;
  throw new Error(`weir had not ended ${STOP_LIMIT_MS} ms after ${signal}:\n${result.stdout}${result.stderr}`);
}

function weirProcess(child: Child, adminUrl: string, stop: WeirProcess['stop']): WeirProcess {
  const admin = async (adminPath: string): Promise<string> => {
    const response = await fetch(`${adminUrl}${adminPath}`);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`GET ${adminPath} answered ${response.status}: ${text}`);
    return text;
  };
  const stat = async (name: string): Promise<number | undefined> => parseStat(await admin('/stats'), name);
  return {
    pid: child.process.pid ?? 0,
    adminUrl,
    output: child.output,
    exited: child.exited,
    admin,
    listeners: async () => parseListeners(await admin('/listeners')),
    stat,
    untilStat: (name, value) => untilEqual(value, () => stat(name), name),
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop();
    },
  };
}

/** Reads lines such as `main::127.0.0.1:10000` and `main::[::1]:10000`. */
function parseListeners(text: string): Map<string, ListenerAddress> {
  const listeners = new Map<string, ListenerAddress>();
  for (const line of text.split('\n')) {
    const match = /^(.*)::\[?([^[\]]+?)\]?:(\d+)$/.exec(line);
    if (match) listeners.set(match[1]!, { ip: match[2]!, port: Number(match[3]) });
  }
  return listeners;
}

function parseStat(text: string, name: string): number | undefined {
  const prefix = `${name}: `;
  const line = text.split('\n').find((candidate) => candidate.startsWith(prefix));
  return line === undefined ? undefined : Number(line.slice(prefix.length));
}
