// Series of single upstream hosts, as families of stats named `cluster.<name>.endpoint.<address>.<stat>`. There may be very many
// hosts: nothing of them is kept from one batch to the next.

import { formatAddress } from '../../base/address.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { cleanStatName } from '../../stats/index.ts';
import type { ClustersView, HostStatsView, HostView, TagView } from '../views/index.ts';
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

export async function* hostFamilies(clusters: ClustersView, selection: StatSelection): AsyncGenerator<HostSeries> {
  const sorted = [...clusters.clusters()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const slice = new TimeSlice();
  for (const { name: stat, type, value } of HOST_SERIES) {
    if (!asksFor(selection, type === 'counter' ? 'Counters' : 'Gauges')) continue;
    for (const cluster of sorted) {
      const clusterName = cleanStatName(cluster.observabilityName);
      const prefix = `cluster.${clusterName}.endpoint.`;
      const samples: { fullName: string; tags: readonly TagView[]; value: number }[] = [];
      for (const host of cluster.hosts()) {
        if (slice.isOver()) await slice.rest();
        const address = formatAddress(host.address);
        const shown = value(host);
        if (selection.usedOnly && shown === 0) continue;
        const tags = [
          { name: 'proxy.cluster_name', value: clusterName },
          { name: 'proxy.endpoint_address', value: address },
        ];
        samples.push({ fullName: `${prefix}${cleanStatName(address)}.${stat}`, tags, value: shown });
      }
      const places = selection.filter?.pick(samples.map(({ fullName }) => fullName)) ?? samples.keys();
      yield { extractedName: `cluster.endpoint.${stat}`, type, samples: Array.from(places, (at) => samples[at]!) };
      if (slice.isOverNow()) await slice.rest();
    }
  }
}
