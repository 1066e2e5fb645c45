// The filter chains of one listener, each with all that it was given in shared memory: with another configuration those that are
// as they were stay, with the connections on them, and the others go when no worker has a connection of them any more. Main thread.

import type {
  DownstreamTlsSettings,
  FilterChainSettings,
  FilterChainSnapshot,
  ListenerSettings,
  ListenerSnapshot,
  SecuredChain,
} from '../../snapshot/index.ts';
import { Holdings, type HoldingsSource } from '../holdings.ts';
import { settingsText } from '../same-settings.ts';
import type { ChangedContexts } from '../tls/changed-contexts.ts';
import { type ListenerSnapshotDependencies, makeFilterChain, withOtherTls } from './listener-snapshot.ts';

export type FilterChainDependencies = Omit<ListenerSnapshotDependencies, 'holdings'> & HoldingsSource;

/** As they stand in the snapshot of a listener. */
type ChainsOfListener = Pick<ListenerSnapshot, 'filterChains' | 'defaultFilterChain'>;

interface OwnedChain {
  snapshot: FilterChainSnapshot;
  readonly isDefault: boolean;
  readonly holdings: Holdings;
}

/** Chains that are none of the listener any more. */
export interface FormerChains {
  readonly count: number;
  /** Gives back what they were given. Once. */
  release(): void;
}

export class FilterChains {
  readonly #deps: FilterChainDependencies;
  /** In their order, the default one last. */
  #chains: readonly OwnedChain[] = [];
  #nextId = 1;

  constructor(deps: FilterChainDependencies) {
    this.#deps = deps;
  }

  get current(): ChainsOfListener {
    const snapshots = (isDefault: boolean): FilterChainSnapshot[] =>
      this.#chains.flatMap((chain) => (chain.isDefault === isDefault ? chain.snapshot : []));
    return { filterChains: snapshots(false), defaultFilterChain: snapshots(true)[0] ?? null };
  }

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; all is as before then. */
  replace(settings: ListenerSettings): FormerChains {
    const former = new Map(this.#chains.map((chain) => [keyOf(chain.snapshot.settings, chain.isDefault), chain]));
    const made: OwnedChain[] = [];
    const chainOf = (own: FilterChainSettings, isDefault: boolean): OwnedChain => {
      const key = keyOf(own, isDefault);
      const known = former.get(key);
      former.delete(key);
      if (known !== undefined) return known;
      const chain = this.#make(settings, own, isDefault);
      made.push(chain);
      return chain;
    };
    try {
      const { filterChains, defaultFilterChain: last } = settings;
      const chains = filterChains.map((own) => chainOf(own, false));
      this.#chains = last === null ? chains : [...chains, chainOf(last, true)];
    } catch (error) {
      for (const { holdings } of made) holdings.close();
      throw error;
    }
    const gone = [...former.values()];
    return {
      count: gone.length,
      release: () => {
        for (const { holdings } of gone) holdings.close();
      },
    };
  }

  /** @param changed by filter chain, the default one last. @returns what workers are told of it. */
  secure(changed: ChangedContexts<DownstreamTlsSettings>): readonly SecuredChain[] {
    const secured: SecuredChain[] = [];
    for (const [index, chain] of this.#chains.entries()) {
      const context = changed.get(index);
      const { snapshot } = chain;
      if (context === undefined || snapshot.tls === undefined) continue;
      const tls = withOtherTls(snapshot.tls, context.settings);
      secured.push({ index, tls });
      chain.snapshot = { ...snapshot, settings: { ...snapshot.settings, tls: context.configured }, tls };
    }
    return secured;
  }

  /** Gives everything back: no worker has a connection of them any more. */
  close(): void {
    for (const { holdings } of this.#chains) holdings.close();
  }

  #make(listener: ListenerSettings, settings: FilterChainSettings, isDefault: boolean): OwnedChain {
    const holdings = new Holdings(this.#deps);
    try {
      const snapshot = makeFilterChain(this.#nextId++, listener, settings, isDefault, { ...this.#deps, holdings });
      return { snapshot, isDefault, holdings };
    } catch (error) {
      holdings.close();
      throw error;
    }
  }
}

/** Of two chains that are the same it is the same. */
function keyOf(settings: FilterChainSettings, isDefault: boolean): string {
  return `${isDefault} ${settingsText(settings)}`;
}
