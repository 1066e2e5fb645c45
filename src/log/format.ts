// The log line's layout (--log-format): a pattern of %-flags, compiled once into a list of parts. Flags, widths
// and their meaning are those of the C++ logging library that operators of such proxies know.
//
//   %[-|=][width][!]flag     right-aligned by default, `-` left-aligned, `=` centred; `!` cuts what is wider
//
// A flag that does not exist stays in the line as it was written.

import { escapeControls } from '../base/control-characters.ts';
import type { MessageLevel } from '../base/log-levels.ts';
import { escapeJson, lineMessage, rawMessage } from './escape.ts';
import { formatDateFlag, isDateFlag, LogTime } from './format-time.ts';
import type { LogRecord } from './record.ts';

/** @param threadId of the thread that wrote the record. */
export type RenderRecord = (record: LogRecord, threadId: number) => string;

/** Wider paddings are cut to this many characters. */
const MAX_WIDTH = 64;

const SHORT_LEVELS: Readonly<Record<MessageLevel, string>> = {
  trace: 'T',
  debug: 'D',
  info: 'I',
  warning: 'W',
  error: 'E',
  critical: 'C',
};

type Part = (record: LogRecord, time: LogTime, threadId: number) => string;

type Flags = Readonly<Record<string, Part>>;

const RECORD_FLAGS: Flags = {
  _: (record) => escapeControls(rawMessage(record)),
  j: (record) => escapeJson(rawMessage(record)),
  n: (record) => record.logger,
  l: (record) => record.level,
  L: (record) => SHORT_LEVELS[record.level],
  t: (_record, _time, threadId) => String(threadId),
  P: () => String(process.pid),
  '@': (record) => (record.file === '' ? '' : `${record.file}:${record.line}`),
  s: (record) => record.file.slice(record.file.lastIndexOf('/') + 1),
  g: (record) => record.file,
  '#': (record) => (record.file === '' ? '' : String(record.line)),
  '!': (record) => record.functionName,
  '%': () => '%',
  // Where colours would begin and end.
  '^': () => '',
  $: () => '',
};

/**
 * @param pattern any text; there is no wrong one.
 * @param message the text of the flag `%v`.
 */
export function compileLogFormat(pattern: string, message: (record: LogRecord) => string = lineMessage): RenderRecord {
  const parts = [...parsePattern(pattern, { ...RECORD_FLAGS, v: message })];
  const time = new LogTime();
  return (record, threadId) => {
    time.set(record.timeMs);
    let line = '';
    for (const part of parts) line += part(record, time, threadId);
    return line;
  };
}

const FLAG = /%([-=]?)(\d*)(!?)([\s\S])/g;

function* parsePattern(pattern: string, flags: Flags): Generator<Part> {
  let end = 0;
  for (const match of pattern.matchAll(FLAG)) {
    if (match.index > end) yield literal(pattern.slice(end, match.index));
    const [whole, align = '', width = '', cut = '', letter = ''] = match;
    yield flagPart(flags, { whole, align, width, cut, letter });
    end = match.index + whole.length;
  }
  if (end < pattern.length) yield literal(pattern.slice(end));
}

function literal(text: string): Part {
  return () => text;
}

interface FlagText {
  readonly whole: string;
  readonly align: string;
  readonly width: string;
  readonly cut: string;
  readonly letter: string;
}

function flagPart(flags: Flags, { whole, align, width, cut, letter }: FlagText): Part {
  // `%!` is a flag of its own; the mark for cutting needs a width before it.
  if (cut !== '' && width === '') {
    const functionName = flags['!']!;
    return (record, time, threadId) => functionName(record, time, threadId) + letter;
  }
  const part = findFlag(flags, letter);
  if (part === undefined) return literal(whole);
  if (width === '') return part;
  const columns = Math.min(Number(width), MAX_WIDTH);
  return (record, time, threadId) => pad(part(record, time, threadId), columns, align, cut !== '');
}

function findFlag(flags: Flags, letter: string): Part | undefined {
  if (isDateFlag(letter)) return (_record, time) => formatDateFlag(letter, time);
  return Object.hasOwn(flags, letter) ? flags[letter] : undefined;
}

function pad(text: string, columns: number, align: string, cut: boolean): string {
  const missing = columns - text.length;
  if (missing < 0) return cut ? text.slice(0, columns) : text;
  if (align === '-') return text + ' '.repeat(missing);
  if (align !== '=') return ' '.repeat(missing) + text;
  const before = Math.floor(missing / 2);
  return ' '.repeat(before) + text + ' '.repeat(missing - before);
}
