// Series of single upstream hosts, as families of stats named `cluster.<name>.endpoint.<address>.<stat>`. There may be very many
// hosts: nothing of them is kept from one batch to the next. Their tags are those of the cluster's other stats, the address beside.

import { formatAddress } from '../../base/address.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { cleanStatName } from '../../stats/index.ts';
import type { ClustersView, ClusterView, HostStatsView, HostView, StatsView, TagView } from '../views/index.ts';
import { asksFor, type StatSelection } from './stat-selection.ts';

export interface HostSeries {
  readonly extractedName: string;
  readonly type: 'counter' | 'gauge';
  readonly samples: readonly { readonly tags: readonly TagView[]; readonly value: number }[];
}

interface HostStat {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly value: (host: HostView) => number;
}

function counted(name: keyof HostStatsView): HostStat {
  return { name, type: name.endsWith('_active') ? 'gauge' : 'counter', value: ({ stats }) => stats[name] };
}

export const HOST_SERIES: readonly HostStat[] = [
  ...(['cx_active', 'cx_connect_fail', 'cx_total', 'rq_active'] as const).map(counted),
  ...(['rq_error', 'rq_success', 'rq_timeout', 'rq_total'] as const).map(counted),
  { name: 'healthy', type: 'gauge', value: ({ healthFlags }) => (healthFlags === 0 ? 1 : 0) },
  { name: 'weight', type: 'gauge', value: ({ weight }) => weight },
];

/** Those whose hosts are shown in every listing of stats. */
export function trackedHosts(clusters: ClustersView): readonly ClusterView[] {
  return [...clusters.clusters()].filter(({ tracksHosts }) => tracksHosts);
}

/** By family, for Prometheus. */
export async function* hostFamilies(
  clusters: Iterable<ClusterView>,
  selection: StatSelection,
  stats: Pick<StatsView, 'tagged'>,
): AsyncGenerator<HostSeries> {
  const slice = new TimeSlice();
  const tagged: TaggedCluster[] = [];
  for (const cluster of sortedByName(clusters)) {
    const { extractedName: family, tags } = stats.tagged(`${statPrefix(cluster)}.endpoint`);
    tagged.push({ cluster, family, tags });
    if (slice.isOver()) await slice.rest();
  }
  // Stable: within a family the clusters stay in their order.
  tagged.sort((a, b) => (a.family === b.family ? 0 : a.family < b.family ? -1 : 1));
  for (const stat of HOST_SERIES) {
    if (!isWanted(stat, selection)) continue;
    const { name, type } = stat;
    for (const { cluster, family, tags } of tagged) {
      const samples: NamedSample[] = [];
      for (const host of cluster.hosts()) {
        if (slice.isOver()) await slice.rest();
        addSample(samples, { cluster, tags }, host, stat, selection);
      }
      yield { extractedName: `${family}.${name}`, type, samples: filtered(samples, selection) };
      if (slice.isOverNow()) await slice.rest();
    }
  }
}

/** What the names of a cluster's hosts have in common. */
interface TaggedCluster {
  readonly cluster: ClusterView;
  /** Of all its hosts, without the stat. */
  readonly family: string;
  readonly tags: readonly TagView[];
}

/** By host, with full names, for the other formats. */
export async function* hostStats(
  clusters: Iterable<ClusterView>,
  selection: StatSelection,
): AsyncGenerator<readonly { readonly fullName: string; readonly value: number }[]> {
  const wanted = HOST_SERIES.filter((stat) => isWanted(stat, selection));
  const slice = new TimeSlice();
  for (const cluster of sortedByName(clusters)) {
    for (const host of cluster.hosts()) {
      const samples: NamedSample[] = [];
      for (const stat of wanted) addSample(samples, { cluster, tags: [] }, host, stat, selection);
      yield filtered(samples, selection);
      if (slice.isOver()) await slice.rest();
    }
  }
}

interface NamedSample {
  readonly fullName: string;
  readonly tags: readonly TagView[];
  readonly value: number;
}

function sortedByName(clusters: Iterable<ClusterView>): readonly ClusterView[] {
  return [...clusters].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function isWanted({ type }: HostStat, selection: StatSelection): boolean {
  return asksFor(selection, type === 'counter' ? 'Counters' : 'Gauges');
}

function addSample(
  samples: NamedSample[],
  { cluster, tags }: Pick<TaggedCluster, 'cluster' | 'tags'>,
  host: HostView,
  stat: HostStat,
  { usedOnly }: StatSelection,
): void {
  const value = stat.value(host);
  if (usedOnly && value === 0) return;
  const address = formatAddress(host.address);
  const fullName = `${statPrefix(cluster)}.endpoint.${cleanStatName(address)}.${stat.name}`;
  samples.push({ fullName, tags: [...tags, { name: 'proxy.endpoint_address', value: address }], value });
}

function statPrefix({ observabilityName }: ClusterView): string {
  return `cluster.${cleanStatName(observabilityName)}`;
}

function filtered(samples: readonly NamedSample[], { filter }: StatSelection): readonly NamedSample[] {
  if (filter === undefined) return samples;
  return Array.from(filter.pick(samples.map(({ fullName }) => fullName)), (at) => samples[at]!);
}
