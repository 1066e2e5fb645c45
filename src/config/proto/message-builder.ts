// Puts read values into a message, for both textual dialects: single fields, lists, maps, and the check that
// a oneof is set only once. Which reader reads a value is the plan's business.
// A faulty value leaves its field unset and reading goes on, so that one pass finds every fault.

import type { Field, Message } from 'protobufjs/light.js';
import { MapKey } from '../source/field-path.ts';
import { type MapEntry, type MapNode, quote, type ValueNode } from '../source/node.ts';
import { expected, scalarReaderOf, setEntry } from './json-scalars.ts';
import { isCredentialHeader } from './json-text/redaction.ts';
import { type FieldPlan, type MessagePlan, mapKeyType, messageTypeOf } from './message-plan.ts';
import { INVALID, type Invalid, type ReadContext } from './read-context.ts';

/** A message whose fields are reached by name. */
export type OpenMessage = Message & Record<string, unknown>;

export class MessageBuilder {
  readonly message: OpenMessage;
  readonly #context: ReadContext;
  readonly #plan: MessagePlan;
  /** Oneof → the member that was set. */
  #members: Map<string, string> | undefined;

  constructor(context: ReadContext, plan: MessagePlan) {
    this.#context = context;
    this.#plan = plan;
    this.message = new plan.type.ctor() as OpenMessage;
  }

  /** The plan of the entry's key; reports the key when the message has no such field. */
  planOf(entry: MapEntry): FieldPlan | undefined {
    const plan = this.#plan.fields.get(entry.key);
    if (plan === undefined) {
      this.#context.unknownField(this.#plan.type, entry.key, entry.offset, this.#plan.names);
    } else if (plan.isOlder) {
      this.#context.sawOlderGeneration = true;
    }
    return plan;
  }

  /** Reads a field, of which faults quote nothing that nobody is to see. */
  read(plan: FieldPlan, around: MapNode, readEntry: () => void): void {
    const context = this.#context;
    const isSecret = plan.isSensitive || (!plan.namesHeader && this.#isOfCredentials(around));
    context.push(plan.name);
    if (isSecret) context.secrecy += 1;
    readEntry();
    if (isSecret) context.secrecy -= 1;
    context.pop();
  }

  #isOfCredentials({ entries }: MapNode): boolean {
    const { headerName, fields } = this.#plan;
    if (headerName === undefined) return false;
    const name = entries.find(({ key }) => fields.get(key) === headerName)?.value;
    return name?.kind === 'scalar' && isCredentialHeader(name.text);
  }

  /** Reports a second member of one oneof; proto keeps only one, so the file does not say which. */
  claimOneof(plan: FieldPlan, offset: number): boolean {
    if (plan.oneof === undefined) return true;
    this.#members ??= new Map();
    const other = this.#members.get(plan.oneof);
    if (other !== undefined && other !== plan.name) {
      this.#context.fault(`${plan.oneof} is already set by ${other}; only one of them may be given`, offset);
      return false;
    }
    this.#members.set(plan.oneof, plan.name);
    return true;
  }

  hasOneof(oneof: string): boolean {
    return this.#members?.has(oneof) ?? false;
  }

  set(plan: FieldPlan, value: unknown): void {
    if (value !== INVALID) this.message[plan.name] = value;
  }

  /** Adds the items of a list; their indices go on from what the field already holds. */
  addItems(plan: FieldPlan, items: readonly ValueNode[]): void {
    const list = this.message[plan.name] as unknown[];
    for (const item of items) {
      this.#context.push(list.length);
      const value = this.#readItem(plan, item);
      this.#context.pop();
      // A faulty item keeps its place, so that later items keep the index they have in the file.
      list.push(value === INVALID ? emptyValue(plan.field) : value);
    }
  }

  #readItem(plan: FieldPlan, item: ValueNode): unknown {
    if (isNull(item) && !plan.acceptsNull) return this.#context.fault('a list cannot hold null', item.offset);
    return plan.readValue(this.#context, item);
  }

  addMapEntry(plan: FieldPlan, key: string, keyOffset: number, node: ValueNode): void {
    const context = this.#context;
    context.push(new MapKey(key));
    const name = readMapKey(context, mapKeyType(plan.field)!, key, keyOffset);
    const isMissing = isNull(node) && !plan.acceptsNull;
    const value = isMissing ? expected(context, 'a value', node) : plan.readValue(context, node);
    context.pop();
    if (name !== INVALID) this.setMapEntry(plan, name, value);
  }

  setMapEntry(plan: FieldPlan, key: string, value: unknown): void {
    if (value !== INVALID) setEntry(this.message[plan.name] as Record<string, unknown>, key, value);
  }
}

export function isNull(node: ValueNode): boolean {
  return node.kind === 'scalar' && node.form === 'null';
}

function emptyValue(field: Field): unknown {
  const type = messageTypeOf(field);
  return type === undefined ? field.typeDefault : new type.ctor();
}

/** Integer and boolean keys are written as strings. */
function readMapKey(context: ReadContext, keyType: string, key: string, offset: number): string | Invalid {
  if (keyType === 'string') return key;
  if (keyType === 'bool') {
    return key === 'true' || key === 'false' ? key : context.fault(`${quote(key)} is not a boolean key`, offset);
  }
  const node = { kind: 'scalar', offset, form: 'number', text: key, raw: key } as const;
  return scalarReaderOf(keyType)!(context, node) === INVALID ? INVALID : key;
}
