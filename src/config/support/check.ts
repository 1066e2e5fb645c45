// Holds a decoded message against the support table and reports what this build does not implement.
// Main thread. The table is turned into a list of probes per message type at first use, with types that
// need no probe left out, so that thousands of clusters cost a few property reads each.

import type { Field, Type } from 'protobufjs';
import { type ExtensionPlace, extensionPlace, findExtension } from '../proto/extensions.ts';
import { describeLacking, findLacking, IS_LACKING } from '../proto/lacking-extensions.ts';
import type { FieldOptions } from '../proto/options.ts';
import { openExtension } from '../resources/extension.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import type { Any } from '../resources/messages.ts';
import { entryPath, fieldPath, itemPath } from '../source/field-path.ts';
import { quote } from '../source/node.ts';
import { type DisabledExtensions, IS_DISABLED, NONE_DISABLED } from './disabled-extensions.ts';
import { type DecodedMessage, presenceTest } from './presence.ts';
import { SupportReport } from './report.ts';
import {
  type ExtensionVerdict,
  type LimitedVerdict,
  type SupportTable,
  supportedWhole,
  supportKey,
  type UnsupportedVerdict,
  type Verdict,
} from './verdict.ts';

/** How often each deprecated field is set, by its name behind that of its message. */
export type DeprecatedFields = ReadonlyMap<string, number>;

/** One question to one field of a message at the path `at`. */
type Probe = (message: DecodedMessage, at: string, report: SupportReport) => void;
/** What a probe does with each value of its field. */
type Visit<Value> = (value: Value, at: string, report: SupportReport) => void;

/** Of what is inside a field that is supported as a whole: only deprecated fields are looked for there. */
const WHOLE = 'whole';
const SUPPORTED_WHOLE = supportedWhole();

export class SupportCheck {
  readonly #table: SupportTable;
  readonly #messageType: (fullName: string) => Type;
  /** By support key; an entry is made before its probes, because message types can contain themselves. */
  readonly #probes = new Map<string, Probe[]>();
  readonly #compiling = new Set<string>();

  /** @param messageType reflection of a message type by its full name. */
  constructor(table: SupportTable, messageType: (fullName: string) => Type) {
    this.#table = table;
    this.#messageType = messageType;
  }

  /**
   * @param at path of the message, empty for the root.
   * @returns what is set of deprecated fields.
   */
  check(
    typeName: string,
    message: object,
    at: string,
    faults: FaultSink,
    disabled: DisabledExtensions = NONE_DISABLED,
  ): DeprecatedFields {
    const report = new SupportReport(faults, disabled);
    this.#enter(typeName, message, at, report);
    report.finish();
    return report.deprecated;
  }

  #enter(typeName: string, message: object, at: string, report: SupportReport): void {
    const probes = this.#probesFor(this.#messageType(typeName), '');
    for (const probe of probes) probe(message as DecodedMessage, at, report);
  }

  #probesFor(type: Type, role: string): readonly Probe[] {
    const key = supportKey(type.fullName.slice(1), role);
    const known = this.#probes.get(key);
    if (known !== undefined) return known;
    const probes: Probe[] = [];
    this.#probes.set(key, probes);
    this.#compiling.add(key);
    for (const field of type.fieldsArray) {
      const verdict = role === WHOLE ? SUPPORTED_WHOLE : verdictOn(this.#table, key, field.name);
      const probe = this.#probeFor(field.resolve() as Field, verdict);
      if (probe !== undefined) probes.push(probe);
      if ((field.options as FieldOptions | undefined)?.deprecated) probes.push(deprecationProbe(type, field));
    }
    this.#compiling.delete(key);
    return probes;
  }

  #probeFor(field: Field, verdict: Verdict): Probe | undefined {
    switch (verdict.kind) {
      case 'unsupported':
        return unsupportedProbe(field, verdict);
      case 'limited':
        return limitedProbe(field, verdict);
      case 'extension':
        return this.#extensionProbe(field, verdict);
      case 'supported':
        return this.#nestedProbe(field, verdict.isWhole ? WHOLE : verdict.role);
    }
  }

  #nestedProbe(field: Field, role: string): Probe | undefined {
    const type = nestedMessage(field);
    if (type === undefined) return undefined;
    const probes = this.#probesFor(type, role);
    const isSettled = !this.#compiling.has(supportKey(type.fullName.slice(1), role));
    if (probes.length === 0 && isSettled) return undefined;
    return eachValue<DecodedMessage>(field, (value, at, report) => {
      for (const probe of probes) probe(value, at, report);
    });
  }

  /** Extensions by name in a map, or the one extension of a field. */
  #extensionProbe(field: Field, { types, names, severity, isOptional, note }: ExtensionVerdict): Probe {
    if (field.map) {
      return eachValue<Any>(field, (any, at, report) => {
        if (this.#enterExtension(types, any, at, report)) {
          if (isDisabled(field, any, at, report)) report.add('error', at, `${quote(any.type_url)} ${IS_DISABLED}`);
        } else if (severity !== 'left') report.add(severity, at, lacking(any.type_url, any, undefined));
      });
    }
    // Beside the name that it goes with; any other field holds an extension of its own, or none.
    const isOfHolder = field.name === 'typed_config' && !isOptional;
    return (holder, at, report) => {
      const any = holder[field.name] as Any | null;
      if (isOptional && any?.type_url === '') return;
      if (any === null && (!isOfHolder || (holder.config_discovery ?? null) !== null)) return;
      const anyAt = fieldPath(at, field.name);
      // Without settings there is only the name, which belongs to the message around.
      const place = any === null ? at : anyAt;
      const shown = (isOfHolder && (holder.name as string)) || (any?.type_url ?? '');
      const isKnown =
        this.#enterExtension(types, any, anyAt, report) ||
        (any === null && names.includes(String(holder.name).replace(/^(envoy|proxy)\./, '')));
      if (isKnown) {
        if (isDisabled(field, any ?? shown, at, report)) report.add('error', place, `${quote(shown)} ${IS_DISABLED}`);
        return;
      }
      if (severity === 'left') return;
      const text = lacking(shown, any, placeOf(field, anyAt));
      if (holder.is_optional === true) report.add('warning', place, `${text}; it is left out, being optional`);
      else report.add(severity, place, severity === 'error' ? text + (note && `: ${note}`) : `${text}; ${note}`);
    };
  }

  /** @returns whether this build has the extension. */
  #enterExtension(types: readonly string[], any: Any | null, at: string, report: SupportReport): boolean {
    const opened = openExtension(any);
    if (opened === undefined || !types.includes(opened.typeName)) return false;
    this.#enter(opened.typeName, opened.message, at, report);
    return true;
  }
}

