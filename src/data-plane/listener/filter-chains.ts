// The filter chains of one listener in one worker: which of them takes a connection, and what becomes of those that another
// configuration has taken away, whose connections go on for a while.

import type { DrainProgress, FilterChainSnapshot, ListenerSnapshot } from '../../snapshot/index.ts';
import type { ActiveFilterChain } from './active-filter-chain.ts';
import { FilterChainMatcher, type MatchedConnection } from './filter-chain-match.ts';

export interface LeaveOptions {
  /** In which connections end with their responses; those that are left behind it are cut. */
  readonly drain: DrainProgress;
  /** Monotonic. */
  readonly nowMs: number;
  /** Called once, in a later turn, when the last connection has ended. */
  readonly onGone: () => void;
}

/** Chains that went together. */
interface Leaving {
  chains: readonly ActiveFilterChain[];
  readonly endMs: number;
  readonly onGone: () => void;
}

export class FilterChains {
  readonly #activate: (chain: FilterChainSnapshot) => ActiveFilterChain;
  /** In their order, the default one last. */
  #current: readonly ActiveFilterChain[] = [];
  #matcher = new FilterChainMatcher<ActiveFilterChain>([], undefined);
  #leaving: readonly Leaving[] = [];
  #all: readonly ActiveFilterChain[] = [];

  constructor(activate: (chain: FilterChainSnapshot) => ActiveFilterChain) {
    this.#activate = activate;
  }

  get current(): readonly ActiveFilterChain[] {
    return this.#current;
  }

  /** With those that leave. */
  get all(): readonly ActiveFilterChain[] {
    return this.#all;
  }

  find(connection: MatchedConnection): ActiveFilterChain | undefined {
    return this.#matcher.find(connection);
  }

  /** Chains of the ids that there are stay as they are. @returns those that are not any more. What it throws leaves all as it was. */
  replace({
    filterChains,
    defaultFilterChain,
  }: Pick<ListenerSnapshot, 'filterChains' | 'defaultFilterChain'>): readonly ActiveFilterChain[] {
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
      const candidates = filterChains.map((own) => ({ match: own.settings.match, chain: take(own) }));
      const last = defaultFilterChain === null ? undefined : take(defaultFilterChain);
      this.#matcher = new FilterChainMatcher(candidates, last);
      this.#current = [...candidates.map(({ chain }) => chain), ...(last === undefined ? [] : [last])];
    } catch (error) {
      for (const chain of made) chain.close();
      throw error;
    }
    this.#noteAll();
    return [...former.values()].filter((chain) => !this.#current.includes(chain));
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
