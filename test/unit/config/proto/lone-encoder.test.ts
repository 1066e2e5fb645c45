import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import protobuf from 'protobufjs/light.js';
import { buildOutput } from '../../../../src/base/package-root.ts';
import { ProtoSchema } from '../../../../src/config/proto/root.ts';

const bundle = JSON.parse(readFileSync(buildOutput('proto/bundle.json'), 'utf8')) as protobuf.INamespace;
const DEPTH = 3;

test('messages of every type are written as the encoders of protobufjs write them', () => {
  const types = new ProtoSchema(bundle).types();
  const theirs = protobuf.Root.fromJSON(bundle).resolveAll();
  for (const type of types) {
    const message = filled(type, DEPTH);
    const expected = theirs.lookupType(type.fullName).setup().encode(message).finish();
    assert.deepEqual(type.encode(message).finish(), expected, type.fullName);
    // Not only the first time, when the encoder is made.
    assert.deepEqual(type.encode(message).finish(), expected, type.fullName);
  }
});

test('a message that is written makes no decoder, verifier or converter of its type', () => {
  const type = new ProtoSchema(bundle).messageType('proxy.config.cluster.v3.Cluster');
  type.encode(filled(type, DEPTH)).finish();
  for (const made of ['decode', 'verify', 'fromObject', 'toObject']) assert.ok(!Object.hasOwn(type, made), made);
});

test('a type that has been written reads what it wrote, and still writes it', () => {
  const type = new ProtoSchema(bundle).messageType('proxy.config.cluster.v3.Cluster');
  const bytes = type.encode({ name: 'a', alt_stat_name: 'b' }).finish();
  const read = type.decode(bytes) as unknown as { name: string; alt_stat_name: string };
  assert.deepEqual([read.name, read.alt_stat_name], ['a', 'b']);
  assert.deepEqual(type.encode(read as object).finish(), bytes);
});

test('messages that are nested too deep are refused', () => {
  const type = new ProtoSchema(bundle).messageType('google.protobuf.Value');
  let value: object = { string_value: 'x' };
  for (let level = 0; level <= protobuf.util.recursionLimit; level += 1) value = { listValue: { values: [value] } };
  assert.throws(() => type.encode(value), /max depth/);
});

/** A message with a value in every field, messages within it down to a depth. */
function filled(type: protobuf.Type, depth: number): Record<string, unknown> {
  const message: Record<string, unknown> = {};
  for (const field of type.fieldsArray) {
    const { resolvedType } = field.resolve();
    if (resolvedType instanceof protobuf.Type && depth === 0) continue;
    const value = resolvedType instanceof protobuf.Type ? filled(resolvedType, depth - 1) : scalar(field);
    message[field.name] = field.map ? { [mapKey(field)]: value } : field.repeated ? [value, value] : value;
  }
  return message;
}

function scalar({ type, resolvedType }: protobuf.Field): unknown {
  if (resolvedType instanceof protobuf.Enum) return Object.values(resolvedType.values).at(-1);
  if (type === 'string') return 'text';
  if (type === 'bytes') return Buffer.from('bytes');
  return type === 'bool' ? true : 7;
}

function mapKey(field: protobuf.Field): string {
  return field instanceof protobuf.MapField && field.keyType !== 'string' ? '1' : 'key';
}
