// Scalars of the protobuf text format. Strings are quoted, enums and booleans are bare words, and nothing is
// converted: a number in quotes is no number here.

import { isUtf8 } from 'node:buffer';
import protobuf, { type Enum, type Field } from 'protobufjs/light.js';
import type { ValueNode } from '../source/node.ts';
import { expected, scalarReaderOf, unknownEnumName } from './json-scalars.ts';
import type { Invalid, ReadContext, ValueReader } from './read-context.ts';

const TRUE_WORDS = new Set(['true', 'True', 't', '1']);
const FALSE_WORDS = new Set(['false', 'False', 'f', '0']);

const FLOAT_WORDS: Readonly<Record<string, number>> = {
  inf: Number.POSITIVE_INFINITY,
  infinity: Number.POSITIVE_INFINITY,
  '-inf': Number.NEGATIVE_INFINITY,
  '-infinity': Number.NEGATIVE_INFINITY,
  nan: Number.NaN,
};

const SPECIAL_READERS: Readonly<Record<string, ValueReader>> = {
  bool: readBool,
  string: readString,
  bytes: readBytes,
  float: readFloat('float'),
  double: readFloat('double'),
};

/** The reader of a field's scalar or enum type; undefined for a message. */
export function textScalarReader(field: Field): ValueReader | undefined {
  if (field.resolvedType instanceof protobuf.Enum) return enumReader(field.resolvedType);
  if (field.resolvedType !== null) return undefined;
  return SPECIAL_READERS[field.type] ?? numberReader(field.type);
}

function isForm(node: ValueNode, form: 'word' | 'number' | 'string'): boolean {
  return node.kind === 'scalar' && node.form === form;
}

function numberReader(type: string): ValueReader {
  const read = scalarReaderOf(type)!;
  return (context, node) => (isForm(node, 'number') ? read(context, node) : expected(context, 'a number', node));
}

function readFloat(type: string): ValueReader {
  const readNumber = numberReader(type);
  return (context, node) => {
    const word = node.kind === 'scalar' && node.form === 'word' ? FLOAT_WORDS[node.text.toLowerCase()] : undefined;
    return word ?? readNumber(context, node);
  };
}

function readBool(context: ReadContext, node: ValueNode): boolean | Invalid {
  if (node.kind === 'scalar' && node.form !== 'string') {
    if (TRUE_WORDS.has(node.text)) return true;
    if (FALSE_WORDS.has(node.text)) return false;
  }
  return expected(context, 'true or false', node);
}

/** Escapes can write any bytes, but a string must be UTF-8. */
function readString(context: ReadContext, node: ValueNode): string | Invalid {
  const bytes = bytesOf(node);
  if (bytes === undefined) return expected(context, 'a string in quotes', node);
  return isUtf8(bytes) ? bytes.toString('utf8') : context.fault('string is not valid UTF-8', node.offset);
}

function readBytes(context: ReadContext, node: ValueNode): Uint8Array | Invalid {
  return bytesOf(node) ?? expected(context, 'bytes in quotes', node);
}

function bytesOf(node: ValueNode): Buffer | undefined {
  return node.kind === 'scalar' && node.form === 'string' ? Buffer.from(node.text, 'latin1') : undefined;
}

function enumReader(type: Enum): ValueReader {
  const readNumber = scalarReaderOf('int32')!;
  return (context, node) => {
    if (isForm(node, 'number')) return readNumber(context, node);
    if (node.kind !== 'scalar' || node.form !== 'word') return expected(context, 'an enum name', node);
    return type.values[node.text] ?? unknownEnumName(context, type, node);
  };
}
