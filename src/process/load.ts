// Loads the bootstrap that the command line names, and tells the operator of every fault.

import type { Version } from '../base/version.ts';
import type { ServerOptions } from '../cli/index.ts';
import { formatFault, type LoadBootstrapResult, loadBootstrap, prepareLoading as prepare } from '../config/index.ts';
import { HTTP_FILTER_CONVERTERS, STAT_SINKS } from '../extensions/control-registry.ts';
import { findLogPathFault, type Loggers } from '../log/index.ts';
import { print } from './print.ts';

/** Ahead of the first load, for a caller that has to wait for something else. */
export function prepareLoading(): void {
  prepare(STAT_SINKS);
}

export type LoadOptions = Pick<
  ServerOptions,
  'mode' | 'configPath' | 'configYaml' | 'allowUnknownStaticFields' | 'serviceCluster' | 'serviceNode' | 'serviceZone'
>;

/**
 * Warnings go to the log; errors go to standard error as well, one a line, so that they are seen whatever the
 * log's level and destination.
 * @param software what the node is to say of the program.
 */
export function loadAndReport(options: LoadOptions, loggers: Loggers, software?: Version): LoadBootstrapResult {
  const world = { environment: process.env, findLogPathFault };
  const result = loadBootstrap({
    ...options,
    ...(software === undefined ? {} : { software }),
    httpFilters: HTTP_FILTER_CONVERTERS,
    statSinks: STAT_SINKS,
    ...world,
  });
  const errors = result.faults.filter((fault) => fault.severity === 'error');
  for (const fault of result.faults) {
    if (fault.severity === 'warning') loggers.get('config').warning(formatFault(fault));
  }
  if (errors.length > 0) {
    const count = errors.length === 1 ? '1 error' : `${errors.length} errors`;
    loggers.get('main').critical(`error initializing configuration '${options.configPath}': ${count}`);
    const text = errors.map((fault) => `${formatFault(fault)}\n`).join('');
    print('stderr', text, options.mode === 'serve' ? 'serve' : 'ask');
  }
  return result;
}
