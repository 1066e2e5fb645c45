// GET /clusters: every active cluster with its limits and the statistics of each host.

import { TimeSlice } from '../../base/time-slice.ts';
import { type AdminContext, type AdminResponse, type EndpointParameter, textResponse } from '../endpoint.ts';
import type { AdminQuery } from '../query.ts';
import { clusterText, hostText } from '../render/clusters-text.ts';

export const CLUSTERS_PARAMETERS: readonly EndpointParameter[] = [
  { id: 'format', kind: 'choice', choices: ['text'], help: 'Format of the output' },
];

export function handleClusters(context: AdminContext, query: AdminQuery): AdminResponse {
  if (query.value('format') === 'json') return textResponse('format=json is not supported by this build\n', 501);
  return textResponse(clustersText(context));
}

async function* clustersText({ clusters }: AdminContext): AsyncGenerator<string> {
  yield `version_info::${clusters.versionInfo()}\n`;
  const slice = new TimeSlice();
  for (const cluster of [...clusters.clusters()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    let text = clusterText(cluster);
    for (const host of cluster.hosts()) {
      text += hostText(cluster.name, host);
      if (slice.isOver()) await slice.rest();
    }
    yield text;
  }
}
