// Runtime layers of the bootstrap: what each of them says, as text under dotted keys, the form in which an operator
// sees them. Of the kinds of layers only the static ones are read; the support table warns of the others.

import type { JsonObject, JsonValue } from '../../base/json.ts';
import {
  CONNECTION_LIMIT,
  expectedValue,
  LISTENER_LIMITS,
  runtimeFlag,
  runtimeFraction,
  runtimeInteger,
  runtimeKey,
} from '../../base/runtime-values.ts';
import type { Bootstrap, Struct } from '../proto/generated/messages.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { structToJson } from '../resources/struct.ts';
import { fieldPath, itemPath } from '../source/field-path.ts';
import { quote } from '../source/node.ts';

/** One layer; those that come later in the list win. */
export interface RuntimeLayerSettings {
  readonly name: string;
  /** Values as written, by their keys as written. */
  readonly values: ReadonlyMap<string, string>;
}

export function convertRuntime(bootstrap: Bootstrap, faults: FaultSink): readonly RuntimeLayerSettings[] {
  const { runtime, layered_runtime: layered } = bootstrap;
  if (layered !== null) {
    if (runtime !== null) faults.warning('runtime', 'has no effect beside layered_runtime');
    return layered.layers.flatMap(({ name, static_layer: values }, index) => {
      const at = fieldPath(itemPath('layered_runtime.layers', index), 'static_layer');
      return values === null ? [] : [staticLayer(name, values, at, bootstrap, faults)];
    });
  }
  const base = runtime?.base;
  return base ? [staticLayer('base', base, 'runtime.base', bootstrap, faults)] : [];
}

function staticLayer(
  name: string,
  struct: Struct,
  at: string,
  bootstrap: Bootstrap,
  faults: FaultSink,
): RuntimeLayerSettings {
  const values = new Map<string, string>();
  flatten(structToJson(struct), '', values, (key) => faults.error(at, `Invalid runtime entry value for ${key}`));
  for (const [key, value] of values) checkEntry(key, value, at, bootstrap, faults);
  return { name, values };
}

/** Objects in objects are parts of a key, but for those that say a fraction. */
function flatten(object: JsonObject, prefix: string, into: Map<string, string>, fail: (key: string) => void): void {
  for (const [name, value] of Object.entries(object)) {
    const key = prefix + name;
    if (value === null || Array.isArray(value)) fail(key);
    else if (!isObject(value)) into.set(key, String(value));
    else if (isFraction(value)) into.set(key, JSON.stringify(value));
    else flatten(value, `${key}.`, into, fail);
  }
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null;
}

function isFraction(value: JsonObject): boolean {
  return Object.keys(value).length === 0 || 'numerator' in value || 'denominator' in value;
}

/** An entry that cannot have the effect its author expects gets a warning. */
function checkEntry(entry: string, value: string, at: string, bootstrap: Bootstrap, faults: FaultSink): void {
  const key = runtimeKey(entry);
  if (key.startsWith(LISTENER_LIMITS) && key.endsWith(CONNECTION_LIMIT)) {
    const listener = key.slice(LISTENER_LIMITS.length, -CONNECTION_LIMIT.length);
    const listeners = bootstrap.static_resources?.listeners ?? [];
    if (!listeners.some(({ name }) => name === listener)) {
      faults.warning(at, `${entry} has no effect: there is no listener ${quote(listener)}`);
    }
    checkValue(entry, value, 'integer', at, faults);
    return;
  }
  const expected = expectedValue(key);
  if (expected === 'none') faults.warning(at, `${entry} is not read by this build; it has no effect`);
  else if (expected !== 'any') checkValue(entry, value, expected, at, faults);
}

const KINDS = {
  integer: { read: runtimeInteger, otherwise: 'is not a whole number' },
  share: { read: runtimeFraction, otherwise: 'is neither a whole number of percent nor a fraction' },
  flag: { read: runtimeFlag, otherwise: 'is neither true nor false' },
} as const;

function checkValue(entry: string, value: string, kind: keyof typeof KINDS, at: string, faults: FaultSink): void {
  const { read, otherwise } = KINDS[kind];
  if (read(value) === undefined) faults.warning(at, `${entry} has no effect: ${quote(value)} ${otherwise}`);
}

/** What the last layer says that has the key, in either spelling; an empty text says nothing. */
export function runtimeValue(layers: readonly RuntimeLayerSettings[], key: string): string | undefined {
  let found: string | undefined;
  for (const { values } of layers) {
    for (const [entry, value] of values) if (value !== '' && runtimeKey(entry) === key) found = value;
  }
  return found;
}
