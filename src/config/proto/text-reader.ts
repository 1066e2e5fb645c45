// Value tree to message in the dialect of protobuf text format: fields by their proto names, a repeated field
// by repeating its key, a map entry as a message with key and value, an Any either field by field or expanded
// under its type URL. Extension configurations are settled afterwards (settle-extensions.ts).

import type { Field, Message, Type } from 'protobufjs/light.js';
import { entryOf, type MapEntry, type MapNode, type ValueNode } from '../source/node.ts';
import { packAny } from './any.ts';
import { unknownTypeUrl } from './extension-reader.ts';
import { expected } from './json-scalars.ts';
import { MessageBuilder, type OpenMessage } from './message-builder.ts';
import { type FieldPlan, MessagePlans, messageTypeOf } from './message-plan.ts';
import type { Invalid, MessageReader, ReadContext, ValueReader } from './read-context.ts';
import type { ProtoSchema } from './root.ts';
import { textScalarReader } from './text-scalars.ts';

const ANY = '.google.protobuf.Any';

export class TextReader {
  readonly #plans: MessagePlans;

  constructor(schema: ProtoSchema) {
    this.#plans = new MessagePlans(schema, (field) => this.#readerOf(field));
  }

  readonly read: MessageReader = (context, type, node) => {
    if (node.kind !== 'map') return expected(context, 'a message in braces', node);
    const expanded = type.fullName === ANY ? node.entries.find((entry) => entry.key.startsWith('[')) : undefined;
    return expanded === undefined
      ? this.#readFields(context, type, node)
      : this.#readExpandedAny(context, type, node, expanded);
  };

  #readerOf(field: Field): ValueReader {
    const type = messageTypeOf(field);
    return type === undefined ? textScalarReader(field)! : (context, node) => this.read(context, type, node);
  }

  #readFields(context: ReadContext, type: Type, node: MapNode): Message {
    const plan = this.#plans.of(type, context.generation);
    const builder = new MessageBuilder(context, plan);
    context.enterMessage(type);
    for (const entry of node.entries) {
      const field = builder.planOf(entry);
      if (field === undefined) continue;
      builder.read(field, node, () => {
        if (builder.claimOneof(field, entry.offset)) readEntry(context, builder, field, entry);
      });
    }
    context.leaveMessage();
    return builder.message;
  }

  /** `[type.googleapis.com/pkg.Name] { fields }` in place of the fields of the Any itself. */
  #readExpandedAny(context: ReadContext, anyType: Type, node: MapNode, expanded: MapEntry): Message | Invalid {
    if (node.entries.length > 1) return context.fault('an expanded Any holds nothing else', node.offset);
    const typeUrl = expanded.key.slice(1, -1);
    const found = context.schema.find(typeUrl);
    if (found === undefined) return unknownTypeUrl(context, typeUrl, expanded.offset, undefined);
    const around = context.generation;
    context.generation = found.generation;
    const message = this.read(context, found.type, expanded.value);
    context.generation = around;
    if (typeof message === 'symbol') return message;
    return packAny(anyType, typeUrl, { ...found, message });
  }
}

function readEntry(context: ReadContext, builder: MessageBuilder, field: FieldPlan, entry: MapEntry): void {
  const { value } = entry;
  if (field.shape === 'list') {
    builder.addItems(field, value.kind === 'list' ? value.items : [value]);
  } else if (field.shape === 'map') {
    for (const item of value.kind === 'list' ? value.items : [value]) readMapItem(context, builder, field, item);
  } else if (Object.hasOwn(builder.message as OpenMessage, field.name)) {
    context.fault('given more than once, but it is not a list', entry.offset);
  } else if (value.kind === 'list') {
    expected(context, 'a single value', value);
  } else {
    builder.set(field, field.readValue(context, value));
  }
}

/** `{ key: "a" value: … }`. */
function readMapItem(context: ReadContext, builder: MessageBuilder, field: FieldPlan, item: ValueNode): void {
  const key = item.kind === 'map' ? entryOf(item, 'key') : undefined;
  const value = item.kind === 'map' ? entryOf(item, 'value') : undefined;
  if (key?.value.kind !== 'scalar' || value === undefined) {
    expected(context, 'a message with key and value', item);
  } else {
    const text = key.value.form === 'string' ? Buffer.from(key.value.text, 'latin1').toString('utf8') : key.value.text;
    builder.addMapEntry(field, text, key.offset, value.value);
  }
}
