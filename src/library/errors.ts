// What createProxy and applyBootstrap throw about a configuration: an error with the faults as data.

import { WeirError } from '../base/errors.ts';
import { formatFault } from '../config/index.ts';
import type { Fault } from './types.ts';

/** `code` is WEIR_CONFIG_INVALID, or WEIR_CANNOT_CHANGE of an update that a running proxy cannot take over. */
export class ConfigError extends WeirError {
  override readonly name = 'ConfigError';
  /** All of them, errors and warnings. */
  readonly faults: readonly Fault[];

  constructor(code: string, faults: readonly Fault[]) {
    const errors = faults.filter(({ severity }) => severity === 'error');
    const lines = errors.map(formatFault);
    const text = lines.length === 1 ? lines[0]! : `${lines.length} errors\n${lines.join('\n')}`;
    super(code, text, { source: 'config' });
    this.faults = faults;
  }
}
