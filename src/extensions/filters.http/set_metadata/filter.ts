// Writes fixed metadata of requests, for filters behind it and for logs. Worker thread; step 3 of the request flow.

import { isJsonObject, type JsonObject, type JsonValue } from '../../../base/json.ts';
import type {
  FilterCallbacks,
  FilterCounter,
  FilterStatus,
  HttpFilter,
  HttpFilterKind,
} from '../../../data-plane/index.ts';
import type { MetadataEntry, SetMetadataSettings } from './settings.ts';

class SetMetadataFilter implements HttpFilter {
  readonly #entries: readonly MetadataEntry[];
  readonly #denied: FilterCounter;
  readonly #callbacks: FilterCallbacks;

  constructor(entries: readonly MetadataEntry[], denied: FilterCounter, callbacks: FilterCallbacks) {
    this.#entries = entries;
    this.#denied = denied;
    this.#callbacks = callbacks;
  }

  decodeHeaders(): FilterStatus {
    for (const { namespace, values, isMerged } of this.#entries) {
      const there = this.#callbacks.facts(null).metadata('DYNAMIC')?.[namespace];
      if (there === undefined) this.#callbacks.addMetadata(namespace, values);
      else if (isMerged) this.#callbacks.addMetadata(namespace, merged(there, values));
      else this.#denied.add(1);
    }
    return 'continue';
  }
}

/** Objects by their keys, lists one behind the other; of anything else the newer. */
export function merged(there: JsonObject, values: JsonObject): JsonObject {
  const entries = Object.entries(values).map(([key, value]): [string, JsonValue] => {
    const former = Object.hasOwn(there, key) ? there[key]! : null;
    if (isJsonObject(former) && isJsonObject(value)) return [key, merged(former, value)];
    return [key, Array.isArray(former) && Array.isArray(value) ? [...former, ...value] : value];
  });
  return { ...there, ...Object.fromEntries(entries) };
}

export const SET_METADATA_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: false,
  responseBody: 'none',
  compile(settings, context) {
    const { entries, deniedCounter } = settings as SetMetadataSettings;
    const denied = context.counter(deniedCounter);
    return (callbacks) => new SetMetadataFilter(entries, denied, callbacks);
  },
};
