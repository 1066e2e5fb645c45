// A test of a text, as routes, filters and access logs share it.

/** A regular expression must match the whole text and knows no `ignoresCase`: its flags are in the pattern. */
export type StringMatch =
  | {
      readonly kind: 'exact' | 'prefix' | 'suffix' | 'contains';
      readonly value: string;
      readonly ignoresCase: boolean;
    }
  | { readonly kind: 'regex'; readonly pattern: string };
