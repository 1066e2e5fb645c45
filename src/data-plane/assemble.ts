// The request path, in reading order, as it is put together for each listener of a worker.
//
//   ActiveListener          accepts, ListenerFilterPhase where bytes are looked at first
//    └─ FilterChainMatcher  chooses an ActiveFilterChain
//     ├─ NetworkFilterChain, FilteredConnection where there are filters before the terminal one
//     └─ terminal filter    ConnectionManager (HTTP)              or  TcpProxy, ExtensionTerminal; DiscoveringTerminal has any of them
//        └─ per connection  Http1ServerConnection                     TcpProxyConnection
//            └─ per request HttpStream ── Router ── UpstreamAttempt     │
//                └─ cluster Cluster.chooseHost ── Host.pools            Cluster.chooseHost
//                    └─     Http1ClientConnection                       TcpUpstream

import type { ListenerSnapshot, PublishedTerminal } from '../snapshot/index.ts';
import { ConnectionManager } from './http/connection-manager.ts';
import { ActiveListener, type CreateFilter } from './listener/active-listener.ts';
import type { ListenersByAddress } from './listener/listeners-by-address.ts';
import { DiscoveringTerminal } from './network/discovering-terminal.ts';
import { ExtensionTerminal } from './network/extension-terminal.ts';
import type { TerminalFilter } from './network/terminal-filter.ts';
import { TcpProxy } from './tcp-proxy/tcp-proxy.ts';
import { UdpProxy } from './udp/udp-proxy.ts';
import type { ClusterMap } from './upstream/cluster-map.ts';
import type { WorkerContext } from './worker-context.ts';

export function assembleListener(
  context: WorkerContext,
  clusters: ClusterMap,
  listeners: ListenersByAddress<ActiveListener>,
  listener: ListenerSnapshot,
): ActiveListener {
  const overload = listener.settings.bypassesOverload ? context.noOverload : context.overload;
  const createFilter: CreateFilter = (chain, ingress, drain, onMissing) => {
    const { filter } = chain.settings;
    switch (filter.kind) {
      case 'http-connection-manager':
        return new ConnectionManager(context, clusters, chain, ingress, { drain, overload }, filter);
      case 'tcp-proxy':
        return new TcpProxy(context, clusters, chain, ingress, filter);
      case 'extension':
        return new ExtensionTerminal(context, clusters, chain.terminal!, ingress);
      case 'discovered': {
        const create = ({ settings, parts }: NonNullable<PublishedTerminal['configured']>): TerminalFilter =>
          createFilter(
            { ...chain, ...parts, settings: { ...chain.settings, filter: settings } },
            ingress,
            drain,
            onMissing,
          );
        const { name } = filter;
        return new DiscoveringTerminal(context, { name, id: chain.discoveredTerminalId!, create, onMissing });
      }
    }
  };
  const { udp } = listener.settings;
  const datagrams = udp === undefined ? null : new UdpProxy(context, clusters, listener, udp, overload);
  return new ActiveListener(context, clusters, listener, listeners, overload, createFilter, datagrams);
}
