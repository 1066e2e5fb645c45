// --mode serve: from a bootstrap to a running proxy and, on a signal or /quitquitquit, back. Main thread.
// What takes time at the start goes on side by side: the workers load their code while this thread loads the
// configuration, and the admin interface is loaded while the workers open their listeners.

import { type Clock, SYSTEM_CLOCK } from '../base/clock.ts';
import { errorMessage, stackFrames, WeirError } from '../base/errors.ts';
import { FaultBoundary } from '../base/fault-boundary.ts';
import { collectGarbage } from '../base/garbage.ts';
import { SystemCalls } from '../base/system-calls.ts';
import { formatVersion, revisionNumber, type Version } from '../base/version.ts';
import { hasConfiguration, type ServerOptions } from '../cli/index.ts';
import type { LoadBootstrapResult } from '../config/index.ts';
import { Server, WorkerPool } from '../control-plane/index.ts';
import { type Demo, startDemo } from '../demo/index.ts';
import { loadStatSinkKinds } from '../extensions/stat-sink-registry.ts';
import { LogDestination, type Loggers, logTarget } from '../log/index.ts';
import type { ProcessLog } from './log.ts';
import { print } from './print.ts';
import { handleSignals, letReopeningIn } from './signals.ts';

export interface ServeParts {
  readonly options: ServerOptions;
  readonly version: Version;
  readonly log: ProcessLog;
}

/** Requests and connections that still run this long after the order to stop are cut off. */
const SHUTDOWN_GRACE_MS = 10_000;

/** Serves until it is told to stop. @returns the exit code. */
export async function serve(parts: ServeParts): Promise<number> {
  const { options, version, log } = parts;
  const { loggers } = log;
  const stopOrder = Promise.withResolvers<void>();
  const accessLogs: LogDestination[] = [];
  const faults = new FaultBoundary((where, error) => {
    loggers.get('main').error(`fault in ${where}: ${String(error)}`, stackFrames(error));
  });
  const clock = faults.clock(SYSTEM_CLOCK);
  let reopenEventLogs = (): void => {};
  const reopenLogs = (): void => {
    reopenDestinations(loggers, [log.destination, ...accessLogs]);
    workers.reopenAccessLogs();
    reopenEventLogs();
  };
  const releaseSignals = handleSignals(
    { stop: stopOrder.resolve, stopAtOnce: () => process.exit(1), reopenLogs },
    SYSTEM_CLOCK,
    faults,
  );
  // Timers do not keep the process alive, and workers come and go; until the order to stop comes, this does.
  const keepAlive = new MessageChannel().port1;
  keepAlive.ref();
  // First of all threads, because the configuration of the demo waits for its ports.
  const starting = hasConfiguration(options) ? undefined : startDemo();
  // Awaited below; until then a failure of it is not one that nobody handles.
  starting?.catch(() => {});
  const workers = new WorkerPool({ concurrency: options.concurrency, loggers, clock, faults });
  let demo: Demo | undefined;
  try {
    const { loadAndReport, prepareLoading } = await import('./load.ts');
    prepareLoading();
    demo = await starting;
    const effective = demo ? { ...options, configYaml: demo.configYaml } : options;
    const loaded = loadAndReport(effective, loggers, version);
    if (!loaded.bootstrap) return 1;
    // What it was read from is many times as large, and what is made of it now takes its room.
    collectGarbage();
    const announce = (): void => void (demo && print('stdout', demo.describe(), 'serve'));
    const onServer = ({ clusterManager }: Server): void => {
      reopenEventLogs = () => clusterManager.reopenEventLogs();
    };
    const serving = { loaded, workers, accessLogs, faults, clock, stopOrder, reopenLogs, announce, onServer };
    await run({ ...parts, options: effective }, serving);
    return 0;
  } catch (error) {
    // Anything but a WeirError is a bug, and its stack is what helps to find it.
    const isExpected = error instanceof WeirError;
    const text = isExpected ? error.message : String(error);
    loggers.get('main').critical(`cannot serve: ${text}`, isExpected ? '' : stackFrames(error));
    return 1;
  } finally {
    await workers.stop(SHUTDOWN_GRACE_MS);
    await demo?.close();
    for (const accessLog of accessLogs) accessLog.close();
    releaseSignals();
    keepAlive.close();
    loggers.get('main').info('exiting');
  }
}

