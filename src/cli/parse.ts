// Reads the command line. The outcome is a value: nothing here writes to a stream or ends the process.
//
//   arguments → one token per option (tokens.ts) → yargs → values by the table → checks.ts

import { createRequire } from 'node:module';
import type { default as Yargs } from 'yargs';
import { checkOptions, type OptionProblem } from './checks.ts';
import { helpText, parseErrorText, versionText } from './help.ts';
import { camelCase, defaultValue, type OptionRow } from './option-row.ts';
import { OPTIONS, type ServerOptions } from './options.ts';
import { joinValues } from './tokens.ts';

export type CommandLineOutcome =
  | {
      readonly kind: 'run';
      readonly options: ServerOptions;
      /** To be logged once the log is open. */
      readonly warnings: readonly string[];
    }
  | { readonly kind: 'exit'; readonly code: number; readonly stdout: string; readonly stderr: string };

export interface CommandLineContext {
  /** The program's name as the user typed it. */
  readonly program: string;
  /** formatVersion of src/base/version.ts. */
  readonly version: string;
  /** What --hot-restart-version prints, beside other options. */
  readonly hotRestartVersion: (options: ServerOptions) => string;
  /** By default that of the process: a restart wrapper says in RESTART_EPOCH what --restart-epoch is where nobody gives it. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

const ROWS: readonly OptionRow[] = OPTIONS;
const MAX_COUNT = 0xffff_ffff;

/** @param argv arguments without the program. */
export function parseCommandLine(argv: readonly string[], context: CommandLineContext): CommandLineOutcome {
  const tokens = joinValues(argv, ROWS);
  if (tokens.problem !== undefined) return parseError(context, tokens.problem);
  const typed = readTokens(tokens.tokens);
  const given = withEnvironment(typed, context.environment ?? process.env);
  // These answer before anything else is looked at, as a user in doubt expects.
  if (given.help !== undefined) return exitWith(helpText(context.program, ROWS));
  if (given.version !== undefined) return exitWith(versionText(context));
  const read = readValues(given);
  if (read.problem !== undefined) return parseError(context, withSource(read.problem, typed));
  const checked = checkOptions(read.values as Omit<ServerOptions, 'componentLogLevels'>, new Set(Object.keys(given)));
  if (checked.error !== undefined) return { kind: 'exit', code: 1, stdout: '', stderr: `${checked.error}\n` };
  if (checked.options.hotRestartVersion) {
    return { kind: 'exit', code: 0, stdout: '', stderr: context.hotRestartVersion(checked.options) };
  }
  return { kind: 'run', options: checked.options, warnings: checked.warnings };
}

/** Text by option name; only options that were given. */
type GivenOptions = Readonly<Record<string, unknown>>;

/** yargs without its own opinions: no help, no exit, no coercion, no other spellings. */
function readTokens(tokens: readonly string[]): GivenOptions {
  // Loading yargs takes a tenth of the time from start to service; without arguments it has nothing to read.
  if (tokens.length === 0) return {};
  const loaded = createRequire(import.meta.url)('yargs') as typeof Yargs | { readonly default: typeof Yargs };
  // Node hands out the function, a bundle the module that has it.
  const yargs = 'default' in loaded ? loaded.default : loaded;
  const parsed: GivenOptions = yargs()
    .help(false)
    .version(false)
    .exitProcess(false)
    .parserConfiguration({
      'boolean-negation': false,
      'camel-case-expansion': false,
      'dot-notation': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
      'short-option-groups': false,
      'strip-aliased': true,
    })
    .options(Object.fromEntries(ROWS.map((row) => [row.name, yargsOption(row)])))
    .parseSync([...tokens]);
  return Object.fromEntries(Object.entries(parsed).filter(([name, value]) => isRow(name) && value !== undefined));
}

function withEnvironment(given: GivenOptions, { RESTART_EPOCH }: NonNullable<CommandLineContext['environment']>) {
  return RESTART_EPOCH === undefined ? given : { 'restart-epoch': RESTART_EPOCH, ...given };
}

/** Says so where nobody has typed the value. */
function withSource({ row, reason }: ValueProblem, typed: GivenOptions): ValueProblem {
  return { row, reason: row.name in typed ? reason : `${reason}; RESTART_EPOCH of the environment has it` };
}

function isRow(name: string): boolean {
  return ROWS.some((row) => row.name === name);
}

function yargsOption(row: OptionRow) {
  const type = row.kind === 'flag' ? ('boolean' as const) : ('string' as const);
  const alias = row.flag === undefined ? {} : { alias: row.flag };
  return row.kind === 'texts' ? { type, array: true, nargs: 1, ...alias } : { type, ...alias };
}

/** Of an option that there is. */
interface ValueProblem extends OptionProblem {
  readonly row: OptionRow;
}

type ReadValues =
  | { readonly problem: ValueProblem; readonly values?: undefined }
  | { readonly problem: undefined; readonly values: Readonly<Record<string, unknown>> };

function readValues(given: GivenOptions): ReadValues {
  const values: Record<string, unknown> = {};
  for (const row of ROWS) {
    const text = given[row.name];
    const value = text === undefined ? defaultValue(row) : readValue(row, text);
    if (value === undefined) {
      const allowed = `a whole number from 0 to ${(row.kind === 'count' && row.max) || MAX_COUNT}`;
      return {
        problem: { row, reason: `Couldn't read argument value from string '${String(text)}'; allowed: ${allowed}` },
      };
    }
    values[camelCase(row.name)] = value;
  }
  return { problem: undefined, values };
}

/** @returns undefined when the text is no value for the option. */
function readValue(row: OptionRow, given: unknown): unknown {
  if (row.kind === 'texts') return Array.isArray(given) ? given.map(String) : [String(given)];
  if (row.kind === 'flag') return given === true;
  const text = String(given);
  if (row.kind === 'count') return /^\d{1,10}$/.test(text) && Number(text) <= MAX_COUNT ? Number(text) : undefined;
  return row.kind === 'choice' ? (row.aliases?.[text] ?? text) : text;
}

function exitWith(stdout: string): CommandLineOutcome {
  return { kind: 'exit', code: 0, stdout, stderr: '' };
}

function parseError(context: CommandLineContext, problem: OptionProblem): CommandLineOutcome {
  return { kind: 'exit', code: 1, stdout: '', stderr: parseErrorText(context.program, ROWS, problem) };
}
