// What the network filters of a chain are made with, over the parts of the worker that they may know.

import type { MatchTree, NetworkFilterSnapshot } from '../../snapshot/index.ts';
import { FilterFacilities, unknownCounter } from '../filter-facilities.ts';
import type { DownstreamFacts } from '../format/facts.ts';
import type { SharedCount } from '../http/filter.ts';
import { CONNECTION_INPUTS } from '../matching/connection-inputs.ts';
import { compileMatchTree } from '../matching/match-tree.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { NetworkFilterContext } from './network-filter.ts';

export class ChainFilterContext extends FilterFacilities implements NetworkFilterContext {
  readonly #snapshot: NetworkFilterSnapshot;

  constructor(context: WorkerContext, snapshot: NetworkFilterSnapshot) {
    super(context, snapshot.cells);
    this.#snapshot = snapshot;
    const { statScope } = snapshot.settings;
    if (statScope !== undefined) context.stats.openScope(statScope);
  }

  /** The chain goes. Once. */
  close(): void {
    const { statScope } = this.#snapshot.settings;
    if (statScope !== undefined) this.context.stats.closeScope(statScope);
  }

  get sharedCount(): SharedCount {
    const { countRecord } = this.#snapshot;
    if (countRecord === 0) throw unknownCounter('anything over all workers');
    const { records } = this.context;
    return {
      tryAdd: (limit) => records.tryAcquireCount(countRecord, limit),
      remove: () => records.addCount(countRecord, -1),
    };
  }

  compileTree<Action, Result>(
    tree: MatchTree<Action>,
    resultOf: (action: Action) => Result,
  ): (connection: DownstreamFacts) => Result | undefined {
    return compileMatchTree(tree, CONNECTION_INPUTS, this.matchTools, resultOf);
  }

  protected override get statScope(): string {
    const { statScope } = this.#snapshot.settings;
    if (statScope === undefined) throw unknownCounter('anything');
    return statScope;
  }
}
