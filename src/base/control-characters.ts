// Text from outside in a line of a log or on a terminal: it must not end the line, nor steer the terminal.

/** C0 and C1 controls, DEL, and the two separators of lines and paragraphs that some viewers break lines at. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROLS = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/g;

const NAMED_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Control characters as `\n`, `\r`, `\t`, `\x1B` or `\u2028`; all else as it is. */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS, escapeControl);
}

function escapeControl(character: string): string {
  const code = character.charCodeAt(0).toString(16).toUpperCase();
  return NAMED_ESCAPES[character] ?? (code.length > 2 ? `\\u${code}` : `\\x${code.padStart(2, '0')}`);
}
