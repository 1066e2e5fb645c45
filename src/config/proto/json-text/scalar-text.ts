// Values of protobuf as JSON has them: numbers, times, bytes.

import type { Reader } from 'protobufjs/light.js';
import { type OutputField, OutputKind, type ScalarName } from './output-plan.ts';

const NANOS_DIGITS = 9;

/** A simple value of the reader. */
export function scalarText(
  reader: Reader,
  kind: OutputKind,
  scalar: ScalarName,
  enumNames: OutputField['enumNames'],
): string {
  switch (kind) {
    case OutputKind.string:
      return JSON.stringify(reader.string());
    case OutputKind.bytes:
      return bytesText(reader.bytes());
    case OutputKind.bool:
      return String(reader.bool());
    case OutputKind.enum: {
      const value = reader.int32();
      const name = enumNames[value];
      return name === undefined ? String(value) : JSON.stringify(name);
    }
    case OutputKind.float:
      return numberText(shortestFloat(reader.float()));
    case OutputKind.double:
      return numberText(reader.double());
    case OutputKind.long:
      return `"${String(reader[scalar]())}"`;
    default:
      return String(reader[scalar]());
  }
}

/** What a wrapper with nothing in it says. */
export function defaultText(kind: OutputKind): string {
  if (kind === OutputKind.string || kind === OutputKind.bytes) return '""';
  if (kind === OutputKind.bool) return 'false';
  return kind === OutputKind.long ? '"0"' : '0';
}

export function bytesText(bytes: Uint8Array): string {
  return `"${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')}"`;
}

/** What JSON has no number for is a string. */
export function numberText(value: number): string {
  return Number.isFinite(value) ? (Object.is(value, -0) ? '-0' : String(value)) : `"${value}"`;
}

/** The number with the fewest digits that the same 32 bits come of. */
function shortestFloat(value: number): number {
  for (let digits = 6; digits < NANOS_DIGITS; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

interface SecondsAndNanos {
  readonly seconds: number;
  readonly nanos: number;
}

/** The fields of a Duration or Timestamp, up to `end`. */
function secondsAndNanos(reader: Reader, end: number): SecondsAndNanos {
  let seconds = 0;
  let nanos = 0;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) seconds = Number(String(reader.int64()));
    else if (tag >>> 3 === 2) nanos = reader.int32();
    else reader.skipType(tag & 7);
  }
  return { seconds, nanos };
}

export function durationText(reader: Reader, end: number): string {
  const { seconds, nanos } = secondsAndNanos(reader, end);
  const sign = seconds < 0 || nanos < 0 ? '-' : '';
  return `"${sign}${Math.abs(seconds)}${fractionText(Math.abs(nanos))}s"`;
}

export function timestampText(reader: Reader, end: number): string {
  const { seconds, nanos } = secondsAndNanos(reader, end);
  return `"${new Date(seconds * 1000).toISOString().slice(0, 19)}${fractionText(nanos)}Z"`;
}

/** Of 0, 3, 6 or 9 digits. */
function fractionText(nanos: number): string {
  if (nanos === 0) return '';
  return `.${String(nanos)
    .padStart(NANOS_DIGITS, '0')
    .replace(/(?:000)+$/, '')}`;
}

/** Paths in the form of JSON's names. */
export function fieldMaskText(reader: Reader, end: number): string {
  const paths: string[] = [];
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) paths.push(reader.string().replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()));
    else reader.skipType(tag & 7);
  }
  return JSON.stringify(paths.join(','));
}
