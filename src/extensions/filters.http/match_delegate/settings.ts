import type { HttpFilterSettings, MatchTree } from '../../../snapshot/index.ts';

/** Where it leads, the filter is passed over. */
export type SkipTree = MatchTree<'skip'>;

export interface MatchDelegateSettings {
  readonly filter: HttpFilterSettings;
  readonly tree: SkipTree;
}
