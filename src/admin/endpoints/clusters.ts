// GET /clusters: every active cluster with its limits and the statistics of each host, as text or JSON.

import { TimeSlice } from '../../base/time-slice.ts';
import { type AdminContext, endpoint } from '../endpoint.ts';
import { choice, flag } from '../parameter.ts';
import { clusterJson, hostJson } from '../render/clusters-json.ts';
import { clusterText, hostText } from '../render/clusters-text.ts';
import { jsonResponse, textResponse } from '../response.ts';
import type { ClusterView } from '../views/index.ts';

export const CLUSTERS = endpoint({
  path: '/clusters',
  help: 'Upstream clusters: limits, hosts and their health and statistics',
  parameters: {
    // As it always has been.
    format: choice({ help: 'Format of the output; any other word means text', values: ['text', 'json'] }),
    health_checks: flag('Have JSON show the health checks of hosts, as text does'),
  },
  handle: (context, { format, health_checks: showsChecks }) =>
    format === 'json' ? jsonResponse(clustersJson(context, showsChecks)) : textResponse(clustersText(context)),
});

function sorted({ clusters }: AdminContext): readonly ClusterView[] {
  return [...clusters.clusters()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function* clustersText(context: AdminContext): AsyncGenerator<string> {
  yield `version_info::${context.clusters.versionInfo()}\n`;
  const slice = new TimeSlice();
  for (const cluster of sorted(context)) {
    let text = clusterText(cluster);
    for (const host of cluster.hosts()) {
      text += hostText(cluster.name, host);
      if (slice.isOver()) await slice.rest();
    }
    yield text;
  }
}

async function* clustersJson(context: AdminContext, showsChecks: boolean): AsyncGenerator<string> {
  const all = sorted(context);
  if (all.length === 0) {
    yield '{}\n';
    return;
  }
  const slice = new TimeSlice();
  let separator = '{\n "cluster_statuses": [\n';
  for (const cluster of all) {
    const hosts: string[] = [];
    for (const host of cluster.hosts()) {
      hosts.push(hostJson(host, showsChecks));
      if (slice.isOver()) await slice.rest();
    }
    const [before, after] = clusterJson(cluster, hosts.length > 0);
    yield separator + before + hosts.join(',\n') + after;
    separator = ',\n';
  }
  yield '\n ]\n}\n';
}
