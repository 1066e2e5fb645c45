// What editors say of a field beside its comment: what this build takes of it, or that it does without. In the JSON schema of
// a bootstrap and in the types of the library alike.

import type { Verdict } from './verdict.ts';

export interface FieldRemarks {
  /** Sentences. */
  readonly notes: readonly string[];
  /** Why not to write the field, where this build does not implement it. */
  readonly against: string | undefined;
}

/** @param verdict undefined where the table says nothing of the field. */
export function fieldRemarks(verdict: Verdict | undefined): FieldRemarks {
  if (verdict === undefined) return { notes: [], against: undefined };
  if (verdict.kind === 'unsupported') {
    const consequence =
      verdict.severity === 'error' ? 'the configuration is refused' : verdict.note || 'it has no effect';
    return { notes: [], against: `not supported by this build: ${consequence}` };
  }
  return {
    notes: [
      ...(verdict.kind === 'limited' ? [`weir takes ${verdict.accepts.join(', ')}.`] : []),
      ...(verdict.note === '' ? [] : [`In weir: ${verdict.note}.`]),
    ],
    against: undefined,
  };
}