interface RunParts {
  readonly loaded: LoadBootstrapResult;
  readonly workers: WorkerPool;
  /** Opened here, closed by the caller. */
  readonly accessLogs: LogDestination[];
  readonly faults: FaultBoundary;
  readonly clock: Clock;
  readonly stopOrder: PromiseWithResolvers<void>;
  readonly reopenLogs: () => void;
  /** Called once the server has been made. */
  readonly onServer: (server: Server) => void;
  /** Called once the server is live. */
  readonly announce: () => void;
}

/** @param text `name:value`, as the command line has checked it. */
function statTag(text: string): { name: string; value: string } {
  const colon = text.indexOf(':');
  return { name: text.slice(0, colon), value: text.slice(colon + 1) };
}

async function run(parts: ServeParts, runParts: RunParts): Promise<void> {
  const { loaded, workers, accessLogs, faults, clock, stopOrder, reopenLogs, announce, onServer } = runParts;
  const { options, version, log } = parts;
  const { loggers } = log;
  const bootstrap = loaded.bootstrap!;
  const statSinkKinds = await loadStatSinkKinds(bootstrap.statSinks);
  const server = new Server({
    bootstrap,
    workers,
    loggers,
    clock,
    faults,
    revisionNumber: revisionNumber(version),
    versionText: formatVersion(version),
    unknownFields: loaded.unknownFields,
    statSinkKinds,
    statTags: options.statsTag.map(statTag),
    fileFlushIntervalMs: options.fileFlushIntervalMsec,
    drainMs: options.drainTimeS * 1000,
    drainStrategy: options.drainStrategy,
  });
  onServer(server);
  const openAdmin = async (systemCalls: SystemCalls | undefined): Promise<{ close(): Promise<void> } | undefined> => {
    if (!bootstrap.admin) {
      loggers.get('main').warning('No admin address given, so no admin HTTP server started.');
      return undefined;
    }
    const { accessLogPath } = bootstrap.admin;
    if (accessLogPath !== '') accessLogs.push(openAccessLog(accessLogPath, loggers));
    const { startAdmin } = await import('./admin.ts');
    const quit = stopOrder.resolve;
    const accessLog = accessLogs[0];
    const running = { server, workers, clock, options, version, loggers, systemCalls, faults: loaded.faults };
    return startAdmin({ ...running, accessLog, quit, reopenLogs });
  };
  const started = server.start();
  // The workers are at work now.
  const systemCalls = SystemCalls.open();
  letReopeningIn(systemCalls);
  const admin = openAdmin(systemCalls);
  try {
    await Promise.race([Promise.all([started, admin]), stopOrder.promise]);
    if (server.state === 'LIVE') announce();
    // Until here a fault ends the process: it could wait for ever for something that has failed.
    faults.containUncaught();
    await stopOrder.promise;
    loggers.get('main').info('shutting down: running requests may finish');
  } finally {
    await server.stop(SHUTDOWN_GRACE_MS);
    // A failure to open it has been thrown above already.
    await admin.then((opened) => opened?.close()).catch(() => {});
  }
}

/** The admin interface's own; those of listeners are the workers'. */
function openAccessLog(path: string, loggers: Loggers): LogDestination {
  return LogDestination.open(logTarget(path), { onDropped: (count) => loggers.countDropped(count) });
}

function reopenDestinations(loggers: Loggers, destinations: readonly LogDestination[]): void {
  for (const destination of destinations) {
    try {
      destination.reopen();
    } catch (error) {
      loggers.get('main').error(errorMessage(error));
    }
  }
}
