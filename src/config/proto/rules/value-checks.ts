// One check per rule term: takes a value, gives the complaint or undefined. Values are as protobufjs holds
// them, wrappers already opened. Every check is compiled once per field.

import type protobuf from 'protobufjs/light.js';
import { type Int64, int64ToNumber } from '../int64.ts';
import type { Bound, Comparison, RuleTerm } from './rule.ts';
import { type DurationValue, durationText, quote, valueText } from './value-text.ts';

/** @returns what is wrong, for a sentence that starts with the field's path; undefined when nothing is. */
export type ValueCheck = (value: unknown) => string | undefined;

type Compare = (value: number, limit: number) => boolean;

/** NaN satisfies no bound, so a bound is what must hold and not what must not. */
const HOLDS: Readonly<Record<Comparison, Compare>> = {
  '<': (value, limit) => value < limit,
  '<=': (value, limit) => value <= limit,
  '>': (value, limit) => value > limit,
  '>=': (value, limit) => value >= limit,
};

const VALUE_COMPLAINT: Readonly<Record<Comparison, string>> = {
  '<': 'is not below',
  '<=': 'exceeds the limit',
  '>': 'is not above',
  '>=': 'is below the minimum',
};

const COUNT_LIMIT: Readonly<Record<Comparison, string>> = {
  '<': 'fewer than',
  '<=': 'at most',
  '>': 'more than',
  '>=': 'at least',
};

/** The check of a term on single values; the enum is that of the field, for terms that need it. */
export function valueCheck(term: RuleTerm, enumType: protobuf.Enum | undefined): ValueCheck {
  switch (term.kind) {
    case 'non-empty':
      return checkNonEmpty;
    case 'known':
      return knownValueCheck(enumType!);
    case 'not':
      return (value) => (value === term.value ? `${enumText(enumType!, term.value)} is not allowed here` : undefined);
    case 'path-prefix':
      return checkPathPrefix;
    case 'true':
      return (value) => (value === true ? undefined : 'can only be true');
    case 'header':
      return HEADER_CHECKS[`${term.isStrict ? 'strict' : 'lenient'}-${term.part}`];
    case 'in':
      return membershipCheck(term.values);
    case 'prefix':
      return (value) =>
        String(value).startsWith(term.text) ? undefined : `${valueText(value)} does not start with ${quote(term.text)}`;
    case 'suffix':
      return (value) =>
        String(value).endsWith(term.text) ? undefined : `${valueText(value)} does not end with ${quote(term.text)}`;
    case 'bound':
      return boundCheck(term);
    case 'required':
    case 'or-empty':
    case 'unique':
      throw new Error(`"${term.kind}" is no rule for single values`);
  }
}

function checkNonEmpty(value: unknown): string | undefined {
  return (value as string | Uint8Array).length === 0 ? 'must not be empty' : undefined;
}

function knownValueCheck(enumType: protobuf.Enum): ValueCheck {
  const names = enumType.valuesById;
  return (value) =>
    names[value as number] === undefined ? `${valueText(value)} is not a value of ${enumType.name}` : undefined;
}

function enumText(enumType: protobuf.Enum, value: number): string {
  return `${enumType.valuesById[value]} (${value})`;
}

/** Characters that would let a configured header split the head it is written into. */
const HEAD_BREAKERS = /[\r\n\0]/;
/** RFC 9110 token, with the colon that starts a pseudo header. */
const TOKEN = /^:?[\w!#$%&'*+\-.^`|~]+$/;
/** RFC 9110 field value: no control characters but the tab. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\uffff]*$/;

const BREAKS = 'it holds CR, LF or NUL';
const HEADER_CHECKS: Readonly<Record<`${'lenient' | 'strict'}-${'name' | 'value'}`, ValueCheck>> = {
  'lenient-name': (value) =>
    HEAD_BREAKERS.test(String(value)) ? `${valueText(value)} is not a header name: ${BREAKS}` : undefined,
  // Values are not quoted: they may prove who somebody is.
  'lenient-value': (value) => (HEAD_BREAKERS.test(String(value)) ? `is not a header value: ${BREAKS}` : undefined),
  'strict-name': (value) => (TOKEN.test(String(value)) ? undefined : `${valueText(value)} is not a header name`),
  'strict-value': (value) =>
    FIELD_VALUE.test(String(value)) ? undefined : 'is not a header value: it holds control characters',
};

function checkPathPrefix(value: unknown): string | undefined {
  const path = String(value);
  if (path.length >= 2 && !path.endsWith('/') && !/[?#]/.test(path)) return undefined;
  return `${quote(path)} is not a path prefix: it must not end in "/" nor hold "?" or "#"`;
}

function membershipCheck(values: readonly string[]): ValueCheck {
  const allowed = new Set(values);
  return (value) =>
    allowed.has(value as string) ? undefined : `${valueText(value)} is not one of ${values.join(', ')}`;
}

function boundCheck(bound: Bound): ValueCheck {
  const holds = HOLDS[bound.comparison];
  if (bound.measure === 'value') {
    const complaint = `${VALUE_COMPLAINT[bound.comparison]} ${bound.limitText}`;
    return (value) => (holds(magnitude(value), bound.limit) ? undefined : `${magnitudeText(value)} ${complaint}`);
  }
  const sizeOf = bound.measure === 'bytes' ? byteLength : characterCount;
  const unit = bound.measure === 'bytes' ? 'bytes' : 'characters';
  const expected = `${COUNT_LIMIT[bound.comparison]} ${bound.limitText} ${unit} are allowed`;
  return (value) => {
    const size = sizeOf(value as string | Uint8Array);
    return holds(size, bound.limit) ? undefined : `has ${size} ${unit}, ${expected}`;
  };
}

/** Seconds of a duration, or the number itself. */
function magnitude(value: unknown): number {
  if (typeof value === 'number') return value;
  if (!isDuration(value)) return int64ToNumber(value as Int64);
  return int64ToNumber(value.seconds) + value.nanos / 1e9;
}

function magnitudeText(value: unknown): string {
  return isDuration(value) ? durationText(value) : valueText(value);
}

function isDuration(value: unknown): value is DurationValue {
  return typeof value === 'object' && value !== null && 'seconds' in value;
}

function byteLength(value: string | Uint8Array): number {
  return typeof value === 'string' ? Buffer.byteLength(value) : value.length;
}

function characterCount(value: string | Uint8Array): number {
  return [...value].length;
}

/** The check of a term on a whole list. */
export function listCheck(term: RuleTerm): (list: readonly unknown[]) => string | undefined {
  if (term.kind === 'unique') return checkUnique;
  if (term.kind !== 'bound' || term.measure !== 'items') throw new Error(`"${term.kind}" is no rule for lists`);
  const holds = HOLDS[term.comparison];
  const expected = `${COUNT_LIMIT[term.comparison]} ${term.limitText} ${term.limit === 1 ? 'entry' : 'entries'}`;
  return (list) => {
    if (holds(list.length, term.limit)) return undefined;
    return list.length === 0 ? `must have ${expected}` : `has ${list.length} entries, must have ${expected}`;
  };
}

function checkUnique(list: readonly unknown[]): string | undefined {
  const seen = new Set<unknown>();
  for (const item of list) {
    if (seen.has(item)) return `${valueText(item)} appears more than once`;
    seen.add(item);
  }
  return undefined;
}
