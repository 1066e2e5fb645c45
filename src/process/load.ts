// Loads the bootstrap that the command line names, and tells the operator of every fault.

import type { Version } from '../base/version.ts';
import { DEFAULT_LOG_FORMAT, type ServerOptions } from '../cli/index.ts';
import {
  type DisablingOutcome,
  disableExtensions,
  formatFault,
  type LoadBootstrapInput,
  type LoadBootstrapResult,
  loadBootstrap,
  prepareLoading as prepare,
} from '../config/index.ts';
import { EXTENSIONS, extensionsWith } from '../extensions/control-registry.ts';
import type { GivenFilters } from '../extensions/filters.http/module/config.ts';
import { findLogPathFault } from '../log/index.ts';
import type { ProcessLog } from './log.ts';

/** Ahead of the first load, for a caller that has to wait for something else. */
export function prepareLoading(): void {
  prepare(EXTENSIONS);
}

export type LoadOptions = Pick<
  ServerOptions,
  | 'mode'
  | 'configPath'
  | 'configYaml'
  | 'allowUnknownStaticFields'
  | 'serviceCluster'
  | 'serviceNode'
  | 'serviceZone'
  | 'disableExtensions'
  | 'logFormat'
  | 'logFormatEscaped'
>;

/** What --disable-extensions amounts to in this build. */
export function disabledBy({ disableExtensions: list }: Pick<ServerOptions, 'disableExtensions'>): DisablingOutcome {
  return disableExtensions(list === '' ? [] : list.split(','), EXTENSIONS);
}

/** What this build loads a bootstrap with. @param software what the node is to say of the program. @param filters that its user brings. */
export function loadInput(
  options: LoadOptions,
  software?: Version,
  filters: GivenFilters = new Map(),
): LoadBootstrapInput {
  return {
    ...options,
    ...(software === undefined ? {} : { software }),
    extensions: extensionsWith(filters),
    disabledExtensions: disabledBy(options).disabled,
    hasLogFormat: options.logFormat !== DEFAULT_LOG_FORMAT,
    environment: process.env,
    findLogPathFault,
  };
}

/**
 * Tells of every fault, one a line.
 * @param software what the node is to say of the program.
 */
export function loadAndReport(options: LoadOptions, log: ProcessLog, software?: Version): LoadBootstrapResult {
  const { done, warnings } = disabledBy(options);
  for (const warning of warnings) log.loggers.get('main').warning(warning);
  for (const name of done) log.loggers.get('main').info(`disabled extension '${name}'`);
  const result = loadBootstrap(loadInput(options, software));
  if (result.bootstrap?.logFormat !== undefined) log.useFormat?.(result.bootstrap.logFormat);
  const errors = result.faults.filter((fault) => fault.severity === 'error');
  for (const fault of result.faults) {
    if (fault.severity === 'warning') log.loggers.get('config').warning(formatFault(fault));
  }
  if (errors.length > 0) {
    const count = errors.length === 1 ? '1 error' : `${errors.length} errors`;
    const texts = [`error initializing configuration '${options.configPath}': ${count}`, ...errors.map(formatFault)];
    for (const text of texts) log.loggers.get('main').critical(text);
    log.echo('main', texts);
  }
  return result;
}
