// All clusters with how well they do, in slices: there may be very many.

import type { TimeSlice } from '../../../base/time-slice.ts';
import type { Cluster, Condition } from '../../../page/data.ts';
import type { BusyClusterView, ClusterUseView, OverviewView, ReadPoints } from '../../views/index.ts';
import { CONDITIONS, type Judgement, judge, RECENT_POINTS } from './condition.ts';

export interface JudgedCluster extends Judgement {
  readonly name: string;
  readonly use: ClusterUseView;
  readonly breakers: BusyClusterView['breakers'];
  /** Undefined when nothing was wanted of it for minutes. */
  readonly read: ReadPoints | undefined;
}

export async function judgedClusters({ clusters, history }: OverviewView, slice: TimeSlice): Promise<JudgedCluster[]> {
  const { tick } = history;
  const from = history.firstAfter(tick - RECENT_POINTS);
  const tracked = new Map(history.clusters());
  const judged: JudgedCluster[] = [];
  for (const cluster of [...clusters()]) {
    const { name } = cluster;
    const read = tracked.get(name);
    const use = cluster.use();
    judged.push({ name, use, read, breakers: () => cluster.breakers(), ...judge(use, read?.(from, tick)) });
    // Not every 64th time, as with cheap steps: before the compiler has seen it, one takes up to a tenth of a millisecond.
    if (slice.isOverNow()) await slice.rest();
  }
  return judged;
}

/** The worst ones and then those with traffic, when there are too many; by name, so that rows stay where they are. */
export function mostTelling(clusters: readonly JudgedCluster[], most: number): JudgedCluster[] {
  return telling(clusters, most).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** In one walk: there may be very many. */
function telling(clusters: readonly JudgedCluster[], most: number): readonly JudgedCluster[] {
  if (clusters.length <= most) return clusters;
  const ranks: JudgedCluster[][] = CONDITIONS.flatMap(() => [[], []]);
  const firstRank = new Map(CONDITIONS.map((condition, at) => [condition, 2 * at]));
  for (const cluster of clusters) {
    const rank = ranks[firstRank.get(cluster.condition)! + Number(cluster.read === undefined)]!;
    if (rank.length < most) rank.push(cluster);
  }
  return ranks.flat().slice(0, most);
}

export function countsOf(clusters: readonly JudgedCluster[]): Record<Condition, number> {
  const counts: Record<Condition, number> = { down: 0, failing: 0, impaired: 0, well: 0, idle: 0 };
  for (const { condition } of clusters) counts[condition] += 1;
  return counts;
}

export function clusterRow({ name, condition, reason, use }: JudgedCluster): Omit<Cluster, 'points' | 'breakers'> {
  const { overflows: _, membersDegraded: _degraded, ...shown } = use;
  return { name, condition, reason, ...shown };
}
