// Where the definition of a filter of the user's own comes from.

import type { BodyUse } from './interface.ts';

/** Each thread makes its own of it. */
export type FilterSource =
  /** A path, for `require`. */
  | { readonly kind: 'module'; readonly path: string }
  /** Each function as its text: threads cannot give each other more of one. */
  | {
      readonly kind: 'texts';
      readonly texts: Readonly<Record<string, string>>;
      readonly requestBody: BodyUse;
      readonly responseBody: BodyUse;
    };
