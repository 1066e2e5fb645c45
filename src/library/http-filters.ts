// The HTTP filters that a program brings, as createProxy is given them.

import { errorMessage, WeirError } from '../base/errors.ts';
import { findModule, sourceOfGiven } from '../filter-modules/definition.ts';
import type { FilterSource } from '../filter-modules/source.ts';

/** @throws WeirError WEIR_OPTIONS. */
export function readFilters(given: unknown): ReadonlyMap<string, FilterSource> {
  const sources = new Map<string, FilterSource>();
  if (given === undefined) return sources;
  if (typeof given !== 'object' || given === null) {
    throw new WeirError('WEIR_OPTIONS', 'option httpFilters: expected an object of filters by their names');
  }
  for (const [name, filter] of Object.entries(given)) {
    try {
      const isModule = typeof filter === 'string' || filter instanceof URL;
      sources.set(name, isModule ? findModule(String(filter)) : sourceOfGiven(filter));
    } catch (error) {
      throw new WeirError('WEIR_OPTIONS', `option httpFilters: ${name}: ${errorMessage(error)}`, { cause: error });
    }
  }
  return sources;
}
