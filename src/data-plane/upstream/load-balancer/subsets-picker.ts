// Picking from a subset of a cluster's hosts: the one whose metadata says what the request asks for, or what the
// selectors and the cluster want instead when there is none.

import { keySetName } from '../../../base/subset-key.ts';
import type { SubsetFallback, SubsetSelector, SubsetSettings } from '../../../snapshot/index.ts';
import type { Criteria, DrawContext, PickContext } from './pick-context.ts';
import { NO_HOST, type SourcePicker } from './source-picker.ts';

export interface SubsetsOptions {
  readonly settings: SubsetSettings;
  readonly any: SourcePicker;
  readonly defaultSubset: SourcePicker;
  readonly names: readonly string[];
  /** Called once for each subset that is picked from. */
  readonly open: (index: number) => SourcePicker;
  readonly count: (event: 'lb_subsets_selected' | 'lb_subsets_fallback' | 'lb_subsets_fallback_panic') => void;
}

/** The selector of each set of keys; of several with the same keys, the first one. */
export function selectorsByKeys(selectors: readonly SubsetSelector[]): ReadonlyMap<string, SubsetSelector> {
  return new Map(selectors.toReversed().map((selector) => [keySetName(selector.keys), selector]));
}

export class SubsetsPicker implements SourcePicker {
  readonly #options: SubsetsOptions;
  /** Index of each subset by its name. */
  readonly #indexes: ReadonlyMap<string, number>;
  readonly #selectors: ReadonlyMap<string, SubsetSelector>;
  /** Those with many keys first. */
  readonly #bySize: readonly SubsetSelector[];
  /** What counts of what requests have asked. */
  readonly #needed = new WeakMap<Criteria, Criteria>();
  /** Of the subsets that requests have asked for. */
  readonly #pickers = new Map<number, SourcePicker>();

  constructor(options: SubsetsOptions) {
    this.#options = options;
    this.#indexes = new Map(options.names.map((name, index) => [name, index]));
    this.#bySize = options.settings.selectors.toSorted((a, b) => b.keys.length - a.keys.length);
    this.#selectors = selectorsByKeys(options.settings.selectors);
  }

  pick(request: PickContext, draws: DrawContext | null): number {
    const { criteria } = request;
    const { takesAlternatives } = this.#options.settings;
    const alternatives = takesAlternatives && criteria !== null ? criteria.alternatives : null;
    if (alternatives === null) return this.#pickFor(request, draws, criteria);
    for (const each of alternatives) {
      const host = this.#pickFor(request, draws, each);
      if (host !== NO_HOST) return host;
    }
    return NO_HOST;
  }

  #pickFor(request: PickContext, draws: DrawContext | null, asked: Criteria | null): number {
    if (asked === null) return this.#pickByCluster(request, draws);
    const criteria = this.#options.settings.allowsRedundantKeys ? this.#withoutRedundant(asked) : asked;
    const index = this.#indexes.get(criteria.name);
    if (index !== undefined) {
      this.#options.count('lb_subsets_selected');
      // Without an available host there is none: others are for requests whose subset does not exist.
      return this.#pickerOf(index).pick(request, draws);
    }
    const selector = this.#selectors.get(criteria.keySet);
    if (selector === undefined || selector.fallback === 'cluster') return this.#pickByCluster(request, draws);
    if (selector.fallback === 'fewer-keys')
      return this.#pickFor(request, draws, criteria.reduce(selector.fallbackKeys));
    return this.#pickFallback(request, draws, selector.fallback);
  }

  /** With the keys of the largest selector that it has all of; as it is when there is none. */
  #withoutRedundant(criteria: Criteria): Criteria {
    let needed = this.#needed.get(criteria);
    if (needed === undefined) {
      const keys = new Set(criteria.keys);
      const selector = this.#bySize.find((each) => each.keys.every((key) => keys.has(key)));
      needed = (selector && criteria.reduce(selector.keys)) ?? criteria;
      this.#needed.set(criteria, needed);
    }
    return needed;
  }

  #pickByCluster(request: PickContext, draws: DrawContext | null): number {
    const { settings, any, count } = this.#options;
    if (settings.fallback === 'none') return NO_HOST;
    const host = this.#pickFallback(request, draws, settings.fallback);
    if (host !== NO_HOST) {
      count('lb_subsets_fallback');
      return host;
    }
    if (!settings.panicModeAny) return NO_HOST;
    const other = any.pick(request, draws);
    if (other !== NO_HOST) count('lb_subsets_fallback_panic');
    return other;
  }

  #pickFallback(request: PickContext, draws: DrawContext | null, fallback: SubsetFallback): number {
    if (fallback === 'none') return NO_HOST;
    return fallback === 'any-host'
      ? this.#options.any.pick(request, draws)
      : this.#options.defaultSubset.pick(request, draws);
  }

  #pickerOf(index: number): SourcePicker {
    let picker = this.#pickers.get(index);
    if (picker === undefined) {
      picker = this.#options.open(index);
      this.#pickers.set(index, picker);
    }
    return picker;
  }
}
