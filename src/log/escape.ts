// Keeps one message on one line of a log file.

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

/** Line breaks as the two characters `\n`: the flag `%_`. */
export function escapeNewlines(message: string): string {
  return message.replaceAll('\n', '\\n');
}

/** The inside of a JSON string, without its quotes: the flag `%j`. */
export function escapeJson(message: string): string {
  return JSON.stringify(message).slice(1, -1);
}