/** Transport sockets of clusters are extensions of another category than those of listeners. */
const CLUSTERS = /^static_resources\.clusters\b/;

function placeOf(field: Field, at: string): ExtensionPlace | undefined {
  return extensionPlace(field.parent!.fullName.slice(1), field.name, CLUSTERS.test(at));
}

/** @param extension its settings, or its name where it takes none. */
function isDisabled(field: Field, extension: Any | string, at: string, { disabled }: SupportReport): boolean {
  if (disabled.isEmpty) return false;
  const place = placeOf(field, at);
  if (typeof extension === 'string') return place !== undefined && disabled.hasName(place.category, extension);
  const opened = openExtension(extension);
  return opened !== undefined && disabled.hasType(opened.typeName, place);
}

function deprecationProbe(type: Type, field: Field): Probe {
  const isSet = presenceTest(field);
  const name = `${type.name}.${field.name}`;
  return (message, _at, report) => {
    if (isSet(message)) report.addDeprecated(name);
  };
}

function unsupportedProbe(field: Field, verdict: UnsupportedVerdict): Probe {
  const isPresent = presenceTest(field);
  const text = `${field.name} is not supported by this build${consequence(verdict)}`;
  return (message, at, report) => {
    if (isPresent(message)) report.add(verdict.severity, fieldPath(at, field.name), text);
  };
}

function limitedProbe(field: Field, verdict: LimitedVerdict): Probe {
  const isPresent = presenceTest(field);
  return (message, at, report) => {
    if (!isPresent(message)) return;
    const value = plainValue(field, message[field.name]);
    if (verdict.accepts.includes(value)) return;
    const text = `${field.name} ${value} is not supported by this build${consequence(verdict)}`;
    report.add(verdict.severity, fieldPath(at, field.name), text);
  };
}

/** A warning says what happens instead, an error why, or what to write. */
function consequence({ severity, note }: UnsupportedVerdict | LimitedVerdict): string {
  if (severity === 'warning') return `; ${note || 'it has no effect'}`;
  return note && `: ${note}`;
}

/** @param name or type of what is configured. @param place where it stands. */
function lacking(name: string, any: Any | null, place: ExtensionPlace | undefined): string {
  const byType = any === null ? undefined : findLacking(any.type_url);
  if (byType !== undefined) return describeLacking(byType, any!.type_url, name === any!.type_url ? '' : name);
  const instead = (place && findExtension(place.category, name)?.instead) || '';
  return `${quote(name)} ${IS_LACKING}${instead && `: ${instead}`}`;
}

/** A probe that visits every value of a field: the one, those of a list, or those of a map. */
function eachValue<Value>(field: Field, visit: Visit<Value>): Probe {
  const { name } = field;
  if (field.map) {
    return (message, at, report) => {
      const map = message[name] as Readonly<Record<string, Value>>;
      for (const key in map) visit(map[key]!, entryPath(fieldPath(at, name), key), report);
    };
  }
  if (field.repeated) {
    return (message, at, report) => {
      const list = message[name] as readonly Value[];
      for (let index = 0; index < list.length; index += 1) {
        visit(list[index]!, itemPath(fieldPath(at, name), index), report);
      }
    };
  }
  return (message, at, report) => {
    const value = message[name] as Value | null;
    if (value !== null) visit(value, fieldPath(at, name), report);
  };
}

/** @throws when a supported field leads to a message without rows, which is a bug of the table. */
export function verdictOn(table: SupportTable, key: string, fieldName: string): Verdict {
  const rows = table[key];
  if (rows === undefined) throw new Error(`the support table has no rows for ${key}`);
  return Object.hasOwn(rows.fields, fieldName) ? rows.fields[fieldName]! : rows.otherwise;
}

/** Well-known types are values rather than messages: nothing inside them is supported or not. */
export function nestedMessage(field: Field): Type | undefined {
  const type = field.resolvedType;
  if (type === null || 'values' in type || type.fullName.startsWith('.google.protobuf.')) return undefined;
  return type as Type;
}

/** What `accepts` speaks of: the enum's name, the wrapper's content, or the value as it is. */
function plainValue(field: Field, value: unknown): string | boolean | number {
  const type = field.resolvedType;
  if (type !== null && 'valuesById' in type) return type.valuesById[value as number] ?? (value as number);
  if (type !== null) return (value as { readonly value: string | boolean | number }).value;
  return value as string | boolean | number;
}
