// Byte text: strings of one character per byte, 0 to 255. What comes from the wire is byte text; what comes from the
// configuration may hold any character, and goes to the wire as its UTF-8 bytes.

// biome-ignore lint/suspicious/noControlCharactersInRegex: the range is that of ASCII
const BEYOND_ASCII = /[^\x00-\x7f]/;
const CAPITALS = /[A-Z]+/g;

/** Whether characters and bytes are not the same in it. */
export function isBeyondAscii(text: string): boolean {
  return BEYOND_ASCII.test(text);
}

/** A text of the program's own or of the configuration as its UTF-8 bytes. */
export function utf8Bytes(text: string): string {
  return BEYOND_ASCII.test(text) ? Buffer.from(text).toString('latin1') : text;
}

/** Byte text in lower case; only ASCII knows case, since other bytes are parts of characters. */
export function lowerCaseBytes(text: string): string {
  return BEYOND_ASCII.test(text) ? text.replace(CAPITALS, (capitals) => capitals.toLowerCase()) : text.toLowerCase();
}
