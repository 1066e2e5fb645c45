// The filter chains of one listener in one worker: which of them takes a connection, and what becomes of those that another
// configuration has taken away, whose connections go on for a while.

import type {
  DrainProgress,
  FilterChainChoice,
  FilterChainSnapshot,
  ListenerSnapshot,
  MatchTree,
} from '../../snapshot/index.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import type { ActiveFilterChain } from './active-filter-chain.ts';
import { FilterChainMatcher } from './filter-chain-match.ts';
import type { FindChainName } from './filter-chain-tree.ts';

export interface LeaveOptions {
  /** In which connections end with their responses; those that are left behind it are cut. */
  readonly drain: DrainProgress;
  /** Monotonic. */
  readonly nowMs: number;
  /** Called once, in a later turn, when the last connection has ended. */
  readonly onGone: () => void;
}

/** What a snapshot says of chains. */
export interface ChainsOfSnapshot extends Pick<ListenerSnapshot, 'filterChains' | 'defaultFilterChain'> {
  readonly settings: Pick<ListenerSnapshot['settings'], 'filterChainMatcher'>;
}

type FindChain = (connection: DownstreamConnection) => ActiveFilterChain | undefined;

/** Chains that went together. */
interface Leaving {
  chains: readonly ActiveFilterChain[];
  readonly endMs: number;
  readonly onGone: () => void;
}

export class FilterChains {
  readonly #activate: (chain: FilterChainSnapshot) => ActiveFilterChain;
  readonly #compileTree: (tree: MatchTree<FilterChainChoice>) => FindChainName;
  /** In their order, the default one last. */
  #current: readonly ActiveFilterChain[] = [];
  #find: FindChain = () => undefined;
  #leaving: readonly Leaving[] = [];
  #all: readonly ActiveFilterChain[] = [];

  constructor(
    activate: (chain: FilterChainSnapshot) => ActiveFilterChain,
    compileTree: (tree: MatchTree<FilterChainChoice>) => FindChainName,
  ) {
    this.#activate = activate;
    this.#compileTree = compileTree;
  }

  get current(): readonly ActiveFilterChain[] {
    return this.#current;
  }

  /** With those that leave. */
  get all(): readonly ActiveFilterChain[] {
    return this.#all;
  }

  find(connection: DownstreamConnection): ActiveFilterChain | undefined {
    return this.#find(connection);
  }

  /** Chains of the ids that there are stay as they are. @returns those that are not any more. What it throws leaves all as it was. */
  replace({ settings, filterChains, defaultFilterChain }: ChainsOfSnapshot): readonly ActiveFilterChain[] {
    const former = new Map(this.#current.map((chain) => [chain.id, chain]));
    const made: ActiveFilterChain[] = [];
    const take = (snapshot: FilterChainSnapshot): ActiveFilterChain => {
      const known = former.get(snapshot.id);
      if (known !== undefined) return known;
      const chain = this.#activate(snapshot);
      made.push(chain);
      return chain;
    };
    try {
      const chains = filterChains.map(take);
      const last = defaultFilterChain === null ? undefined : take(defaultFilterChain);
      this.#find = this.#choice(settings.filterChainMatcher, filterChains, chains, last);
      this.#current = [...chains, ...(last === undefined ? [] : [last])];
    } catch (error) {
      for (const chain of made) chain.close();
      throw error;
    }
    this.#noteAll();
    return [...former.values()].filter((chain) => !this.#current.includes(chain));
  }

  #choice(
    tree: MatchTree<FilterChainChoice> | undefined,
    snapshots: readonly FilterChainSnapshot[],
    chains: readonly ActiveFilterChain[],
    last: ActiveFilterChain | undefined,
  ): FindChain {
    if (tree === undefined) {
      const candidates = chains.map((chain, index) => ({ match: snapshots[index]!.settings.match, chain }));
      const matcher = new FilterChainMatcher(candidates, last);
      return (connection) => matcher.find(connection);
    }
    const findName = this.#compileTree(tree);
    const byName = new Map(chains.map((chain, index) => [snapshots[index]!.settings.name, chain]));
    // Whom it leads to a chain that there is not, no other takes.
    return (connection) => {
      const name = findName(connection);
      return name === undefined ? last : byName.get(name);
    };
  }

  /** Their connections end by and by. */
  leave(chains: readonly ActiveFilterChain[], { drain, nowMs, onGone }: LeaveOptions): void {
    for (const chain of chains) chain.beginDrain(drain);
    this.#leaving = [...this.#leaving, { chains, endMs: nowMs + drain.durationMs, onGone }];
    this.#noteAll();
  }

  /** Cuts connections whose time is over, and closes chains that have none. @returns whether any are left. */
  letGo(nowMs: number): boolean {
    if (this.#leaving.length === 0) return false;
    const gone: Leaving[] = [];
    for (const leaving of this.#leaving) {
      if (nowMs >= leaving.endMs) for (const chain of leaving.chains) chain.destroyConnections();
      const idle = leaving.chains.filter(({ connectionCount }) => connectionCount === 0);
      leaving.chains = leaving.chains.filter((chain) => !idle.includes(chain));
      for (const chain of idle) chain.close();
      if (leaving.chains.length === 0) gone.push(leaving);
    }
    this.#leaving = this.#leaving.filter((leaving) => !gone.includes(leaving));
    this.#noteAll();
    for (const { onGone } of gone) onGone();
    return this.#leaving.length > 0;
  }

  #noteAll(): void {
    this.#all = [...this.#current, ...this.#leaving.flatMap(({ chains }) => chains)];
  }
}
