// Scalars of canonical JSON, as YAML and JSON sources give them, for every protobuf scalar type.
// Each reader takes a node and gives the value as protobufjs holds it, or reports what it wanted instead.

import protobuf, { type Enum, type Field } from 'protobufjs/light.js';
import { nearestName } from '../../base/nearest-name.ts';
import { quote, type ScalarNode, type ValueNode } from '../source/node.ts';
import { exactInteger } from './decimal.ts';
import { INVALID, type Invalid, type ReadContext, suggest, type ValueReader } from './read-context.ts';

interface IntegerRange {
  readonly min: bigint;
  readonly max: bigint;
}

const INT32: IntegerRange = { min: -(2n ** 31n), max: 2n ** 31n - 1n };
const UINT32: IntegerRange = { min: 0n, max: 2n ** 32n - 1n };
const INT64: IntegerRange = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
const UINT64: IntegerRange = { min: 0n, max: 2n ** 64n - 1n };

/** Largest finite float of 32 bits; beyond it a value would silently turn into infinity. */
const FLOAT_MAX = 3.4028234663852886e38;

const NUMBER = /^-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;
/** Integers that need no exact arithmetic; the common case. */
const SMALL_INTEGER = /^[0-9]{1,9}$/;
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

const SCALAR_READERS: Readonly<Record<string, ValueReader>> = {
  int32: smallInteger(INT32),
  sint32: smallInteger(INT32),
  sfixed32: smallInteger(INT32),
  uint32: smallInteger(UINT32),
  fixed32: smallInteger(UINT32),
  int64: longInteger(INT64, false),
  sint64: longInteger(INT64, false),
  sfixed64: longInteger(INT64, false),
  uint64: longInteger(UINT64, true),
  fixed64: longInteger(UINT64, true),
  double: (context, node) => readFloat(context, node, Number.MAX_VALUE),
  float: (context, node) => {
    const value = readFloat(context, node, FLOAT_MAX);
    return value === INVALID ? INVALID : Math.fround(value);
  },
  bool: readBool,
  string: readString,
  bytes: readBytes,
};

/** The reader of a field's scalar or enum type; undefined for a message. */
export function scalarReader(field: Pick<Field, 'type' | 'resolvedType'>): ValueReader | undefined {
  if (field.resolvedType instanceof protobuf.Enum) return enumReader(field.resolvedType);
  return field.resolvedType === null ? scalarReaderOf(field.type) : undefined;
}

export function scalarReaderOf(type: string): ValueReader | undefined {
  return SCALAR_READERS[type];
}

/** Text that may hold a number: a number, or a string, since YAML hands out fractions and long integers as such. */
function numericText(node: ValueNode): string | undefined {
  if (node.kind !== 'scalar' || (node.form !== 'number' && node.form !== 'string')) return undefined;
  return node.text;
}

export function expected(context: ReadContext, what: string, node: ValueNode): Invalid {
  return context.fault(`expected ${what}, got ${context.describe(node)}`, node.offset);
}

function readInteger(context: ReadContext, node: ValueNode, range: IntegerRange): bigint | Invalid {
  const text = numericText(node);
  const value = text === undefined ? 'not a number' : exactInteger(text);
  if (value === 'not a number') return expected(context, 'an integer', node);
  if (value === 'fraction') return expected(context, 'a whole number', node);
  if (value === 'out of range' || value < range.min || value > range.max) {
    return context.fault(`${context.describe(node)} is outside ${range.min} to ${range.max}`, node.offset);
  }
  return value;
}

function smallInteger(range: IntegerRange): ValueReader {
  return (context, node) => {
    if (node.kind === 'scalar' && node.form === 'number' && SMALL_INTEGER.test(node.text)) return Number(node.text);
    const value = readInteger(context, node, range);
    return value === INVALID ? INVALID : Number(value);
  };
}

function longInteger(range: IntegerRange, unsigned: boolean): ValueReader {
  return (context, node) => {
    const value = readInteger(context, node, range);
    return value === INVALID ? INVALID : toLong(value, unsigned);
  };
}

