// Byte text as log lines quote it.

import { isBeyondAscii, utf8Bytes } from '../../base/byte-text.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /["\\\x00-\x1f\x7f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const ALL_UNSAFE = /["\\\x00-\x1f\x7f]/g;

/**
 * A value within a log line: what could end the line, or the quotes that the format has put around it, is written
 * as \xHH. A client must not be able to make up log entries.
 */
export function escapeForLog(value: string): string {
  return UNSAFE.test(value) ? value.replace(ALL_UNSAFE, hexEscape) : value;
}

/** Byte text as JSON: bytes that are no UTF-8 become U+FFFD, since a JSON text has to be Unicode. */
export function jsonString(value: string): string {
  if (!isBeyondAscii(value)) return JSON.stringify(value);
  return utf8Bytes(JSON.stringify(Buffer.from(value, 'latin1').toString()));
}

function hexEscape(character: string): string {
  return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`;
}
