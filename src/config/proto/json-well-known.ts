// Well-known types with a JSON form of their own: durations, timestamps, wrappers, field masks, and the
// free-form Struct family.

import type { Message, Type } from 'protobufjs/light.js';
import { MapKey } from '../source/field-path.ts';
import { entryOf, type MapNode, type ValueNode } from '../source/node.ts';
import { expected, scalarReader, setEntry, toLong } from './json-scalars.ts';
import { INVALID, type Invalid, type ReadContext, type ValueReader } from './read-context.ts';

/** About ten thousand years, the protocol's own limit. */
const MAX_SECONDS = 315_576_000_000;

const DURATION = /^(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?s$/;
const TIMESTAMP =
  /^([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))$/;

type MessageFactory = (type: Type) => ValueReader;

const READERS: Readonly<Record<string, MessageFactory>> = {
  '.google.protobuf.Duration': durationReader,
  '.google.protobuf.Timestamp': timestampReader,
  '.google.protobuf.FieldMask': fieldMaskReader,
  '.google.protobuf.Struct': (type) => structReaders(type).struct,
  '.google.protobuf.Value': (type) => structReaders(type).value,
  '.google.protobuf.ListValue': (type) => structReaders(type).list,
};

const ANY = '.google.protobuf.Any';

const WRAPPERS = new Set(
  ['Double', 'Float', 'Int64', 'UInt64', 'Int32', 'UInt32', 'Bool', 'String', 'Bytes'].map(
    (name) => `.google.protobuf.${name}Value`,
  ),
);

/** The reader of a type whose JSON form is not simply its fields; undefined for all others. */
export function wellKnownReader(type: Type): ValueReader | undefined {
  if (WRAPPERS.has(type.fullName)) return wrapperReader(type);
  return READERS[type.fullName]?.(type);
}

/** Whether an Any holding this type keeps it under `value` in JSON. */
export function isWellKnown(type: Type): boolean {
  return type.fullName === ANY || WRAPPERS.has(type.fullName) || Object.hasOwn(READERS, type.fullName);
}

function wrapperReader(type: Type): ValueReader {
  const readValue = scalarReader(type.fields.value!.resolve())!;
  return (context, node) => {
    const value = readValue(context, node);
    return value === INVALID ? INVALID : type.create({ value });
  };
}

function nanosOf(fraction: string | undefined): number {
  return fraction === undefined ? 0 : Number(fraction.padEnd(9, '0'));
}

function scalarText(node: ValueNode): string | undefined {
  return node.kind === 'scalar' && node.form === 'string' ? node.text : undefined;
}

function durationReader(type: Type): ValueReader {
  return (context, node) => {
    if (node.kind === 'map') return durationOfParts(context, type, node);
    const match = DURATION.exec(scalarText(node) ?? '');
    if (match === null) return expected(context, 'a duration in seconds such as "0.25s"', node);
    const [, sign, whole, fraction] = match;
    const seconds = Number(whole);
    const nanos = nanosOf(fraction);
    if (seconds > MAX_SECONDS || (seconds === MAX_SECONDS && nanos > 0)) {
      return context.fault(`duration ${match[0]} is longer than ${MAX_SECONDS}s`, node.offset);
    }
    return secondsAndNanos(type, sign === '-' ? -seconds : seconds, sign === '-' ? -nanos : nanos);
  };
}

/** `{ seconds: 300 }`, as some configurations write them. */
function durationOfParts(context: ReadContext, type: Type, node: MapNode): Message | Invalid {
  const seconds = wholeOf(node, 'seconds');
  const nanos = wholeOf(node, 'nanos');
  const other = node.entries.some(({ key }) => key !== 'seconds' && key !== 'nanos');
  const isWhole = Math.abs(seconds) <= MAX_SECONDS && Math.abs(nanos) < 1e9 && seconds * nanos >= 0;
  if (other || !isWhole) return expected(context, 'a duration in seconds such as "0.25s"', node);
  return secondsAndNanos(type, seconds, nanos);
}

/** @returns NaN for what is no whole number. */
function wholeOf(map: MapNode, key: string): number {
  const value = entryOf(map, key)?.value;
  if (value === undefined) return 0;
  return value.kind === 'scalar' && /^-?\d+$/.test(value.text) ? Number(value.text) : Number.NaN;
}

/** Fields at their default stay unset, as they do when the binary form is decoded. */
function secondsAndNanos(type: Type, seconds: number, nanos: number): Message {
  const message = type.create() as Message & Record<string, unknown>;
  if (seconds !== 0) message.seconds = toLong(BigInt(seconds), false);
  if (nanos !== 0) message.nanos = nanos;
  return message;
}

function timestampReader(type: Type): ValueReader {
  return (context, node) => {
    const match = TIMESTAMP.exec(scalarText(node) ?? '');
    const epochMs = match === null ? Number.NaN : timestampMs(match);
    if (Number.isNaN(epochMs)) return expected(context, 'a time such as "2024-05-01T12:00:00Z"', node);
    return secondsAndNanos(type, Math.floor(epochMs / 1000), nanosOf(match![7]));
  };
}

/** Milliseconds since 1970 without the fraction; NaN for a day or an hour that does not exist. */
function timestampMs(match: RegExpExecArray): number {
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const isRealDay = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  if (!isRealDay || year === 0 || hour > 23 || minute > 59 || second > 59) return Number.NaN;
  const offsetMinutes = Number(match[9] ?? 0) * 60 + Number(match[10] ?? 0);
  const local = date.getTime() + ((hour * 60 + minute) * 60 + second) * 1000;
  return local - (match[8] === '-' ? -offsetMinutes : offsetMinutes) * 60_000;
}

function fieldMaskReader(type: Type): ValueReader {
  return (context, node) => {
    const text = scalarText(node);
    if (text === undefined) return expected(context, 'field paths separated by commas', node);
    const paths = text === '' ? [] : text.split(',').map((path) => path.trim().replace(/[A-Z]/g, snakeCase));
    return type.create({ paths });
  };
}

function snakeCase(capital: string): string {
  return `_${capital.toLowerCase()}`;
}

/** Field numbers of google.protobuf.Value. */
export const VALUE_FIELD = { null: 1, number: 2, string: 3, bool: 4, struct: 5, list: 6 } as const;

interface StructReaders {
  readonly struct: ValueReader;
  readonly value: ValueReader;
  readonly list: ValueReader;
}

/** Readers for the three types that contain one another. */
function structReaders(type: Type): StructReaders {
  const structType = type.root.lookupType('google.protobuf.Struct');
  const valueType = type.root.lookupType('google.protobuf.Value');
  const listType = type.root.lookupType('google.protobuf.ListValue');

  function struct(context: ReadContext, node: ValueNode): Message | Invalid {
    if (node.kind !== 'map') return expected(context, 'a map', node);
    const fields: Record<string, unknown> = {};
    let isValid = true;
    for (const entry of node.entries) {
      context.push(new MapKey(entry.key));
      const read = value(context, entry.value);
      context.pop();
      if (read === INVALID) isValid = false;
      else setEntry(fields, entry.key, read);
    }
    return isValid ? structType.create({ fields }) : INVALID;
  }

  function list(context: ReadContext, node: ValueNode): Message | Invalid {
    if (node.kind !== 'list') return expected(context, 'a list', node);
    const values: unknown[] = [];
    for (const [index, item] of node.items.entries()) {
      context.push(index);
      const read = value(context, item);
      context.pop();
      if (read !== INVALID) values.push(read);
    }
    return values.length === node.items.length ? listType.create({ values }) : INVALID;
  }

  function value(context: ReadContext, node: ValueNode): Message | Invalid {
    if (node.kind === 'map') return wrap(VALUE_FIELD.struct, struct(context, node));
    if (node.kind === 'list') return wrap(VALUE_FIELD.list, list(context, node));
    switch (node.form) {
      case 'null':
        return wrap(VALUE_FIELD.null, 0);
      case 'bool':
        return wrap(VALUE_FIELD.bool, node.text === 'true');
      case 'number':
        return wrap(VALUE_FIELD.number, Number(node.text));
      default:
        return wrap(VALUE_FIELD.string, node.text);
    }
  }

  function wrap(fieldNumber: number, content: unknown): Message | Invalid {
    if (content === INVALID) return INVALID;
    return valueType.create({ [valueType.fieldsById[fieldNumber]!.name]: content });
  }

  return { struct, value, list };
}
