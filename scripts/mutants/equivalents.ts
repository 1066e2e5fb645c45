// Survivors of `npm run mutants` that a person has looked at: the changed code does the same as before, as far as
// anybody could notice. Each says why. One that no run meets any more is to be taken out.

export interface EquivalentMutants {
  /** Path relative to the root. */
  readonly file: string;
  /** The line in which the change begins, without its indent. */
  readonly line: string;
  /** Changes as the report prints them behind the place: `before → after`. */
  readonly changes: readonly string[];
  readonly why: string;
}

export const EQUIVALENT_MUTANTS: readonly EquivalentMutants[] = [];
