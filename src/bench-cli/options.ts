// The command line of weir-bench, read by yargs and checked here. The outcome is a value: nothing here writes to a
// stream or ends the process.

import yargs from 'yargs';
import { errorMessage } from '../base/errors.ts';
import { nearestName } from '../base/nearest-name.ts';
import { type Sizes, SUITE_NAMES, type SuiteName } from './case.ts';
import type { DistributionOptions } from './distribution.ts';
import type { Effort } from './measure.ts';

export interface MeasureOptions {
  readonly kind: 'measure';
  readonly suites: readonly SuiteName[];
  readonly sizes: Sizes;
  readonly effort: Effort;
  /** File to write the report to. */
  readonly json: string | undefined;
  readonly gate: { readonly baselineFile: string; readonly maxRegression: number } | undefined;
}

export type Options =
  | MeasureOptions
  | ({ readonly kind: 'distribution' } & DistributionOptions)
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'fault'; readonly text: string };

const DEFAULT_MAX_REGRESSION = 1.1;
const MAX_HOSTS = 65_535;
const MAX_KEYS = 100_000_000;
const COMMANDS = [...SUITE_NAMES, 'all', 'distribution'] as const;

/** A fault of the command line; caught in this file. */
class UsageError extends Error {}

interface Given {
  readonly [option: string]: unknown;
  readonly _: readonly (string | number)[];
}

/** @param argv arguments without the program. */
export function parseOptions(argv: readonly string[], version: string): Options {
  let output = '';
  try {
    const given = parser(version).parseSync([...argv], {}, (error, _given, text) => {
      if (error) throw new UsageError(error.message);
      output = text;
    }) as Given;
    return output === '' ? readOptions(given) : { kind: 'help', text: `${output}\n` };
  } catch (error) {
    return { kind: 'fault', text: `weir-bench: ${errorMessage(error)}\nweir-bench --help lists all options\n` };
  }
}

function parser(version: string) {
  return yargs()
    .scriptName('weir-bench')
    .usage(
      `$0 <suite>: measures the balancer tables, counters and histograms of weir beside plain TypeScript\n\nSuites: ${COMMANDS.join(', ')}.\n"distribution" measures no time: it shows how evenly balancers spread keys and how many move.`,
    )
    .options({
      hosts: { type: 'string', default: '10,100,1000', describe: 'host counts of balancer cases' },
      'table-size': { type: 'string', default: '65537', describe: 'entries of Maglev tables, primes' },
      'ring-size': { type: 'string', default: '1024', describe: 'least entries of hash rings' },
      rounds: { type: 'string', default: '9', describe: 'rounds of each case; more make figures steadier' },
      'round-ms': { type: 'string', default: '15', describe: 'milliseconds of each side in a round' },
      json: { type: 'string', requiresArg: true, describe: 'write the report to this file' },
      baseline: { type: 'string', requiresArg: true, describe: 'report to hold the ratios of this run against' },
      'max-regression': {
        type: 'string',
        requiresArg: true,
        describe: `largest factor by which a ratio may exceed the baseline's, default ${DEFAULT_MAX_REGRESSION}`,
      },
      keys: { type: 'string', default: '100000', describe: 'distribution: keys to spread' },
      weights: { type: 'string', default: '1', describe: 'distribution: weights of the hosts, repeated in turn' },
    })
    .parserConfiguration({
      'camel-case-expansion': false,
      'boolean-negation': false,
      'duplicate-arguments-array': false,
    })
    .example('$0 all --json baseline.json', 'make a baseline')
    .example('$0 all --baseline baseline.json --max-regression 1.25', 'exit code 1 when a row is slower than allowed')
    .epilogue('Exit codes: 0 done, 1 the gate has found rows slower than allowed, 2 the run could not be made.')
    .version(version)
    .help()
    .strictOptions()
    .fail((message, error) => {
      throw new UsageError(unknownOptionText(message ?? error.message));
    })
    .exitProcess(false)
    .wrap(110);
}

