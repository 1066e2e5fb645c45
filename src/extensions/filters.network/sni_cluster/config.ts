// The SNI cluster filter takes no settings.

import { type NetworkFilterManifest, rejected } from '../../../config/index.ts';

export const SNI_CLUSTER: NetworkFilterManifest = {
  isTerminal: false,
  support: { 'proxy.extensions.filters.network.sni_cluster.v3.SniCluster': { otherwise: rejected(), fields: {} } },
  convert: () => ({ name: 'filters.network.sni_cluster', settings: null }),
};
