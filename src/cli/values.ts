// Options as a program gives them: by camel-case name, in their own types. Read by the same table and held to the same rules as
// those of a command line.

import { type CheckedOptions, checkOptions, type UncheckedOptions } from './checks.ts';
import { camelCase, defaultValue, type OptionRow } from './option-row.ts';
import { OPTIONS } from './options.ts';

const MAX_COUNT = 0xffff_ffff;

/** @param values those that are undefined count as not given. */
export function optionsFromValues(values: Readonly<Record<string, unknown>>): CheckedOptions {
  const rows = new Map((OPTIONS as readonly OptionRow[]).map((row) => [camelCase(row.name), row]));
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    const row = rows.get(name);
    if (row === undefined) return { error: `unknown option ${name}` };
    const wanted = wantedOf(row, value);
    if (wanted !== undefined) {
      const got = typeof value === 'number' ? value : value === null ? 'null' : typeof value;
      return { error: `option ${name}: expected ${wanted}, got ${got}` };
    }
  }
  const defaults = [...rows].map(([name, row]) => [name, defaultValue(row)]);
  const options = Object.fromEntries([...defaults, ...given]) as unknown as UncheckedOptions;
  const checked = checkOptions(options, new Set(given.map(([name]) => rows.get(name)!.name)));
  return checked.error === undefined ? checked : { error: checked.error.replace(/^error: /, '') };
}

/** What the option wants instead of the value; undefined when that will do. */
function wantedOf(row: OptionRow, value: unknown): string | undefined {
  switch (row.kind) {
    case 'flag':
      return typeof value === 'boolean' ? undefined : 'a boolean';
    case 'count': {
      const max = row.max ?? MAX_COUNT;
      const isCount = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max;
      return isCount ? undefined : `a whole number from 0 to ${max}`;
    }
    case 'texts':
      return Array.isArray(value) && value.every((item) => typeof item === 'string') ? undefined : 'a list of strings';
    default:
      return typeof value === 'string' ? undefined : 'a string';
  }
}
