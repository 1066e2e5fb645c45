// A configuration as a program gives it, a path or an object, to what the proxy runs by, or to a ConfigError.

import { errorMessage } from '../base/errors.ts';
import type { Version } from '../base/version.ts';
import type { ServerOptions } from '../cli/index.ts';
import { type LoadBootstrapResult, loadBootstrap } from '../config/index.ts';
import type { FilterSource } from '../filter-modules/source.ts';
import { loadInput } from '../process/load.ts';
import { ConfigError } from './errors.ts';
import { faultsOf } from './faults.ts';
import type { Bootstrap } from './generated/bootstrap.ts';
import type { Fault } from './types.ts';

export interface Loaded {
  readonly result: LoadBootstrapResult;
  readonly warnings: readonly Fault[];
  /** Those that it was loaded by. */
  readonly options: ServerOptions;
}

/** @throws ConfigError WEIR_CONFIG_INVALID. */
export function load(
  config: Bootstrap | string,
  given: ServerOptions,
  software: Version,
  filters: ReadonlyMap<string, FilterSource>,
): Loaded {
  const object = typeof config === 'object' && config !== null ? config : undefined;
  if (object === undefined && (typeof config !== 'string' || config === '')) {
    throw noConfiguration('', 'a bootstrap is an object, or the path of a file', config);
  }
  const options = typeof config === 'string' ? { ...given, configPath: config } : given;
  const result = loadBootstrap({ ...loadInput(options, software, filters), configJson: object && jsonOf(object) });
  const faults = faultsOf(result.faults, object);
  if (result.bootstrap === undefined) throw new ConfigError('WEIR_CONFIG_INVALID', faults);
  return { result, warnings: faults, options };
}

/**
 * In the form that configurations have as JSON: numbers of 64 bits and bytes as text.
 * @throws ConfigError where it has none, with its place.
 */
function jsonOf(config: object): string {
  /** Objects from the whole to the one that is being written, and the place of each. */
  const around: { readonly object: unknown; readonly path: string }[] = [];
  try {
    return JSON.stringify(config, function replace(this: unknown, key, value: unknown) {
      while (around.length > 0 && around.at(-1)!.object !== this) around.pop();
      const path =
        key === '' && around.length === 0 ? '' : placeOf(around.at(-1)?.path ?? '', key, Array.isArray(this));
      // Buffers have a form of JSON of their own, which is what comes here otherwise.
      const original: unknown = (this as Readonly<Record<string, unknown>>)[key];
      if (original instanceof Uint8Array) return Buffer.from(original).toString('base64');
      if (typeof value === 'bigint') return String(value);
      if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
      if (typeof value === 'function' || typeof value === 'symbol') {
        throw noConfiguration(path, `a ${typeof value} is no configuration`, value);
      }
      if (typeof value !== 'object' || value === null) return value;
      if (around.some(({ object }) => object === value)) {
        throw noConfiguration(path, 'an object that holds itself is no configuration', value);
      }
      around.push({ object: value, path });
      return value;
    });
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw noConfiguration('', `the bootstrap cannot be written as JSON: ${errorMessage(error)}`, undefined);
  }
}

function placeOf(outer: string, key: string, isItem: boolean): string {
  if (isItem) return `${outer}[${key}]`;
  return outer === '' ? key : `${outer}.${key}`;
}

function noConfiguration(path: string, message: string, value: unknown): ConfigError {
  const fault: Fault = { severity: 'error', path, message, file: '', line: 0, column: 0 };
  return new ConfigError('WEIR_CONFIG_INVALID', [value === undefined ? fault : { ...fault, value }]);
}
