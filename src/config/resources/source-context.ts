// What the bootstrap says for all sources of resources.

import type { Generation } from '../proto/message-names.ts';

export interface SourceContext {
  /** Which names and requests are meant where a source leaves it open. */
  readonly generation: Generation;
  /** There is a stream for all types. */
  readonly isAggregated: boolean;
  /** It tells what has changed, so that names can be asked for one by one. */
  readonly aggregatesChanges?: boolean;
}
