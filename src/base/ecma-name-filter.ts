// The same as name-filter.ts for a regular expression of ECMAScript, which an operator can ask for. Such expressions go back and
// try again, some of them for ever, so that they run with a limit in time.

import { createContext, Script } from 'node:vm';
import { errorMessage, WeirError } from './errors.ts';
import type { CompiledFilter } from './name-filter.ts';

export const FILTER_TIME = 'WEIR_FILTER_TIME';

/** For a batch of names. The second try is for a machine that had no time for the first. */
const LIMITS_MS = [15, 200];
const EACH = new Script(
  'names.reduce((places, name, at) => { if (regex.test(name)) places.push(at); return places; }, [])',
);

/** `pick` throws WEIR_FILTER_TIME. */
export function compileEcmaNameFilter(pattern: string): CompiledFilter {
  try {
    const scope = { regex: new RegExp(pattern), names: [] as readonly string[] };
    const context = createContext(scope);
    const pick = (names: readonly string[]): readonly number[] => {
      scope.names = names;
      let cause: unknown;
      for (const timeout of LIMITS_MS) {
        try {
          return [...(EACH.runInContext(context, { timeout }) as readonly number[])];
        } catch (error) {
          cause = error;
        }
      }
      throw new WeirError(FILTER_TIME, 'takes too long', { cause });
    };
    return { filter: { prefix: '', parts: [], pick } };
  } catch (error) {
    return { error: errorMessage(error) };
  }
}
