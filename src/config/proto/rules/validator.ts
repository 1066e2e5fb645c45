// Walks a message and reports every broken rule of its fields, those of nested messages and of messages in
// an Any included. Main thread. Each message type is compiled once to the checks and descents it needs;
// types below which no rule can break are not entered at all.

import protobuf from 'protobufjs/light.js';
import { entryPath, fieldPath, itemPath } from '../../source/field-path.ts';
import type { Any } from '../generated/messages.ts';
import type { Generation } from '../message-names.ts';
import type { FieldOptions, OneofOptions } from '../options.ts';
import { type FieldCheck, fieldCheck, type MessageFields, type Report } from './field-check.ts';
import { parseRule } from './rule.ts';

export interface TypedMessage {
  readonly type: protobuf.Type;
  readonly message: object;
  readonly generation: Generation;
}

export interface ValidationHooks {
  readonly report: Report;
  /** The message that an Any holds; undefined leaves it unchecked (its own faults are the unpacker's to report). */
  unpack(any: Any, path: string): TypedMessage | undefined;
}

type Step = (message: MessageFields, path: string, hooks: ValidationHooks) => void;

/** Steps are filled in after the plan is known, because messages may contain themselves. */
interface Plan {
  readonly steps: Step[];
}

const ANY = '.google.protobuf.Any';
const DURATION = '.google.protobuf.Duration';

export class Validator {
  readonly #plans: Record<Generation, Map<protobuf.Type, Plan>> = { v2: new Map(), v3: new Map() };
  readonly #checked = new Map<protobuf.Type, boolean>();

  /**
   * @param generation whose rules hold: `v2` where either generation's rule may be kept.
   * @param path of `message` from the root; empty for the root itself.
   */
  validate({ type, message, generation }: TypedMessage, path: string, hooks: ValidationHooks): void {
    if (this.#isChecked(type)) run(this.#plan(type, generation), message as MessageFields, path, hooks);
  }

  #plan(type: protobuf.Type, generation: Generation): Plan {
    const plans = this.#plans[generation];
    let plan = plans.get(type);
    if (plan === undefined) {
      plan = { steps: [] };
      plans.set(type, plan);
      plan.steps.push(...this.#steps(type, generation));
    }
    return plan;
  }

  *#steps(type: protobuf.Type, generation: Generation): Generator<Step> {
    for (const field of type.fieldsArray) {
      const check = fieldCheck(field, generation);
      if (check) yield checkStep(check);
      const descend = this.#descent(field, generation);
      if (descend) yield descentStep(field, descend);
    }
    for (const oneof of type.oneofsArray) if (isRequired(oneof)) yield requiredOneofStep(oneof);
  }

  /** What to do with each message in the field, undefined when nothing below can be wrong. */
  #descent(field: protobuf.Field, generation: Generation): Step | undefined {
    const type = field.resolvedType;
    if (!(type instanceof protobuf.Type)) return undefined;
    if (type.fullName === ANY) return (any, path, hooks) => this.#enterAny(any as unknown as Any, path, hooks);
    if (!this.#isChecked(type)) return undefined;
    const plan = this.#plan(type, generation);
    return (message, path, hooks) => run(plan, message, path, hooks);
  }

  /** It has a check of its own, or there is one below. */
  #isChecked(type: protobuf.Type): boolean {
    let isChecked = this.#checked.get(type);
    if (isChecked === undefined) {
      isChecked = hasCheckBelow(type);
      this.#checked.set(type, isChecked);
    }
    return isChecked;
  }

  #enterAny(any: Any, path: string, hooks: ValidationHooks): void {
    const content = hooks.unpack(any, path);
    if (content !== undefined) this.validate(content, path, hooks);
  }
}

function run(plan: Plan, message: MessageFields, path: string, hooks: ValidationHooks): void {
  for (const step of plan.steps) step(message, path, hooks);
}

function checkStep(check: FieldCheck): Step {
  return (message, path, hooks) => check(message, path, hooks.report);
}

function descentStep(field: protobuf.Field, descend: Step): Step {
  const { name } = field;
  const type = field.resolvedType as protobuf.Type;
  if (field.map) {
    return (message, path, hooks) => {
      const entries = Object.entries(message[name] as Record<string, MessageFields>);
      for (const [key, value] of entries) descend(value, entryPath(fieldPath(path, name), key), hooks);
    };
  }
  if (field.repeated) {
    return (message, path, hooks) => {
      const items = message[name] as readonly MessageFields[];
      for (const [index, item] of items.entries()) descend(item, itemPath(fieldPath(path, name), index), hooks);
    };
  }
  const rule = (field.options as FieldOptions | undefined)?.['(proxy.rule)'] ?? '';
  const mayBeEmpty = parseRule(rule).value.some(({ kind }) => kind === 'or-empty');
  return (message, path, hooks) => {
    const value = message[name] as MessageFields | null | undefined;
    if (value != null && !(mayBeEmpty && isEmpty(type, value))) descend(value, fieldPath(path, name), hooks);
  };
}

/** Every field has its default value. */
function isEmpty({ fieldsArray }: protobuf.Type, message: MessageFields): boolean {
  return fieldsArray.every(({ name, defaultValue, repeated }) => {
    const value = message[name];
    return value == null || value === defaultValue || (repeated && (value as readonly unknown[]).length === 0);
  });
}

function isRequired(oneof: protobuf.OneOf): boolean {
  return (oneof.options as OneofOptions | undefined)?.['(proxy.required)'] === true;
}

function requiredOneofStep(oneof: protobuf.OneOf): Step {
  const current = oneof.fieldsArray.filter((field) => !(field.options as FieldOptions | undefined)?.deprecated);
  const names = current.map((field) => field.name);
  const complaint = names.length === 1 ? `${names[0]} must be set` : `one of ${names.join(', ')} must be set`;
  return (message, path, hooks) => {
    if (message[oneof.name] === undefined) hooks.report(path, complaint);
  };
}

function hasCheckBelow(root: protobuf.Type): boolean {
  const types = new Set([root]);
  // A set hands out what is added while it is walked, so this reaches all that are below.
  for (const type of types) {
    if (hasOwnCheck(type)) return true;
    for (const { resolvedType } of type.fieldsArray) if (resolvedType instanceof protobuf.Type) types.add(resolvedType);
  }
  return false;
}

function hasOwnCheck(type: protobuf.Type): boolean {
  return type.oneofsArray.some(isRequired) || type.fieldsArray.some(hasCheck);
}

function hasCheck(field: protobuf.Field): boolean {
  const options = (field.options ?? {}) as FieldOptions;
  const typeName = field.resolvedType?.fullName;
  return (
    options['(proxy.rule)'] !== undefined ||
    options['(proxy.removed)'] === 'refuse' ||
    typeName === ANY ||
    typeName === DURATION
  );
}
