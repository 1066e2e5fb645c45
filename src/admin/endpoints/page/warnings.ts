// What the head of the home page warns of: clusters that do badly first, then what has happened to the process.

import type { Condition, Warning } from '../../../page/data.ts';
import type { ProcessView } from '../../views/index.ts';
import type { JudgedCluster } from './judged-clusters.ts';

/** Clusters that one warning names; it counts the others. */
const MOST_NAMED = 5;
const MOST_WARNINGS = 100;

const OF_CLUSTERS: readonly { readonly condition: Condition; readonly isGrave: boolean; readonly are: string }[] = [
  { condition: 'down', isGrave: true, are: 'down' },
  { condition: 'failing', isGrave: true, are: 'failing' },
  { condition: 'impaired', isGrave: false, are: 'impaired' },
];

export function warningsOf(clusters: readonly JudgedCluster[], process: ProcessView): Warning[] {
  const all = [...clusterWarnings(clusters), ...process.troubles(), ...breakerWarnings(clusters)];
  const notes = process.warnings.map((text) => ({ isGrave: false, text }));
  return [...all.toSorted((a, b) => Number(b.isGrave) - Number(a.isGrave)), ...notes].slice(0, MOST_WARNINGS);
}

function clusterWarnings(clusters: readonly JudgedCluster[]): Warning[] {
  return OF_CLUSTERS.flatMap(({ condition, isGrave, are }) => {
    const found = clusters.filter((cluster) => cluster.condition === condition);
    if (found.length === 0) return [];
    const names = list(found, ({ name, reason }) => `${name} (${reason})`);
    return [{ isGrave, text: `${found.length === 1 ? 'cluster' : `${found.length} clusters`} ${are}: ${names}` }];
  });
}

function breakerWarnings(clusters: readonly JudgedCluster[]): Warning[] {
  const full = clusters.filter(({ use }) => use.overflows > 0);
  if (full.length === 0) return [];
  const names = list(full, ({ name, use }) => `${name} (${use.overflows === 1 ? 'once' : `${use.overflows} times`})`);
  return [{ isGrave: false, text: `circuit breakers were full: ${names}` }];
}

function list(clusters: readonly JudgedCluster[], text: (cluster: JudgedCluster) => string): string {
  const named = clusters.slice(0, MOST_NAMED).map(text).join(', ');
  return clusters.length > MOST_NAMED ? `${named} and ${clusters.length - MOST_NAMED} more` : named;
}
