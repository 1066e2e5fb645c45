// The texts that the command line itself prints. Layout and wording of the frames are those of the argument
// parser that start scripts and operators of such proxies know; the descriptions come from the table.

import type { OptionProblem } from './checks.ts';
import type { OptionRow } from './option-row.ts';

const LINE_WIDTH = 75;
const REASON_INDENT = 13;

export function versionText({ program, version }: { readonly program: string; readonly version: string }): string {
  return `\n${program}  version: ${version}\n\n`;
}

export function helpText(program: string, rows: readonly OptionRow[]): string {
  const where = rows.map((row) => `${wrap(longId(row), 3, 3)}\n${wrap(description(row), 5, 5)}\n\n`).join('');
  return `\nUSAGE: \n\n${shortUsage(program, rows)}\n\n\nWhere: \n\n${where}\n${wrap(program, 3, 3)}\n\n`;
}

function description(row: OptionRow): string {
  return row.kind === 'count' && row.max !== undefined ? `${row.help} At most ${row.max}.` : row.help;
}

export function parseErrorText(program: string, rows: readonly OptionRow[], problem: OptionProblem): string {
  const { row, reason } = problem;
  const argument = typeof row === 'string' ? row : argumentId(row);
  return [
    `PARSE ERROR: Argument: ${argument}`,
    `${' '.repeat(REASON_INDENT)}${reason}`,
    '',
    'Brief USAGE: ',
    shortUsage(program, rows),
    '',
    'For complete USAGE and HELP type: ',
    `   ${program} --help`,
    '',
    reason,
    '',
  ].join('\n');
}

function shortUsage(program: string, rows: readonly OptionRow[]): string {
  const ids = rows.map((row) => `[${shortId(row)}]${row.kind === 'texts' ? ' ...' : ''}`);
  return wrap(`${program}  ${ids.join(' ')}`, 3, 3 + Math.min(program.length + 2, 37));
}

/** `-c (--config-path)`, `(--mode)`. */
function argumentId({ flag, name }: OptionRow): string {
  return flag === undefined ? `(--${name})` : `-${flag} (--${name})`;
}

function shortId(row: OptionRow): string {
  const option = row.flag === undefined ? `--${row.name}` : `-${row.flag}`;
  return option + valueName(row);
}

function longId(row: OptionRow): string {
  const short = row.flag === undefined ? '' : `-${row.flag}${valueName(row)},  `;
  const repeat = row.kind === 'texts' ? '  (accepted multiple times)' : '';
  return `${short}--${row.name}${valueName(row)}${repeat}`;
}

function valueName(row: OptionRow): string {
  if (row.kind === 'flag') return '';
  return row.kind === 'count' ? ' <uint32_t>' : ' <string>';
}

/** Breaks at spaces, never inside of `[--option <value>]`, into lines of at most LINE_WIDTH columns. */
function wrap(text: string, firstIndent: number, indent: number): string {
  const lines: string[] = [];
  let line = ' '.repeat(firstIndent);
  let empty = true;
  for (const word of text.match(/\[-[^\]]*\](?: \.\.\.)?|\S+ {2}(?=\[-)|[^\s]+/g) ?? []) {
    if (!empty && line.length + 1 + word.length > LINE_WIDTH) {
      lines.push(line.trimEnd());
      line = ' '.repeat(indent);
      empty = true;
    }
    line += (empty || line.endsWith('  ') ? '' : ' ') + word;
    empty = false;
  }
  lines.push(line);
  return lines.join('\n');
}
