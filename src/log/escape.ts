// Keeps one message on one line of a log file. What a message says may come from outside: a header, a name that DNS has
// given, a key of a file. So the sink escapes every control character of every message, wherever it came from, and the
// only line breaks within a record are those before the frames of an error's stack, which is no part of the message.

import { escapeControls } from '../base/control-characters.ts';
import type { LogRecord } from './record.ts';

const FRAME = '\n    at ';

/** Message and stack as the flag `%v` shows them: one line, and a further one for each frame. */
export function lineMessage({ message, stack }: LogRecord): string {
  const line = escapeControls(message);
  return stack === '' ? line : `${line}\n${escapeControls(stack).replaceAll(escapeControls(FRAME), FRAME)}`;
}

/** Message and stack as they are, for who escapes all of it. */
export function rawMessage({ message, stack }: LogRecord): string {
  const text = message.trimEnd();
  return stack === '' ? text : `${text}\n${stack}`;
}

const NAMED_ESCAPES: Readonly<Record<string, string>> = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '"': '\\"',
  "'": "\\'",
  '\\': '\\\\',
};

/**
 * C escape sequences for quotes, backslashes and control characters (octal where C has no letter). White space
 * at the end stays as it is, so that a viewer still sees the ends of lines; so does text beyond ASCII.
 */
export function escapeLine(line: string): string {
  const text = line.trimEnd();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  const escaped = text.replace(/["'\\\x00-\x1f\x7f]/g, escapeCharacter);
  return escaped + line.slice(text.length);
}

function escapeCharacter(character: string): string {
  return NAMED_ESCAPES[character] ?? `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`;
}

/** The inside of a JSON string, without its quotes: the flag `%j`. */
export function escapeJson(message: string): string {
  return JSON.stringify(message).slice(1, -1);
}
