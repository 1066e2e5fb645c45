// Turns the rule of one field into a function over the messages that have the field: finds out whether the
// field is set, opens wrappers, walks lists and maps, and reports the first broken term of each value.

import protobuf from 'protobufjs/light.js';
import { entryPath, fieldPath, itemPath } from '../../source/field-path.ts';
import { int64ToNumber } from '../int64.ts';
import type { Generation } from '../message-names.ts';
import type { FieldOptions } from '../options.ts';
import { parseRule, type RuleTerm } from './rule.ts';
import { listCheck, type ValueCheck, valueCheck } from './value-checks.ts';
import { type DurationValue, durationText } from './value-text.ts';

export type MessageFields = Readonly<Record<string, unknown>>;
/** @param path of the offending value from the root message. */
export type Report = (path: string, message: string) => void;
/** @param path of the message that has the field. */
export type FieldCheck = (message: MessageFields, path: string, report: Report) => void;

const WRAPPER = /^\.google\.protobuf\.(?:Double|Float|U?Int(?:32|64)|Bool|String|Bytes)Value$/;
const DURATION = '.google.protobuf.Duration';
/** About 10,000 years; the limit of the type itself. */
const LONGEST_DURATION_SECONDS = 315_576_000_000;

/** @returns undefined when nothing can be wrong with the field by itself. */
export function fieldCheck(field: protobuf.Field, generation: Generation): FieldCheck | undefined {
  const options = (field.options ?? {}) as FieldOptions;
  if (options['(proxy.removed)'] === 'refuse') return removedFieldCheck(field);
  const newer = ruleCheck(field, options['(proxy.rule)'] ?? '');
  const olderRule = options['(proxy.v2_rule)'];
  if (generation === 'v3' || newer === undefined || olderRule === undefined) return newer;
  const older = ruleCheck(field, olderRule);
  return older && eitherCheck(newer, older);
}

/** A v2 resource may keep to the looser of the two generations' rules. */
function eitherCheck(newer: FieldCheck, older: FieldCheck): FieldCheck {
  return (message, path, report) => {
    let passes = true;
    const note = () => {
      passes = false;
    };
    newer(message, path, note);
    if (!passes) older(message, path, report);
  };
}

function removedFieldCheck(field: protobuf.Field): FieldCheck {
  return (message, path, report) => {
    const value = message[field.name];
    const isSet = field.repeated
      ? (value as unknown[]).length > 0
      : Object.hasOwn(message, field.name) && value != null;
    if (isSet) report(fieldPath(path, field.name), 'this field was removed from the interface; take it out');
  };
}

function ruleCheck(field: protobuf.Field, text: string): FieldCheck | undefined {
  const rule = parseRule(text);
  if (field.map) return rule.keys.length > 0 ? mapCheck(field, rule.keys) : undefined;
  if (field.repeated) return repeatedCheck(field, rule.value, rule.each);
  return singularCheck(field, rule.value);
}

function mapCheck(field: protobuf.Field, terms: readonly RuleTerm[]): FieldCheck {
  const check = allOf(terms, undefined);
  return (message, path, report) => {
    for (const key of Object.keys(message[field.name] as object)) {
      const complaint = check(key);
      if (complaint) report(entryPath(fieldPath(path, field.name), key), `the key ${complaint}`);
    }
  };
}

function repeatedCheck(
  field: protobuf.Field,
  terms: readonly RuleTerm[],
  itemTerms: readonly RuleTerm[],
): FieldCheck | undefined {
  if (terms.length === 0 && itemTerms.length === 0) return undefined;
  const listChecks = terms.map(listCheck);
  const checkItem = itemTerms.length > 0 ? allOf(itemTerms, enumOf(field)) : undefined;
  return (message, path, report) => {
    const list = message[field.name] as readonly unknown[];
    for (const check of listChecks) {
      const complaint = check(list);
      if (complaint) report(fieldPath(path, field.name), complaint);
    }
    if (checkItem === undefined) return;
    for (const [index, item] of list.entries()) {
      const complaint = checkItem(item);
      if (complaint) report(itemPath(fieldPath(path, field.name), index), complaint);
    }
  };
}

function singularCheck(field: protobuf.Field, terms: readonly RuleTerm[]): FieldCheck | undefined {
  const isDuration = field.resolvedType?.fullName === DURATION;
  if (terms.length === 0 && !isDuration) return undefined;
  if (!(field.resolvedType instanceof protobuf.Type)) return scalarCheck(field, terms);

  // A member of a oneof that is not set is no fault of its own.
  const isRequired = terms.some((term) => term.kind === 'required') && field.partOf == null;
  const check = messageCheck(field.resolvedType, terms);
  return (message, path, report) => {
    const value = message[field.name];
    if (value == null) {
      if (isRequired) report(fieldPath(path, field.name), 'must be set');
      return;
    }
    const complaint = check?.(value);
    if (complaint) report(fieldPath(path, field.name), complaint);
  };
}

function scalarCheck(field: protobuf.Field, terms: readonly RuleTerm[]): FieldCheck {
  const check = allOf(terms, enumOf(field));
  const isMember = field.partOf != null;
  return (message, path, report) => {
    if (isMember && !Object.hasOwn(message, field.name)) return;
    const value = message[field.name];
    const complaint = value == null ? undefined : check(value);
    if (complaint) report(fieldPath(path, field.name), complaint);
  };
}

/** Terms on a message speak of the number or string that it wraps, or of the length of time that it is. */
function messageCheck(type: protobuf.Type, terms: readonly RuleTerm[]): ValueCheck | undefined {
  const valueTerms = terms.filter((term) => term.kind !== 'required');
  const check = valueTerms.length > 0 ? allOf(valueTerms, undefined) : undefined;
  if (type.fullName === DURATION) {
    return (value) =>
      durationComplaint(value as DurationValue) ?? check?.(value) ?? negativeComplaint(value as DurationValue);
  }
  if (check === undefined || !WRAPPER.test(type.fullName)) return check;
  return (wrapper) => check((wrapper as { readonly value: unknown }).value);
}

/** What the type itself asks of a duration: within its limits, both parts of one sign. */
function durationComplaint(duration: DurationValue): string | undefined {
  const seconds = int64ToNumber(duration.seconds);
  if (Math.abs(seconds) > LONGEST_DURATION_SECONDS) {
    return `${durationText(duration)} exceeds the limit ${LONGEST_DURATION_SECONDS}s`;
  }
  if (Math.abs(duration.nanos) > 999_999_999 || seconds * duration.nanos < 0) {
    return `${duration.seconds} seconds and ${duration.nanos} nanoseconds are not a duration`;
  }
  return undefined;
}

/** No length of time that is configured goes backwards; a rule of the field has the first word. */
function negativeComplaint(duration: DurationValue): string | undefined {
  const isNegative = int64ToNumber(duration.seconds) < 0 || duration.nanos < 0;
  return isNegative ? `${durationText(duration)} is negative` : undefined;
}

function allOf(terms: readonly RuleTerm[], enumType: protobuf.Enum | undefined): ValueCheck {
  const mayBeEmpty = terms.some((term) => term.kind === 'or-empty');
  const checks = terms.filter((term) => term.kind !== 'or-empty').map((term) => valueCheck(term, enumType));
  return (value) => {
    if (mayBeEmpty && value === '') return undefined;
    for (const check of checks) {
      const complaint = check(value);
      if (complaint !== undefined) return complaint;
    }
    return undefined;
  };
}

function enumOf(field: protobuf.Field): protobuf.Enum | undefined {
  return field.resolvedType instanceof protobuf.Enum ? field.resolvedType : undefined;
}
