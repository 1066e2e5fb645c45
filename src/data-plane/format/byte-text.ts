// Byte text: strings of one character per byte, 0 to 255. What comes from the wire is byte text; names from the
// configuration may hold any character.

// biome-ignore lint/suspicious/noControlCharactersInRegex: the range is that of ASCII
const BEYOND_ASCII = /[^\x00-\x7f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /["\\\x00-\x1f\x7f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const ALL_UNSAFE = /["\\\x00-\x1f\x7f]/g;

/** A text of the program's own or of the configuration as its UTF-8 bytes. */
export function utf8Bytes(text: string): string {
  return BEYOND_ASCII.test(text) ? Buffer.from(text).toString('latin1') : text;
}

/**
 * A value within a log line: what could end the line, or the quotes that the format has put around it, is written
 * as \xHH. A client must not be able to make up log entries.
 */
export function escapeForLog(value: string): string {
  return UNSAFE.test(value) ? value.replace(ALL_UNSAFE, hexEscape) : value;
}

/** Byte text as JSON: bytes that are no UTF-8 become U+FFFD, since a JSON text has to be Unicode. */
export function jsonString(value: string): string {
  if (!BEYOND_ASCII.test(value)) return JSON.stringify(value);
  return utf8Bytes(JSON.stringify(Buffer.from(value, 'latin1').toString()));
}

function hexEscape(character: string): string {
  return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`;
}
