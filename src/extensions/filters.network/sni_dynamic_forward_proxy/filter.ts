// The TCP proxy behind it connects to the host that the client's TLS names, at one port for all of them, where its cluster is one of
// forward proxies: that looks the name up (data-plane/upstream/forward-destinations.ts). Worker thread.

import { type NetworkFilterKind, UPSTREAM_PORT } from '../../../data-plane/index.ts';

export const SNI_DYNAMIC_FORWARD_PROXY_FILTER: NetworkFilterKind = {
  isTerminal: false,
  readsData: false,
  compile(settings) {
    const port = settings as string;
    return {
      create: (callbacks) => ({
        onNewConnection() {
          if (callbacks.connection.requestedServerName !== '') callbacks.setState(UPSTREAM_PORT, port);
          return 'continue';
        },
      }),
    };
  },
};
