// What is said in filter state.

import type { FormatSegments } from '../../snapshot/index.ts';

export interface FilterStateValue {
  readonly key: string;
  readonly segments: FormatSegments;
  /** What is said later does not count. */
  readonly isReadOnly: boolean;
  /** An empty text is not said. */
  readonly skipsEmpty: boolean;
}
