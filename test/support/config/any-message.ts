// Messages of the schema with fields and values as they come, for properties of what is made of messages.

import { Enum, type Field, type Type } from 'protobufjs/light.js';
import { RandomSequence } from '../../../src/base/random.ts';
import { fieldOptions } from '../../../src/config/proto/root.ts';
import { encodeMessage } from '../../../src/config/proto/wire-parts.ts';

/** Choices that a seed makes, always the same. */
export class Draw {
  readonly #random: RandomSequence;

  constructor(seed: number) {
    this.#random = new RandomSequence(seed);
  }

  /** 0 to `max`. */
  nat(max: number): number {
    return Math.floor((this.#random.u32() / 2 ** 32) * (max + 1));
  }

  of<Item>(items: readonly Item[]): Item {
    return items[this.nat(items.length - 1)]!;
  }

  some<Item>(items: readonly Item[], atMost: number): Item[] {
    const left = [...items];
    const count = Math.min(left.length, this.nat(atMost));
    return Array.from({ length: count }, () => left.splice(this.nat(left.length - 1), 1)[0]!);
  }

  boolean(): boolean {
    return this.nat(1) === 1;
  }
}

const DEEPEST = 5;
const HEADER_VALUE = '.proxy.config.core.v3.HeaderValue';
const SECRET_NAMES: readonly string[] = ['password', 'apiToken', 'private-key', 'client_secret'];
const NAMES = ['a', 'b_c', 'Zone', 'x-y', 'naïve', ''];
const DOUBLES = [
  0,
  1,
  -1,
  0.1,
  1e21,
  -1.5e-9,
  123456789.125,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
];

export interface MessageOptions {
  /** The value of a text, which may stand where nobody is to see it. */
  readonly textOf: (isHidden: boolean) => string;
  /** Free-form JSON has names of secrets, and headers those of credentials. */
  readonly namesSecrets?: boolean;
  readonly skips?: (field: Field) => boolean;
  /** Types that an Any may hold. */
  readonly contents: readonly Type[];
}

/** Fields that are set are own ones, as in messages that were read. */
export function anyMessage(draw: Draw, type: Type, options: MessageOptions, depth = 0): Record<string, unknown> {
  const known = WELL_KNOWN[type.fullName];
  if (known !== undefined) return known(draw, options, depth);
  if (type.fullName === HEADER_VALUE) return headerValue(draw, options);
  const message: Record<string, unknown> = {};
  const chosen = draw.some(type.fieldsArray, depth >= DEEPEST ? 2 : 6);
  for (const field of chosen) {
    if (options.skips?.(field.resolve()) === true) continue;
    field.resolve();
    const siblings = field.partOf?.oneof ?? [];
    if (siblings.some((name) => Object.hasOwn(message, name))) continue;
    const isDeep = field.resolvedType !== null && !(field.resolvedType instanceof Enum);
    if (isDeep && depth >= DEEPEST) continue;
    const hides = fieldOptions(field)['(proxy.sensitive)'] === true;
    const value = (): unknown => fieldValue(draw, field, hides ? hidden(options) : options, depth);
    if (field.map) message[field.name] = { [mapKey(draw, field)]: value() };
    else if (field.repeated) message[field.name] = Array.from({ length: draw.nat(3) }, value);
    else message[field.name] = value();
  }
  return message;
}

/** The same where nothing is to be seen. */
function hidden(options: MessageOptions): MessageOptions {
  return { ...options, textOf: () => options.textOf(true) };
}

function headerValue(draw: Draw, options: MessageOptions): Record<string, unknown> {
  const isCredential = options.namesSecrets === true && draw.boolean();
  const value = options.textOf(isCredential);
  return { key: isCredential ? draw.of(['Authorization', 'cookie', 'x-api-key']) : 'x-plain', value };
}

function mapKey(draw: Draw, field: Field): string {
  const { keyType } = field as Field & { keyType: string };
  if (keyType === 'string') return draw.of(NAMES);
  return keyType === 'bool' ? 'true' : String(draw.nat(2 ** 31 - 1));
}

function fieldValue(draw: Draw, field: Field, options: MessageOptions, depth: number): unknown {
  const { resolvedType } = field;
  if (resolvedType instanceof Enum) return draw.of(Object.values(resolvedType.values));
  if (resolvedType !== null) return anyMessage(draw, resolvedType as Type, options, depth + 1);
  return scalar(draw, field.type, () => options.textOf(false));
}

function scalar(draw: Draw, type: string, text: () => string): unknown {
  switch (type) {
    case 'string':
      return text();
    case 'bytes':
      return Buffer.from(text());
    case 'bool':
      return draw.boolean();
    case 'float':
      return Math.fround(draw.of(DOUBLES));
    case 'double':
      return draw.of(DOUBLES);
    case 'int64':
    case 'sint64':
    case 'sfixed64':
      return draw.of([1, -1, 2 ** 53 - 1, -(2 ** 53 - 1), draw.nat(2 ** 40)]);
    case 'uint64':
    case 'fixed64':
      return draw.of([1, 2 ** 53 - 1, draw.nat(2 ** 40)]);
    default:
      return draw.of([1, 2 ** 31 - 1, type.startsWith('u') || type === 'fixed32' ? 2 ** 32 - 1 : -(2 ** 31)]);
  }
}

type MakeMessage = (draw: Draw, options: MessageOptions, depth: number) => Record<string, unknown>;

const WELL_KNOWN: Readonly<Record<string, MakeMessage>> = {
  '.google.protobuf.Any': any,
  '.google.protobuf.Struct': struct,
  '.google.protobuf.Value': value,
  '.google.protobuf.ListValue': list,
  '.google.protobuf.FieldMask': (draw) => ({ paths: draw.some(['a', 'b_c.d', 'e_f_g'], 3) }),
  '.google.protobuf.Duration': (draw) => {
    const sign = draw.of([1, -1]);
    const [seconds, nanos] = [draw.nat(1_000_000), draw.of([0, 1, 250_000_000, 999_999_000])];
    return { seconds: sign * seconds, nanos: sign * nanos };
  },
  '.google.protobuf.Timestamp': (draw) => ({
    seconds: draw.nat(310_000_000_000) - 60_000_000_000,
    nanos: draw.of([0, 5, 1_000, 678_000_000]),
  }),
};

function any(draw: Draw, options: MessageOptions, depth: number): Record<string, unknown> {
  if (depth >= DEEPEST) return {};
  const type = draw.of(options.contents);
  const content = anyMessage(draw, type, options, depth + 1);
  return { type_url: `type.googleapis.com/${type.fullName.slice(1)}`, value: encodeMessage(type, content) };
}

function struct(draw: Draw, options: MessageOptions, depth: number): Record<string, unknown> {
  const keys = draw.some([...NAMES, ...(options.namesSecrets === true ? SECRET_NAMES : [])], 4);
  return {
    fields: Object.fromEntries(
      keys.map((key) => [key, value(draw, SECRET_NAMES.includes(key) ? hidden(options) : options, depth + 1)]),
    ),
  };
}

function list(draw: Draw, options: MessageOptions, depth: number): Record<string, unknown> {
  return { values: Array.from({ length: draw.nat(3) }, () => value(draw, options, depth + 1)) };
}

function value(draw: Draw, options: MessageOptions, depth: number): Record<string, unknown> {
  switch (draw.nat(depth >= DEEPEST ? 3 : 5)) {
    case 0:
      return { nullValue: 0 };
    case 1:
      return { numberValue: draw.of(DOUBLES.slice(0, 7)) };
    case 2:
      return { boolValue: draw.boolean() };
    case 3:
      return { stringValue: options.textOf(false) };
    case 4:
      return { structValue: struct(draw, options, depth) };
    default:
      return { listValue: list(draw, options, depth) };
  }
}
