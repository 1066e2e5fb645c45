// Brings the arguments into a form in which nothing has to be guessed: one token per option, value included.
// `--name value`, `--name=value`, `-n value`, `-n=value` and `-nvalue` become `--name="value"`. So a value may begin
// with a dash, as YAML (`---`) and log formats do. Here, too, unknown and repeated options are found.

import { nearestName } from '../base/nearest-name.ts';
import type { OptionProblem } from './checks.ts';
import type { OptionRow } from './option-row.ts';

export interface JoinedTokens {
  readonly tokens: readonly string[];
  readonly problem: OptionProblem | undefined;
}

export function joinValues(argv: readonly string[], rows: readonly OptionRow[]): JoinedTokens {
  const tokens: string[] = [];
  const seen = new Set<OptionRow>();
  const fail = (row: OptionRow | string, reason: string): JoinedTokens => ({ tokens: [], problem: { row, reason } });
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index]!;
    const found = findOption(argument, rows);
    if (found === undefined) return fail(argument, `Couldn't find match for argument${nearestOption(argument, rows)}`);
    const { row } = found;
    if (seen.has(row) && row.kind !== 'texts') return fail(row, 'Argument already set!');
    seen.add(row);
    if (row.kind === 'flag') {
      if (found.value !== undefined) return fail(argument, "Couldn't find match for argument");
      tokens.push(`--${row.name}`);
      continue;
    }
    const value = found.value ?? argv[++index];
    if (value === undefined) return fail(row, 'Missing a value for this argument!');
    // yargs takes one pair of quotes off what follows the equals sign; let it be ours.
    tokens.push(`--${row.name}="${value}"`);
  }
  return { tokens, problem: undefined };
}

function nearestOption(argument: string, rows: readonly OptionRow[]): string {
  const [, name] = /^--?([^=]+)/.exec(argument) ?? [];
  const nearest =
    name === undefined
      ? undefined
      : nearestName(
          name,
          rows.map((row) => row.name),
        );
  return nearest === undefined ? '' : `; did you mean --${nearest}?`;
}

interface FoundOption {
  readonly row: OptionRow;
  /** The value within the same argument. */
  readonly value: string | undefined;
}

function findOption(argument: string, rows: readonly OptionRow[]): FoundOption | undefined {
  const long = /^--([^=]+)(?:=([\s\S]*))?$/.exec(argument);
  if (long !== null) {
    const row = rows.find(({ name }) => name === long[1]);
    return row === undefined ? undefined : { row, value: long[2] };
  }
  const short = /^-([^-])([\s\S]*)$/.exec(argument);
  const row = short === null ? undefined : rows.find(({ flag }) => flag === short[1]);
  if (short === null || row === undefined) return undefined;
  const rest = short[2]!;
  return { row, value: rest === '' ? undefined : rest.replace(/^=/, '') };
}
