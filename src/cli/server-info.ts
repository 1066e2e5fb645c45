// command_line_options of /server_info: every option with a place there, in ascending proto field order, defaults
// included.

import { type JsonObject, type JsonValue, jsonDuration, jsonInt64 } from '../base/json.ts';
import { camelCase, type OptionRow } from './option-row.ts';
import { OPTIONS, type ServerOptions } from './options.ts';

export function commandLineOptionsJson(options: ServerOptions): JsonObject {
  const rows: readonly OptionRow[] = OPTIONS;
  const shown = rows.filter((row) => row.infoOrder !== undefined).sort((a, b) => a.infoOrder! - b.infoOrder!);
  const values = options as Readonly<Record<string, unknown>>;
  return Object.fromEntries(shown.map((row) => [infoKey(row), infoValue(row, values[camelCase(row.name)], options)]));
}

function infoKey(row: OptionRow): string {
  return row.infoKey ?? row.name.replaceAll('-', '_');
}

function infoValue(row: OptionRow, value: unknown, options: ServerOptions): JsonValue {
  switch (row.infoForm) {
    case 'int64':
      return jsonInt64(Number(value));
    case 'duration-s':
      return jsonDuration(Number(value) * 1000);
    case 'duration-ms':
      return jsonDuration(Number(value));
    case 'pascal-case':
      return String(value).replace(/(?:^|_)(.)/g, (_whole, letter: string) => letter.toUpperCase());
    case 'comma-list':
      return value === '' ? [] : String(value).split(',');
    case 'octal':
      // A socket in the abstract namespace has no file mode.
      return options.socketPath.startsWith('@') ? 0 : Number.parseInt(String(value), 8);
    default:
      return value as JsonValue;
  }
}