const OPTION_NAMES = [
  ...['hosts', 'table-size', 'ring-size', 'rounds', 'round-ms', 'json', 'baseline', 'max-regression'],
  ...['keys', 'weights', 'help', 'version'],
];

/** yargs says which options it does not know; we add which one was meant. */
function unknownOptionText(message: string): string {
  const unknown = /^Unknown arguments?: ([^,]+)/.exec(message)?.[1];
  if (unknown === undefined) return message;
  return `--${unknown}: no such option${suggestion(unknown, OPTION_NAMES)}`;
}

function suggestion(name: string, candidates: readonly string[]): string {
  const nearest = nearestName(name, candidates);
  return nearest === undefined ? '' : `, did you mean ${nearest}?`;
}

function readOptions(given: Given): Options {
  const command = readCommand(given._.map(String));
  const hosts = wholeNumbers(given, 'hosts', 1, MAX_HOSTS);
  if (command === 'distribution') {
    return {
      kind: 'distribution',
      hosts,
      keys: wholeNumber(given, 'keys', 1, MAX_KEYS),
      weights: wholeNumbers(given, 'weights', 1, 0xffff_ffff),
      tableSizes: wholeNumbers(given, 'table-size', 2, 5_000_011),
      ringSizes: wholeNumbers(given, 'ring-size', 1, 8_388_608),
    };
  }
  return {
    kind: 'measure',
    suites: command === 'all' ? SUITE_NAMES : [command],
    sizes: {
      hosts,
      tableSizes: wholeNumbers(given, 'table-size', 2, 5_000_011),
      ringSizes: wholeNumbers(given, 'ring-size', 1, 8_388_608),
    },
    effort: { rounds: wholeNumber(given, 'rounds', 3, 1000), roundMs: wholeNumber(given, 'round-ms', 1, 10_000) },
    json: text(given, 'json'),
    gate: readGate(given),
  };
}

function readCommand(words: readonly string[]): (typeof COMMANDS)[number] {
  const [word, extra] = words;
  const known = `one of ${COMMANDS.join(', ')}`;
  if (word === undefined) throw new UsageError(`say what to run: ${known}`);
  if (extra !== undefined) throw new UsageError(`${extra}: one suite at a time, or all`);
  const command = COMMANDS.find((name) => name === word);
  if (command === undefined) throw new UsageError(`${word}: no such suite${suggestion(word, COMMANDS)}; ${known}`);
  return command;
}

function readGate(given: Given): MeasureOptions['gate'] {
  const baselineFile = text(given, 'baseline');
  const written = text(given, 'max-regression');
  if (baselineFile === undefined) {
    if (written !== undefined) throw new UsageError('--max-regression: there is nothing to compare without --baseline');
    return undefined;
  }
  const maxRegression = written === undefined ? DEFAULT_MAX_REGRESSION : Number(written);
  if (!(maxRegression >= 1 && Number.isFinite(maxRegression))) {
    throw new UsageError(`--max-regression: ${written} is not a factor of 1 or more, such as 1.10`);
  }
  return { baselineFile, maxRegression };
}

function text(given: Given, name: string): string | undefined {
  const value = given[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || value === '') throw new UsageError(`--${name}: needs a value`);
  return value;
}

function wholeNumber(given: Given, name: string, least: number, most: number): number {
  return readWhole(name, String(given[name]), least, most);
}

function wholeNumbers(given: Given, name: string, least: number, most: number): readonly number[] {
  const values = String(given[name])
    .split(',')
    .map((part) => readWhole(name, part.trim(), least, most));
  return [...new Set(values)];
}

function readWhole(name: string, written: string, least: number, most: number): number {
  const value = Number(written);
  if (/^\d+$/.test(written) && value >= least && value <= most) return value;
  throw new UsageError(`--${name}: ${JSON.stringify(written)} is not a whole number from ${least} to ${most}`);
}
