// --mode serve: from a bootstrap to a running proxy and, on a signal or /quitquitquit, back. Main thread. Here is what
// the program has only one of; the proxy itself is src/process/running-proxy.ts.
// What takes time at the start goes on side by side: the workers load their code while this thread loads the
// configuration, and the admin interface is loaded while the workers open their listeners.

import { constants } from 'node:os';
import { SYSTEM_CLOCK } from '../base/clock.ts';
import { stackFrames, WeirError } from '../base/errors.ts';
import { collectGarbage } from '../base/garbage.ts';
import { SystemCalls } from '../base/system-calls.ts';
import type { Version } from '../base/version.ts';
import { hasConfiguration, type ServerOptions } from '../cli/index.ts';
import { type Demo, startDemo } from '../demo/index.ts';
import { beginEpoch } from './hot-restart/begin-epoch.ts';
import type { Epoch } from './hot-restart/epoch.ts';
import type { ProcessLog } from './log.ts';
import { print } from './print.ts';
import { sayReady } from './readiness.ts';
import { RunningProxy } from './running-proxy.ts';
import { handleSignals, letReopeningIn } from './signals.ts';
import { leaveThreadsTheirYoungGeneration } from './young-generation.ts';

export interface ServeParts {
  readonly options: ServerOptions;
  readonly version: Version;
  readonly log: ProcessLog;
}

/** The start is over then, also what it has left for later. */
const SETTLED_AFTER_MS = 1_000;
const MEGABYTE = 1e6;

/** Serves until it is told to stop. @returns the exit code. */
export async function serve(parts: ServeParts): Promise<number> {
  const { options, version, log } = parts;
  const { loggers } = log;
  const stopOrder = Promise.withResolvers<void>();
  // First of all threads, because the configuration of the demo waits for its ports.
  const starting = hasConfiguration(options) ? undefined : startDemo();
  // Awaited below; until then a failure of it is not one that nobody handles.
  starting?.catch(() => {});
  const { concurrency } = options;
  leaveThreadsTheirYoungGeneration();
  const proxy = new RunningProxy({ concurrency, version, log, systemCalls: openSystemCalls, quit: stopOrder.resolve });
  const releaseSignals = handleSignals(
    { stop: stopOrder.resolve, stopAtOnce: () => process.exit(1), reopenLogs: () => proxy.reopenLogs() },
    SYSTEM_CLOCK,
    proxy.faults,
  );
  // Timers do not keep the process alive, and workers come and go; until the order to stop comes, this does.
  const keepAlive = new MessageChannel().port1;
  keepAlive.ref();
  const announce = (): void => {
    if (sayReady(process.env.WEIR_READY_FD) || process.env.RESTART_EPOCH === undefined) return;
    // Before the system could be asked to tell of its end.
    loggers.get('main').warning('the restarter has ended, and this process ends with it');
    stopOrder.resolve();
  };
  let demo: Demo | undefined;
  let epoch: Epoch | undefined;
  try {
    // The demo is nobody's to take over, and what only looks whether it could serve takes over from nobody.
    const isAlone = starting !== undefined || options.mode === 'init_only';
    const begun = { ...options, disableHotRestart: options.disableHotRestart || isAlone };
    const epochParts = {
      options: begun,
      clock: SYSTEM_CLOCK,
      log: loggers.get('main'),
      quit: stopOrder.resolve,
      onServing: announce,
    };
    const loading = import('./load.ts');
    epoch = await beginEpoch(epochParts);
    const { loadAndReport, prepareLoading } = await loading;
    prepareLoading();
    demo = await starting;
    const effective = { ...begun, baseId: epoch?.baseId ?? begun.baseId, ...(demo && { configYaml: demo.configYaml }) };
    const loaded = loadAndReport(effective, log, version);
    if (!loaded.bootstrap) return 1;
    // What it was read from is many times as large, and what is made of it now takes its room.
    collectGarbage();
    await Promise.race([proxy.start(effective, loaded, epoch), stopOrder.promise]);
    if (demo && proxy.server?.state === 'LIVE') print('stdout', demo.describe(), 'serve');
    // Until here a fault ends the process: it could wait for ever for something that has failed.
    proxy.faults.containUncaught();
    if (options.mode === 'init_only') return 0;
    if (proxy.server?.state === 'LIVE') announce();
    proxy.faults.clock(SYSTEM_CLOCK).after(SETTLED_AFTER_MS, () => {
      const megabytes = (proxy.settle() / MEGABYTE).toFixed(0);
      loggers
        .get('main')
        .ofFile('src/process/serve.ts')
        .debug(`the start is over: ${megabytes} MB given back to the system`);
    });
    await stopOrder.promise;
    loggers.get('main').info('shutting down: running requests may finish');
    return 0;
  } catch (error) {
    // Anything but a WeirError is a bug, and its stack is what helps to find it.
    const isExpected = error instanceof WeirError;
    const text = `cannot serve: ${isExpected ? error.message : String(error)}`;
    loggers.get('main').critical(text, isExpected ? '' : stackFrames(error));
    log.echo('main', [text]);
    return 1;
  } finally {
    await epoch?.beginEnd();
    await proxy.stop(options.shutdownGraceS * 1000);
    await epoch?.end();
    await demo?.close();
    releaseSignals();
    keepAlive.close();
    loggers.get('main').info('exiting');
  }
}

/** And lets SIGUSR1 in, which has waited for somebody who handles it. */
function openSystemCalls(): SystemCalls | undefined {
  const systemCalls = SystemCalls.open();
  letReopeningIn(systemCalls);
  // Started by a restart wrapper, it ends with that.
  if (process.env.RESTART_EPOCH !== undefined) systemCalls?.signalAtEndOfParent(constants.signals.SIGTERM);
  return systemCalls;
}