/** A 64-bit integer in the form in which protobufjs decodes it. */
export function toLong(value: bigint, unsigned: boolean): unknown {
  const low = Number(BigInt.asIntN(32, value));
  const high = Number(BigInt.asIntN(32, value >> 32n));
  return new protobuf.util.Long(low, high, unsigned);
}

function readFloat(context: ReadContext, node: ValueNode, max: number): number | Invalid {
  const text = numericText(node);
  if (text === 'NaN' || text === 'Infinity' || text === '-Infinity') return Number(text);
  if (text === undefined || !NUMBER.test(text)) return expected(context, 'a number', node);
  const value = Number(text);
  if (Math.abs(value) <= max) return value;
  return context.fault(`${context.describe(node)} is outside ${-max} to ${max}`, node.offset);
}

function readBool(context: ReadContext, node: ValueNode): boolean | Invalid {
  // Quoted booleans are common in generated files and cannot mean anything else.
  const isText = node.kind === 'scalar' && (node.form === 'bool' || node.form === 'string');
  if (isText && node.text === 'true') return true;
  if (isText && node.text === 'false') return false;
  return expected(context, 'true or false', node);
}

function readString(context: ReadContext, node: ValueNode): string | Invalid {
  if (node.kind !== 'scalar' || node.form !== 'string') return expectedString(context, node);
  if (!node.text.isWellFormed()) return context.fault('string holds half of a surrogate pair', node.offset);
  return node.text;
}

function expectedString(context: ReadContext, node: ValueNode): Invalid {
  const isQuotable = node.kind === 'scalar' && (node.form === 'number' || node.form === 'bool');
  const hint = isQuotable ? `; put it in quotes${context.secrecy === 0 ? `: ${quote(node.raw)}` : ''}` : '';
  return context.fault(`expected a string, got ${context.describe(node)}${hint}`, node.offset);
}

function readBytes(context: ReadContext, node: ValueNode): Uint8Array | Invalid {
  const text = node.kind === 'scalar' && node.form === 'string' ? node.text : undefined;
  if (text === undefined || !isBase64(text)) return expected(context, 'bytes in base64', node);
  // Buffer reads both alphabets, with or without padding.
  return Buffer.from(text, 'base64');
}

function isBase64(text: string): boolean {
  if (!BASE64.test(text)) return false;
  const digits = text.replace(/=+$/, '').length;
  const padding = text.length - digits;
  return digits % 4 !== 1 && (padding === 0 || (digits + padding) % 4 === 0);
}

/** Names in any case, both generations' names where they differ, or a number, which rules judge later. */
function enumReader(type: Enum): ValueReader {
  const byName = new Map(Object.entries(type.values).map(([name, value]) => [name.toUpperCase(), value]));
  const readNumber = smallInteger(INT32);
  const isNull = type.fullName === '.google.protobuf.NullValue';
  return (context, node) => {
    if (node.kind !== 'scalar') return expected(context, `one of ${listNames(type)}`, node);
    if (node.form === 'number') return readNumber(context, node);
    if (node.form === 'null' && isNull) return 0;
    const value = byName.get(enumText(node).toUpperCase());
    if (value !== undefined) return value;
    if (node.form === 'string' && /^-?[0-9]+$/.test(node.text)) return readNumber(context, node);
    return unknownEnumName(context, type, node);
  };
}

/** An unquoted `ON` or `NO` is a boolean to YAML, but a name is meant here. */
function enumText(node: ScalarNode): string {
  return node.form === 'bool' ? node.raw : node.text;
}

export function unknownEnumName(context: ReadContext, type: Enum, node: ScalarNode): Invalid {
  const near = suggest(nearestName(enumText(node), Object.keys(type.values)));
  return context.fault(`${quote(enumText(node))} is not one of ${listNames(type)}${near}`, node.offset);
}

/** Enum names that a message lists before it stops. */
const NAMES_SHOWN = 12;

function listNames(type: Enum): string {
  const names = Object.keys(type.values);
  const shown = names.slice(0, NAMES_SHOWN).join(', ');
  return names.length > NAMES_SHOWN ? `${shown}, …` : shown;
}

/** Sets a map entry whatever its key; a plain assignment to `__proto__` would be lost. */
export function setEntry(map: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') map[key] = value;
  else Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
}
