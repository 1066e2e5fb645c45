// A configuration as a program gives it, a path or an object, to what the proxy runs by, or to a ConfigError.

import { WeirError } from '../base/errors.ts';
import type { Version } from '../base/version.ts';
import type { ServerOptions } from '../cli/index.ts';
import { type LoadBootstrapResult, loadBootstrap } from '../config/index.ts';
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
export function load(config: Bootstrap | string, given: ServerOptions, software: Version): Loaded {
  const object = typeof config === 'object' && config !== null ? config : undefined;
  if (object === undefined && (typeof config !== 'string' || config === '')) {
    throw new WeirError('WEIR_CONFIG_INVALID', 'a bootstrap is an object, or the path of a file', { source: 'config' });
  }
  const options = typeof config === 'string' ? { ...given, configPath: config } : given;
  const result = loadBootstrap({ ...loadInput(options, software), configJson: object && jsonOf(object) });
  const faults = faultsOf(result.faults, object);
  if (result.bootstrap === undefined) throw new ConfigError('WEIR_CONFIG_INVALID', faults);
  return { result, warnings: faults, options };
}

/** In the form that configurations have as JSON: numbers of 64 bits and bytes as text. */
function jsonOf(config: object): string {
  try {
    return JSON.stringify(config, function replace(this: unknown, key, value: unknown) {
      // Buffers have a form of JSON of their own, which is what comes here otherwise.
      const original: unknown = (this as Readonly<Record<string, unknown>>)[key];
      if (original instanceof Uint8Array) return Buffer.from(original).toString('base64');
      if (typeof value === 'bigint') return String(value);
      if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
      if (typeof value === 'function' || typeof value === 'symbol') {
        throw new WeirError('WEIR_CONFIG_INVALID', `${key}: a ${typeof value} is no configuration`, {
          source: 'config',
        });
      }
      return value;
    });
  } catch (error) {
    if (error instanceof WeirError) throw error;
    const text = 'the bootstrap cannot be written as JSON';
    throw new WeirError('WEIR_CONFIG_INVALID', text, { source: 'config', cause: error });
  }
}
