// Cells of what HTTP filters count, by their names behind the prefix of their connection manager or their whole names. Main thread.

import type { HttpFilterSettings, WholeStats } from '../../snapshot/index.ts';
import type { Scope } from '../../stats/index.ts';
import type { Holdings } from '../holdings.ts';
import { makeCounter, makeStat } from '../routes/route-stats.ts';

/** @param others who count under whole names alone. @param scope of the connection manager. */
export function allocateFilterStats(
  filters: readonly HttpFilterSettings[],
  others: readonly WholeStats[],
  scope: Scope,
  holdings: Holdings,
): Readonly<Record<string, number>> {
  const counting: readonly WholeStats[] = [...filters, ...others];
  const wholeCounters = new Set(counting.flatMap((own) => own.wholeCounters ?? []));
  const wholeGauges = new Set(counting.flatMap((own) => own.wholeGauges ?? []));
  const wholeTimes = new Set(counting.flatMap((own) => own.wholeTimes ?? []));
  return Object.fromEntries([
    ...filters.flatMap((own) => own.counters ?? []).map((name) => [name, scope.counter(name).cell]),
    ...filters.flatMap((own) => own.gauges ?? []).map((name) => [name, scope.gauge(name).cell]),
    ...[...wholeCounters].map((name) => [name, makeCounter(name, holdings)]),
    ...[...wholeGauges].map((name) => [name, makeStat(name, holdings, (of, last) => of.gauge(last).cell)]),
    ...[...wholeTimes].map((name) => [name, makeStat(name, holdings, (of, last) => of.time(last))]),
    ...filters.flatMap((own) => own.sharedCounts ?? []).map((name) => [name, holdings.countRecord()]),
  ]);
}
