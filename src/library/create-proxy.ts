// `createProxy` of `weir-proxy`: a proxy within the process of its caller, as the program `weir` is one by itself. Reference:
// docs/library.md.

import { WeirError } from '../base/errors.ts';
import type { FaultBoundary } from '../base/fault-boundary.ts';
import { readVersion } from '../base/version.ts';
import { optionsFromValues, type ServerOptions } from '../cli/index.ts';
import { formatFault } from '../config/index.ts';
import { EmbeddedProxy } from './embedded-proxy.ts';
import type { Bootstrap } from './generated/bootstrap.ts';
import { checkGiven } from './given.ts';
import { readFilters } from './http-filters.ts';
import { type Loaded, load } from './load.ts';
import { openLog } from './log.ts';
import type { ProxyOptions, WeirProxy } from './types.ts';

type TakenOption = Exclude<keyof ProxyOptions, 'httpFilters' | 'log' | 'signal'> & keyof ServerOptions;

/** Those of the program that say something of a proxy, and not of its process. Every one of ProxyOptions stands here. */
const TAKEN: Readonly<Record<TakenOption, true>> = {
  concurrency: true,
  configYaml: true,
  allowUnknownStaticFields: true,
  serviceCluster: true,
  serviceNode: true,
  serviceZone: true,
  statsTag: true,
  drainTimeS: true,
  drainStrategy: true,
  fileFlushIntervalMsec: true,
  adminReadOnly: true,
  adminName: true,
  adminAddressPath: true,
  enableMutexTracing: true,
  disableExtensions: true,
  localAddressIpVersion: true,
  logLevel: true,
  componentLogLevel: true,
  logFormat: true,
};

/** Quick to start; and nobody takes over from a proxy in somebody's process. */
const OWN_DEFAULTS = { concurrency: 1, disableHotRestart: true };

/**
 * Starts a proxy; it is live when this resolves.
 * @param config a bootstrap, or the path of a file that holds one.
 * @throws ConfigError with all faults of the configuration. @throws WeirError when an option is wrong, or the proxy cannot start.
 */
export async function createProxy(config: Bootstrap | string, given: ProxyOptions = {}): Promise<WeirProxy> {
  const { options, warnings } = readOptions(given);
  const { signal, log } = given;
  const filters = readFilters(given.httpFilters);
  signal?.throwIfAborted();
  const version = readVersion();
  const loggers = openLog(options, log, import.meta.url);
  for (const warning of warnings) loggers.get('main').warning(warning);
  const loadAnother = (another: Bootstrap | string): Loaded => {
    const loaded = load(another, options, version, filters);
    for (const fault of loaded.result.faults) loggers.get('config').warning(formatFault(fault));
    return loaded;
  };
  const proxy = new EmbeddedProxy({ concurrency: options.concurrency, version, loggers, load: loadAnother });
  if (signal !== undefined) proxy.closeOn(signal);
  try {
    await untilAborted(signal, proxy.start(loadAnother(config)), proxy.faults);
    return proxy;
  } catch (error) {
    await proxy.close({ graceMs: 0 });
    throw error;
  }
}

/** @throws what the signal was aborted with, as soon as it is. */
async function untilAborted(
  signal: AbortSignal | undefined,
  work: Promise<void>,
  faults: FaultBoundary,
): Promise<void> {
  if (signal === undefined) return work;
  const aborted = Promise.withResolvers<never>();
  const over = new AbortController();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', faults.handler('the end', onAbort), { signal: over.signal });
  try {
    await Promise.race([work, aborted.promise]);
  } finally {
    over.abort();
  }
}

type ReadOptions = Extract<ReturnType<typeof optionsFromValues>, { readonly error: undefined }>;

/** @throws WeirError WEIR_OPTIONS. */
function readOptions(given: ProxyOptions): ReadOptions {
  checkGiven(given);
  const { httpFilters, log, signal, ...values } = given;
  const unknown = Object.keys(values).find((name) => !Object.hasOwn(TAKEN, name));
  if (unknown !== undefined) throw new WeirError('WEIR_OPTIONS', `unknown option ${unknown}`);
  if (log !== undefined && typeof log !== 'function') {
    throw new WeirError('WEIR_OPTIONS', `option log: expected a function, got ${typeof log}`);
  }
  // A test runner's page may have a class of its own for them.
  if (signal !== undefined && typeof signal?.throwIfAborted !== 'function') {
    throw new WeirError('WEIR_OPTIONS', `option signal: expected an AbortSignal, got ${typeof signal}`);
  }
  const taken = Object.entries(values).filter(([, value]) => value !== undefined);
  const checked = optionsFromValues({ ...OWN_DEFAULTS, ...Object.fromEntries(taken) });
  if (checked.error !== undefined) throw new WeirError('WEIR_OPTIONS', checked.error);
  return checked;
}
