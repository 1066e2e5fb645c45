// The command weir-hot-restarter: `weir-hot-restarter [--] weir [options]`. SIGHUP has a new process take over, SIGTERM and SIGINT
// end all, SIGUSR1 goes on to all.

import { constants } from 'node:os';
import path from 'node:path';
import { SYSTEM_CLOCK } from '../base/clock.ts';
import { PACKAGE_ROOT } from '../base/package-root.ts';
import { SystemCalls } from '../base/system-calls.ts';
import { HotRestarter } from './restarter.ts';
import { ServiceManager } from './service-manager.ts';

const USAGE = `usage: weir-hot-restarter [--] <command> [arguments]

Runs the command, such as "weir -c my.yaml", with RESTART_EPOCH in its environment.
  SIGHUP           starts it once more, and that process takes over from the one before
  SIGTERM, SIGINT  end all
  SIGUSR1          goes on to all, which open their log files anew
`;

// Its end would be that of the service: a disk that is full, or a reader of the log that has gone, must not bring it about.
process.stderr.on('error', () => {});

function say(text: string): void {
  process.stderr.write(`weir-hot-restarter: ${text}\n`);
}

async function main(argv: readonly string[]): Promise<number> {
  const [command, ...args] = argv[0] === '--' ? argv.slice(1) : argv;
  if (command === undefined || command === '--help' || command === '-h') {
    process[command === undefined ? 'stderr' : 'stdout'].write(USAGE);
    return command === undefined ? 1 : 0;
  }
  const { NOTIFY_SOCKET, ...env } = process.env;
  const calls = SystemCalls.open();
  const manager = new ServiceManager(NOTIFY_SOCKET, calls);
  const restarter = new HotRestarter({
    command,
    // In the single executable both are one file, whatever it is called.
    file: command === 'weir' && process.getBuiltinModule('node:sea').isSea() ? process.execPath : undefined,
    args,
    // Where nobody has installed it, weir is the one beside this.
    env: { ...env, PATH: [env.PATH, path.join(PACKAGE_ROOT, 'bin')].filter(Boolean).join(path.delimiter) },
    clock: SYSTEM_CLOCK,
    say,
    onSettled: (how) => manager.ready(how),
  });
  const end = (): void => {
    manager.stopping();
    restarter.end();
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('SIGHUP', () => {
    manager.reloading();
    restarter.restart();
  });
  process.on('SIGUSR1', () => restarter.reopenLogs());
  // Node blocks it from its start on (src/process/signals.ts).
  calls?.unblockSignal(constants.signals.SIGUSR1);
  return await restarter.run();
}

process.exit(await main(process.argv.slice(2)));
