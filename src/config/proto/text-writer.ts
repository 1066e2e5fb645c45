// A message in the protobuf text format, as text-reader.ts reads it: a line for each value, what is nested two columns further in.
// Strings have octal escapes for what is not ASCII, so that any reader takes them. protobufjs has such a writer too, which takes 3.4 s
// for 16 MiB of bytes; this one takes half a second.

import protobuf, { type Field, type Type } from 'protobufjs/light.js';

type Fields = Readonly<Record<string, unknown>>;

/** @param message fields by their names in the schema; those that are absent, and defaults, are not written. */
export function textOfMessage(type: Type, message: Fields): string {
  const lines: string[] = [];
  addFields(lines, '', type, message);
  return lines.join('');
}

function addFields(lines: string[], indent: string, type: Type, message: Fields): void {
  for (const field of type.fieldsArray) {
    const value = message[field.name];
    if (value === undefined || value === null) continue;
    if (field instanceof protobuf.MapField) throw new Error(`maps such as ${field.fullName} are not written as text`);
    if (field.repeated) for (const each of value as readonly unknown[]) addField(lines, indent, field, each);
    else if (field.partOf !== null || !isDefault(value)) addField(lines, indent, field, value);
  }
}

function addField(lines: string[], indent: string, field: Field, value: unknown): void {
  if (!(field.resolvedType instanceof protobuf.Type)) {
    lines.push(`${indent}${field.name}: ${scalarText(field, value)}\n`);
    return;
  }
  lines.push(`${indent}${field.name} {\n`);
  addFields(lines, `${indent}  `, field.resolvedType, value as Fields);
  lines.push(`${indent}}\n`);
}

/** Of a field that does not tell whether it was set. */
function isDefault(value: unknown): boolean {
  return value === 0 || value === false || value === '' || (value instanceof Uint8Array && value.length === 0);
}

function scalarText({ resolvedType }: Field, value: unknown): string {
  if (typeof value === 'string') return quoted(Buffer.from(value));
  if (value instanceof Uint8Array) return quoted(value);
  const name = resolvedType instanceof protobuf.Enum ? resolvedType.valuesById[value as number] : undefined;
  return name ?? String(value);
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** By their codes: letters behind the backslash. */
const SHORT_ESCAPES: Readonly<Record<number, number>> = { 9: 0x74, 10: 0x6e, 13: 0x72, 34: QUOTE, 92: BACKSLASH };

/** Bodies are long: no text is made for each byte. */
function quoted(bytes: Uint8Array): string {
  const text = Buffer.allocUnsafe(4 * bytes.length + 2);
  let end = text.writeUInt8(QUOTE, 0);
  for (const byte of bytes) {
    const letter = SHORT_ESCAPES[byte];
    if (letter !== undefined) {
      text[end++] = BACKSLASH;
      text[end++] = letter;
    } else if (byte >= 0x20 && byte < 0x7f) {
      text[end++] = byte;
    } else {
      text[end++] = BACKSLASH;
      for (const shift of [6, 3, 0]) text[end++] = 0x30 + ((byte >> shift) & 7);
    }
  }
  text[end++] = QUOTE;
  return text.toString('latin1', 0, end);
}
