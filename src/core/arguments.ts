// What the core refuses, said in one form: `tableSize: 65536 is not a prime number`.

import { errorMessage, WeirError } from '../base/errors.ts';
import type { Host } from './types.ts';

export function argumentError(name: string, problem: string): WeirError {
  return new WeirError('WEIR_CORE_ARGUMENT', `${name}: ${problem}`);
}

/** @throws WeirError unless `value` is a whole number of `least` to `most`. */
export function checkWhole(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw argumentError(name, `${show(value)} is not a whole number from ${least} to ${most}`);
}

/** @throws WeirError unless `value` is one of `choices`. */
export function checkChoice(name: string, value: unknown, choices: readonly string[]): void {
  if (typeof value === 'string' && choices.includes(value)) return;
  throw argumentError(name, `${show(value)} is none of ${choices.join(', ')}`);
}

export function checkName(value: unknown): void {
  if (typeof value === 'string' && value !== '') return;
  throw argumentError('name', `${show(value)} is not a string of 1 character or more`);
}

/** @throws WeirError unless `value` is a list of numbers no longer than `most`. */
export function checkNumbers(name: string, value: readonly number[], most: number): void {
  if (!Array.isArray(value)) throw argumentError(name, `${show(value)} is not a list`);
  if (value.length > most) throw argumentError(name, `${value.length} entries exceed the limit ${most}`);
}

/** @throws WeirError unless `value` is what its type says; ranges of weights are checked by the tables. */
export function checkHosts(value: readonly Host[]): void {
  if (!Array.isArray(value)) throw argumentError('hosts', `${show(value)} is not a list`);
  for (const [at, host] of value.entries() as IterableIterator<[number, unknown]>) {
    if (typeof host !== 'object' || host === null)
      throw argumentError(`hosts[${at}]`, `${show(host)} is not an object`);
    const { key, weight } = host as { readonly key?: unknown; readonly weight?: unknown };
    if (typeof key !== 'string' || key === '') {
      throw argumentError(`hosts[${at}].key`, `${show(key)} is not a string of 1 character or more`);
    }
    if (weight !== undefined && typeof weight !== 'number') {
      throw argumentError(`hosts[${at}].weight`, `${show(weight)} is not a number`);
    }
  }
}

/** @throws WeirError unless `value` is a bigint; its bits beyond the 64th do not matter. */
export function checkBigint(name: string, value: bigint): void {
  if (typeof value !== 'bigint') throw argumentError(name, `${show(value)} is not a bigint`);
}

/** As an error message shows a value of any kind, cut short. */
export function show(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'a list' : 'an object';
  return String(value);
}

/**
 * Runs `make`; what the layers below refuse is said with the codes of the core, and a full memory in the words of
 * createCore's option.
 * @throws WeirError WEIR_CORE_ARGUMENT, WEIR_CORE_MEMORY, or whatever else `make` throws.
 */
export function inCoreTerms<Made>(maxMemoryMiB: number, make: () => Made): Made {
  try {
    return make();
  } catch (cause) {
    if (!(cause instanceof WeirError)) throw cause;
    if (cause.code === 'WEIR_LB_ARGUMENT') throw new WeirError('WEIR_CORE_ARGUMENT', cause.message, { cause });
    if (cause.code !== 'WEIR_SHARED_MEMORY_FULL') throw cause;
    const message = `maxMemoryMiB: ${maxMemoryMiB} is not enough: ${errorMessage(cause)}`;
    throw new WeirError('WEIR_CORE_MEMORY', message, { cause });
  }
}
