// Which field a JSON or YAML key means. Each field answers to its own name and its lowerCamelCase form, to
// its v2 name and to names from before v2 was frozen. Where one name means different fields in the two
// generations (`host_rewrite` of RouteAction is #6 in v2, #44 in v3), the resource's generation decides.

import type protobuf from 'protobufjs/light.js';
import type { Generation } from './message-names.ts';
import type { FieldOptions } from './options.ts';

type FieldsByKey = ReadonlyMap<string, protobuf.Field>;

export class FieldNames {
  readonly #byType = new Map<protobuf.Type, Record<Generation, FieldsByKey>>();

  find(type: protobuf.Type, key: string, generation: Generation): protobuf.Field | undefined {
    return this.keys(type, generation).get(key);
  }

  /** All accepted keys of the message's fields. */
  keys(type: protobuf.Type, generation: Generation): FieldsByKey {
    let tables = this.#byType.get(type);
    if (tables === undefined) {
      tables = { v2: fieldsByKey(type, 'v2'), v3: fieldsByKey(type, 'v3') };
      this.#byType.set(type, tables);
    }
    return tables[generation];
  }
}

/** First the names that the generation itself gave, then all others that are still free. */
function fieldsByKey(type: protobuf.Type, generation: Generation): FieldsByKey {
  const table = new Map<string, protobuf.Field>();
  const add = (name: string | undefined, field: protobuf.Field) => {
    if (name === undefined) return;
    for (const key of [name, lowerCamelCase(name)]) if (!table.has(key)) table.set(key, field);
  };
  for (const field of type.fieldsArray) add(nameIn(generation, field), field);
  for (const field of type.fieldsArray) {
    const options = (field.options ?? {}) as FieldOptions;
    add(field.name, field);
    add(options['(proxy.v2_field)'], field);
    add(options['(proxy.alias)'], field);
  }
  return table;
}

/** The field's name in the generation, undefined when only the other one has it. */
export function nameIn(generation: Generation, field: protobuf.Field): string | undefined {
  const options = (field.options ?? {}) as FieldOptions;
  const only = options['(proxy.only)'];
  if (only !== undefined && only !== generation) return undefined;
  return generation === 'v2' ? (options['(proxy.v2_field)'] ?? field.name) : field.name;
}

/** `max_ring_size` → `maxRingSize`, as canonical JSON names a field. */
export function lowerCamelCase(name: string): string {
  return name.replace(/_+([a-zA-Z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
