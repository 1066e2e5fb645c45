// The TCP proxy behind it connects to the cluster that is called as the client's TLS names its server. Worker thread.

import { type NetworkFilterKind, TCP_PROXY_CLUSTER } from '../../../data-plane/index.ts';

export const SNI_CLUSTER_FILTER: NetworkFilterKind = {
  isTerminal: false,
  readsData: false,
  compile: () => ({
    create: (callbacks) => ({
      onNewConnection() {
        const name = callbacks.connection.requestedServerName;
        if (name !== '') callbacks.setState(TCP_PROXY_CLUSTER, name);
        return 'continue';
      },
    }),
  }),
};
