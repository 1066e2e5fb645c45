// Starts a compiled program of weir under the pinned runtime, from the commands in bin/. Where this Node can replace its
// own process (execve), the runtime takes its place; otherwise the runtime is a child, signals are passed on, and its
// end becomes ours. Plain JavaScript for Node 18.

import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import path from 'node:path';
import { NO_RUNTIME_MESSAGE, PACKAGE_ROOT, runtimePath } from './runtime.mjs';

/** Stack traces name the sources; the maps are read when the first one is printed. `npm start` has the same flags. */
const NODE_FLAGS = ['--disable-warning=ExperimentalWarning', '--enable-source-maps'];
const FORWARDED_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGQUIT'];

/**
 * Never returns control to the caller's exit code.
 * @param command  as the user knows it; starts every message.
 * @param program  path below dist/.
 * @param prepare  called with the runtime's path before it starts; returns what is wrong, or undefined.
 */
export function launch(command, program, prepare = () => undefined) {
  const fail = (text) => {
    process.stderr.write(`${command}: ${text}\n`);
    process.exit(1);
  };
  const main = path.join(PACKAGE_ROOT, 'dist', program);
  const runtime = runtimePath() ?? fail(NO_RUNTIME_MESSAGE);
  if (!existsSync(main)) fail(`${main} is missing; in a clone, run "npm run build" once`);
  const fault = prepare(runtime);
  if (fault) fail(fault);
  const args = [...NODE_FLAGS, main, ...process.argv.slice(2)];
  if (typeof process.execve === 'function') process.execve(runtime, [runtime, ...args], environment());
  else runAsChild(runtime, args, fail);
}

function runAsChild(command, args, fail) {
  const child = spawn(command, args, { stdio: 'inherit', env: environment() });
  const forward = (signal) => {
    // Ctrl-C reaches the whole foreground group, the child included; a second one would mean something else to it.
    if (signal === 'SIGINT' && process.stdin.isTTY) return;
    child.kill(signal);
  };
  for (const signal of FORWARDED_SIGNALS) process.on(signal, forward);
  child.on('error', (error) => fail(`${command}: ${error.message}`));
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    for (const forwarded of FORWARDED_SIGNALS) process.removeListener(forwarded, forward);
    process.kill(process.pid, signal);
  });
}

/** Compiled code kept from the last start saves a third of this one; where it cannot be kept, all is compiled anew. */
function environment() {
  const folder = path.join(PACKAGE_ROOT, 'build');
  try {
    accessSync(folder, constants.W_OK);
  } catch {
    return process.env;
  }
  return { NODE_COMPILE_CACHE: path.join(folder, 'compile-cache'), ...process.env };
}
