// Rules that look inside a value or at several options together (spec 2.7), and what this build does not do.
// The first breach ends the program; warnings are logged.

import { isLogComponent, LOG_COMPONENTS } from '../base/log-components.ts';
import { describeUnknownLogFlags } from '../base/log-flags.ts';
import { findLevel, LOG_LEVELS, type LogLevel } from '../base/log-levels.ts';
import { nearestName } from '../base/nearest-name.ts';
import { usableThreads } from '../base/processors.ts';
import { MAX_WORKERS } from '../base/worker-limit.ts';
import { camelCase, defaultValue, type OptionRow } from './option-row.ts';
import { type ComponentLogLevel, OPTIONS, type ServerOptions } from './options.ts';

/** A breach of the command line's grammar. */
export interface OptionProblem {
  /** The option, or the argument that is none. */
  readonly row: OptionRow | string;
  readonly reason: string;
}

/** As parsed: by the table, but not yet checked. */
export type UncheckedOptions = Omit<ServerOptions, 'componentLogLevels'>;

export type CheckedOptions =
  | { readonly error: string }
  | { readonly error: undefined; readonly options: ServerOptions; readonly warnings: readonly string[] };

type Check = (options: UncheckedOptions, given: ReadonlySet<string>) => string | undefined;

const CHECKS: readonly Check[] = [
  checkChoices,
  checkLimits,
  checkOldLimits,
  checkRestart,
  checkSocketMode,
  checkStatsTags,
];

const MAX_STATS = 100_000_000;
const MIN_OBJECT_NAME_LENGTH = 60;

/** @param given names of the options on the command line. */
export function checkOptions(options: UncheckedOptions, given: ReadonlySet<string>): CheckedOptions {
  for (const check of CHECKS) {
    const error = check(options, given);
    if (error !== undefined) return { error };
  }
  const levels = readComponentLevels(options.componentLogLevel, options.enableFineGrainLogging);
  if (levels.error !== undefined) return { error: levels.error };
  const effective: ServerOptions = {
    ...options,
    concurrency: Math.max(
      takesCpuSet(options, given) ? Math.min(usableThreads(), MAX_WORKERS) : options.concurrency,
      1,
    ),
    allowUnknownStaticFields: options.allowUnknownStaticFields || options.allowUnknownFields,
    componentLogLevels: levels.levels,
  };
  return { error: undefined, options: effective, warnings: [...warnings(options, given)] };
}

function takesCpuSet({ cpusetThreads }: UncheckedOptions, given: ReadonlySet<string>): boolean {
  return cpusetThreads && !given.has('concurrency');
}

function optionValue(options: UncheckedOptions, row: OptionRow): unknown {
  return (options as Readonly<Record<string, unknown>>)[camelCase(row.name)];
}

function checkChoices(options: UncheckedOptions): string | undefined {
  for (const row of OPTIONS) {
    if (row.kind !== 'choice') continue;
    const value = String(optionValue(options, row));
    const { choices, complaint }: { readonly choices: readonly string[]; readonly complaint: string } = row;
    if (!choices.includes(value)) return `${complaint} '${value}'; allowed: ${choices.join(', ')}`;
  }
  return undefined;
}

function checkLimits(options: UncheckedOptions): string | undefined {
  for (const row of OPTIONS as readonly OptionRow[]) {
    if (row.kind !== 'count' || row.max === undefined) continue;
    const value = Number(optionValue(options, row));
    if (value > row.max) return `error: --${row.name} ${value} exceeds the limit ${row.max}`;
  }
  return undefined;
}

/** Of options that have no effect: a start script that is wrong everywhere is wrong here. */
function checkOldLimits({ maxStats, maxObjNameLen }: UncheckedOptions): string | undefined {
  if (maxStats > MAX_STATS) {
    return `error: the 'max-stats' value specified (${maxStats}) is more than the maximum value of 100M`;
  }
  if (maxObjNameLen >= MIN_OBJECT_NAME_LENGTH) return undefined;
  return `error: the 'max-obj-name-len' value specified (${maxObjNameLen}) is less than the minimum value of ${MIN_OBJECT_NAME_LENGTH}`;
}

function checkRestart({ useDynamicBaseId, restartEpoch }: UncheckedOptions): string | undefined {
  if (!useDynamicBaseId || restartEpoch === 0) return undefined;
  return `error: cannot use --restart-epoch=${restartEpoch} with --use-dynamic-base-id`;
}

