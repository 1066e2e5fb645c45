// Texts of any kind as values of header fields.

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\x00-\x1f\x7f]/g;

/** The bytes of a text in UTF-8, one character each; control characters, which no field may hold, are question marks. */
export function headerText(text: string): string {
  return Buffer.from(text).toString('latin1').replace(CONTROL, '?');
}
