// What of the statistics a request asks for, as every format of /stats reads it.

import type { NameFilter } from '../../base/name-filter.ts';
import type { HistogramForm } from './histogram-text.ts';

export interface StatSelection {
  readonly usedOnly: boolean;
  readonly filter: NameFilter | undefined;
  readonly type: 'All' | 'Counters' | 'Gauges' | 'Histograms' | 'TextReadouts';
  readonly histogramForm: HistogramForm;
  /** Undefined for those that the format shows otherwise. */
  readonly quantiles: readonly Quantile[] | undefined;
}

export interface Quantile {
  /** 0 to 1. */
  readonly share: number;
  /** In percent, as it is shown. */
  readonly label: string;
}

/** @param percents as they are shown; a share of 0.999 is not quite 99.9 / 100. */
export function quantilesOf(percents: readonly string[]): readonly Quantile[] {
  return percents.map((label) => ({ share: Number(`${label}e-2`), label }));
}

/** Where a request names none. */
export const USUAL_QUANTILES = quantilesOf(['0', '25', '50', '75', '90', '95', '99', '99.5', '99.9', '100']);

export function asksFor(selection: StatSelection, type: Exclude<StatSelection['type'], 'All'>): boolean {
  return selection.type === 'All' || selection.type === type;
}

/** Of those, the ones that the request wants to see. */
export function wanted<Stat extends { readonly isUsed: boolean }>(
  { usedOnly }: StatSelection,
  stats: readonly Stat[],
): readonly Stat[] {
  return usedOnly ? stats.filter(({ isUsed }) => isUsed) : stats;
}