function checkSocketMode({ socketMode, socketPath }: UncheckedOptions, given: ReadonlySet<string>): string | undefined {
  if (!/^[0-7]{1,4}$/.test(socketMode)) return `error: invalid socket-mode '${socketMode}'; allowed: octal, up to 7777`;
  if (!given.has('socket-mode') || !socketPath.startsWith('@')) return undefined;
  return `error: socket-mode '${socketMode}' needs a socket-path outside of the abstract namespace`;
}

function checkStatsTags({ statsTag }: UncheckedOptions): string | undefined {
  const names = new Set<string>();
  for (const tag of statsTag) {
    const colon = tag.indexOf(':');
    if (colon < 0) return `error: misformatted stats-tag '${tag}'; allowed: tag:value`;
    const name = tag.slice(0, colon);
    const value = tag.slice(colon + 1);
    const misformatted = `error: misformatted stats-tag '${tag}' contains invalid char in`;
    if (!/^[A-Za-z0-9]+$/.test(name)) return `${misformatted} '${name}'; allowed: letters and digits`;
    if (value.includes('.')) return `${misformatted} '${value}'; allowed: all but '.'`;
    if (names.has(name)) return `error: stats-tag '${name}' is given twice`;
    names.add(name);
  }
  return undefined;
}

function differsFromDefault(options: UncheckedOptions, row: OptionRow): boolean {
  return String(optionValue(options, row)) !== String(defaultValue(row));
}

function* warnings(options: UncheckedOptions, given: ReadonlySet<string>): Generator<string> {
  for (const row of OPTIONS) {
    if (row.support === 'ignored' && differsFromDefault(options, row)) {
      yield `--${row.name} is not supported by this build and has no effect`;
    }
  }
  if (options.allowUnknownFields) {
    yield '--allow-unknown-fields is deprecated, use --allow-unknown-static-fields instead.';
  }
  if (options.cpusetThreads && given.has('concurrency')) {
    yield 'Both --concurrency and --cpuset-threads options are set; not applying --cpuset-threads.';
  }
  const flags = describeUnknownLogFlags(options.logFormat);
  if (flags !== undefined) yield `--log-format: ${flags}`;
  for (const tag of options.statsTag) {
    if (tag.endsWith(':'))
      yield `--stats-tag '${tag}' gives its tag an empty value, which many readers of stats take for none`;
  }
  const { drainTimeS, parentShutdownTimeS, disableHotRestart } = options;
  if (drainTimeS >= parentShutdownTimeS && !disableHotRestart) {
    yield `--drain-time-s ${drainTimeS} is not less than --parent-shutdown-time-s ${parentShutdownTimeS}: a hot restart ends the old process before its connections have drained`;
  }
}

type ReadLevels =
  | { readonly error: string; readonly levels?: undefined }
  | { readonly error: undefined; readonly levels: readonly ComponentLogLevel[] };

/**
 * @param text `upstream:debug,connection:trace`, or empty.
 * @param isOfFiles the names are patterns of source files.
 */
function readComponentLevels(text: string, isOfFiles: boolean): ReadLevels {
  const levels: ComponentLogLevel[] = [];
  for (const item of text === '' ? [] : text.split(',')) {
    const [component, levelName, ...rest] = item.split(':');
    if (component === undefined || component === '' || levelName === undefined || rest.length > 0) {
      return { error: `error: component log level not correctly specified '${item}'; allowed: component:level` };
    }
    const level = levelByName(levelName);
    if (level === undefined) {
      return { error: `error: invalid log level specified '${levelName}'; allowed: ${LOG_LEVELS.join(', ')}` };
    }
    if (!isOfFiles && !isLogComponent(component)) {
      const nearest = nearestName(component, LOG_COMPONENTS);
      const hint = nearest === undefined ? `; allowed: ${LOG_COMPONENTS.join(', ')}` : `; did you mean '${nearest}'?`;
      return { error: `error: invalid component specified '${component}'${hint}` };
    }
    levels.push({ component, level });
  }
  return { error: undefined, levels };
}

/** Level names of the command line, where `warn` will do for `warning`. */
function levelByName(name: string): LogLevel | undefined {
  return findLevel(name === 'warn' ? 'warning' : name);
}
