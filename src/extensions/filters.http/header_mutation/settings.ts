// What the header_mutation filter and its configuration share.

import type { FormatSegments, HeaderAppendAction, HeaderEdits } from '../../../snapshot/index.ts';

/** Of the query of a request's path. */
export type QueryMutation =
  | { readonly kind: 'remove'; readonly name: string }
  | {
      readonly kind: 'set';
      /** As byte text, like the value. */
      readonly name: string;
      readonly value: FormatSegments;
      readonly action: HeaderAppendAction;
    };

/** Each list in its order; each change sees what those before it have done. */
export interface Mutations {
  readonly request: readonly HeaderEdits[];
  readonly query: readonly QueryMutation[];
  readonly requestTrailers: readonly HeaderEdits[];
  readonly response: readonly HeaderEdits[];
  readonly responseTrailers: readonly HeaderEdits[];
}

/** Of the filter itself; routes say only what they add. */
export interface HeaderMutationSettings {
  /** What is done first. */
  readonly own: Mutations;
  /** Then routes come after virtual hosts and tables, instead of before them. */
  readonly mostSpecificLast: boolean;
}
