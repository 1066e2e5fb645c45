// The faults of a configuration as its users are told of them.

import type { ConfigFault } from '../config/index.ts';
import type { Fault } from './types.ts';

/** @param config what was loaded, where that is an object: faults then tell of its values, and of no lines. */
export function faultsOf(faults: readonly ConfigFault[], config: object | undefined): readonly Fault[] {
  if (config === undefined) return faults;
  return faults.map((fault) => {
    const isOfObject = fault.file === '';
    if (!isOfObject) return fault;
    const value = valueAt(config, fault.path);
    return { ...fault, line: 0, column: 0, ...(value === undefined ? {} : { value }) };
  });
}

/** @param path `static_resources.clusters[2].name`; the object may have its fields in camelCase. */
function valueAt(config: object, path: string): unknown {
  let value: unknown = config;
  for (const key of path.match(/[^.[\]"]+/g) ?? []) {
    if (typeof value !== 'object' || value === null) return undefined;
    const fields = value as Readonly<Record<string, unknown>>;
    value = fields[key] ?? fields[key.replace(/_+([a-zA-Z0-9])/g, (_, letter: string) => letter.toUpperCase())];
  }
  return path === '' ? undefined : value;
}
