// The log line's layout (--log-format): a pattern of %-flags, compiled once into a list of parts. Flags, widths
// and their meaning are those of the C++ logging library that operators of such proxies know.
//
//   %[-|=][width][!]flag     right-aligned by default, `-` left-aligned, `=` centred; `!` cuts what is wider
//
// A flag that does not exist stays in the line as it was written.

import type { MessageLevel } from '../base/log-levels.ts';
import { escapeJson, escapeNewlines } from './escape.ts';
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

const RECORD_FLAGS: Readonly<Record<string, Part>> = {
  v: (record) => record.message,
  _: (record) => escapeNewlines(record.message),
  j: (record) => escapeJson(record.message),
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

/** @param pattern any text; there is no wrong one. */
export function compileLogFormat(pattern: string): RenderRecord {
  const parts = [...parsePattern(pattern)];
  const time = new LogTime();
  return (record, threadId) => {
    time.set(record.timeMs);
    let line = '';
    for (const part of parts) line += part(record, time, threadId);
    return line;
  };
}

const FLAG = /%([-=]?)(\d*)(!?)([\s\S])/g;

function* parsePattern(pattern: string): Generator<Part> {
  let end = 0;
  for (const match of pattern.matchAll(FLAG)) {
    if (match.index > end) yield literal(pattern.slice(end, match.index));
    const [whole, align = '', width = '', cut = '', letter = ''] = match;
    yield flagPart(whole, align, width, cut, letter);
    end = match.index + whole.length;
  }
  if (end < pattern.length) yield literal(pattern.slice(end));
}

function literal(text: string): Part {
  return () => text;
}

function flagPart(whole: string, align: string, width: string, cut: string, letter: string): Part {
  // `%!` is a flag of its own; the mark for cutting needs a width before it.
  if (cut !== '' && width === '') {
    const functionName = RECORD_FLAGS['!']!;
    return (record, time, threadId) => functionName(record, time, threadId) + letter;
  }
  const part = findFlag(letter);
  if (part === undefined) return literal(whole);
  if (width === '') return part;
  const columns = Math.min(Number(width), MAX_WIDTH);
  return (record, time, threadId) => pad(part(record, time, threadId), columns, align, cut !== '');
}

function findFlag(letter: string): Part | undefined {
  if (isDateFlag(letter)) return (_record, time) => formatDateFlag(letter, time);
  return Object.hasOwn(RECORD_FLAGS, letter) ? RECORD_FLAGS[letter] : undefined;
}

function pad(text: string, columns: number, align: string, cut: boolean): string {
  const missing = columns - text.length;
  if (missing < 0) return cut ? text.slice(0, columns) : text;
  if (align === '-') return text + ' '.repeat(missing);
  if (align !== '=') return ' '.repeat(missing) + text;
  const before = Math.floor(missing / 2);
  return ' '.repeat(before) + text + ' '.repeat(missing - before);
}
