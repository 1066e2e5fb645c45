// What editors are told of single values: scalars, enums, and the well-known types that have a JSON form of their own. All
// accept null, which stands for a field that is not set. The readers themselves are src/config/proto/json-*.ts.

import type { Enum, Field, Type } from 'protobufjs/light.js';
import type { FieldOptions } from '../proto/options.ts';
import { parseRule, type RuleTerm } from '../proto/rules/rule.ts';

/** Of draft 7, with what editors understand beside it: `doNotSuggest`, `deprecationMessage`, `errorMessage`. */
export type JsonSchema = { readonly [keyword: string]: unknown };

const SIGNED = '^-?[0-9]+$';
const NUMBER = { type: ['number', 'string', 'null'], pattern: '^(?:-?[0-9.]+(?:[eE][+-]?[0-9]+)?|NaN|-?Infinity)$' };

/** Strings hold numbers as well: canonical JSON writes 64 bits so. */
function integer(minimum: number, maximum: number): JsonSchema {
  return { type: ['integer', 'string', 'null'], pattern: SIGNED, minimum, maximum };
}

const INT32 = integer(-(2 ** 31), 2 ** 31 - 1);
const UINT32 = integer(0, 2 ** 32 - 1);
const INT64 = integer(-(2 ** 63), 2 ** 63);
const UINT64 = integer(0, 2 ** 64);

/** Quoted, and as YAML 1.1 has them. */
const BOOLEAN_WORDS = ['true', 'false', 'yes', 'no', 'on', 'off'].flatMap((word) => [
  word,
  `${word.charAt(0).toUpperCase()}${word.slice(1)}`,
  word.toUpperCase(),
]);

const SCALARS: Readonly<Record<string, JsonSchema>> = {
  int32: INT32,
  sint32: INT32,
  sfixed32: INT32,
  uint32: UINT32,
  fixed32: UINT32,
  int64: INT64,
  sint64: INT64,
  sfixed64: INT64,
  uint64: UINT64,
  fixed64: UINT64,
  double: NUMBER,
  float: NUMBER,
  bool: { anyOf: [{ type: ['boolean', 'null'] }, { enum: BOOLEAN_WORDS, doNotSuggest: true }] },
  string: { type: ['string', 'null'] },
  bytes: { type: ['string', 'null'], pattern: '^[A-Za-z0-9+/_-]*={0,2}$', errorMessage: 'bytes in base64' },
};

const ANY_MAP: JsonSchema = { type: ['object', 'null'] };

const WELL_KNOWN: Readonly<Record<string, JsonSchema>> = {
  Duration: {
    type: ['string', 'null'],
    pattern: '^-?[0-9]{1,12}(?:\\.[0-9]{1,9})?s$',
    errorMessage: 'a duration in seconds such as "0.25s"',
  },
  Timestamp: { type: ['string', 'null'] },
  FieldMask: { type: ['string', 'null'] },
  Struct: ANY_MAP,
  Value: {},
  ListValue: { type: ['array', 'null'] },
};

const GOOGLE = '.google.protobuf.';

export function scalarSchema(type: string): JsonSchema | undefined {
  return SCALARS[type];
}

/** @returns undefined for a message that is its fields, and for Any. */
export function wellKnownSchema(type: Type): JsonSchema | undefined {
  if (!type.fullName.startsWith(GOOGLE)) return undefined;
  const name = type.fullName.slice(GOOGLE.length);
  if (name.endsWith('Value') && name !== 'Value' && name !== 'ListValue') return scalarSchema(type.fields.value!.type);
  return WELL_KNOWN[name];
}

/** Names in any case, or numbers; only the names as they are declared are offered. */
export function enumSchema(type: Enum): JsonSchema {
  const names = Object.keys(type.values);
  const lower = names.map((name) => name.toLowerCase());
  return {
    anyOf: [
      { enum: names },
      { enum: lower.filter((name) => !names.includes(name)), doNotSuggest: true },
      { type: ['integer', 'null'] },
    ],
  };
}

/** What the rules of a field add to the schema of its values, and to that of the list or map of them. */
export interface RuleSchemas {
  readonly value: JsonSchema;
  readonly whole: JsonSchema;
  readonly isRequired: boolean;
}

const NO_RULES: RuleSchemas = { value: {}, whole: {}, isRequired: false };

/** Rules that differ between the generations, or do not count for empty values, are left to the loader. */
export function ruleSchemas(field: Field): RuleSchemas {
  const options = (field.options ?? {}) as FieldOptions;
  const text = options['(proxy.rule)'];
  if (text === undefined || options['(proxy.v2_rule)'] !== undefined) return NO_RULES;
  const rule = parseRule(text);
  if (rule.value.some(({ kind }) => kind === 'or-empty')) return NO_RULES;
  const isSingle = !field.repeated && !field.map;
  // One of several that exclude one another is required only where it is the one.
  const isAlone = field.partOf === null || field.partOf.isProto3Optional;
  return {
    value: Object.assign({}, ...(isSingle ? rule.value : rule.each).map((term) => valueKeywords(term, field))),
    whole: Object.assign({}, ...(isSingle ? [] : rule.value).map(sizeKeywords)),
    isRequired: isSingle && isAlone && rule.value.some(({ kind }) => kind === 'required' || kind === 'non-empty'),
  };
}

const BOUNDS = { '<': 'exclusiveMaximum', '<=': 'maximum', '>': 'exclusiveMinimum', '>=': 'minimum' } as const;

function valueKeywords(term: RuleTerm, field: Field): JsonSchema {
  if (term.kind === 'in') return { enum: [...term.values, null] };
  const isNumber = term.kind === 'bound' && term.measure === 'value' && !field.resolvedType?.name.endsWith('Duration');
  return isNumber ? { [BOUNDS[term.comparison]]: term.limit } : {};
}

function sizeKeywords(term: RuleTerm): JsonSchema {
  if (term.kind !== 'bound' || term.measure !== 'items') return {};
  if (term.comparison === '>=') return { minItems: term.limit };
  return term.comparison === '<=' ? { maxItems: term.limit } : {};
}
