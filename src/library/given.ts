// Options as a program gives them, which no compiler may have seen.

import { WeirError } from '../base/errors.ts';

/**
 * @param known names that may stand there; what each holds is not looked at. Undefined for any.
 * @throws WeirError WEIR_OPTIONS where this is no object, or has others.
 */
export function checkGiven(options: unknown, known?: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new WeirError('WEIR_OPTIONS', `options: expected an object, got ${kindOf(options)}`);
  }
  const unknown = Object.keys(options).find((name) => known !== undefined && !known.includes(name));
  if (unknown !== undefined) {
    throw new WeirError('WEIR_OPTIONS', `unknown option ${unknown}; allowed: ${known!.join(', ')}`);
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : typeof value;
}
