// The places of a cluster's stats that workers write beside those which every cluster has: each where the settings ask for it. Main thread.

import { type ClusterSettings, type ClusterSnapshot, NO_CELLS, upstreamContextsOf } from '../../snapshot/index.ts';
import {
  HTTP2_STATS,
  MESSAGE_SIZE_STATS,
  type Scope,
  SSL_SOCKET_FACTORY_STATS,
  TIMEOUT_BUDGET_STATS,
  TLS_STATS,
} from '../../stats/index.ts';
import type { Holdings } from '../holdings.ts';

type Blocks = Pick<ClusterSnapshot, 'budgetBlock' | 'sizeBlock' | 'tlsBlock' | 'tlsFactoryBlock' | 'http2Block'>;

/** @param scope of the cluster's own stats. @throws WeirError WEIR_SHARED_MEMORY_FULL. */
export function clusterBlocks(settings: ClusterSettings, scope: Scope, holdings: Holdings): Blocks {
  const below = (name: string): Scope => holdings.scope(`cluster.${settings.statName}.${name}.`);
  const isSecured = upstreamContextsOf(settings).some((tls) => tls !== undefined);
  return {
    budgetBlock: settings.tracksTimeoutBudgets ? scope.allocate(TIMEOUT_BUDGET_STATS).cell : NO_CELLS,
    tlsBlock: isSecured ? below('ssl').allocate(TLS_STATS).cell : NO_CELLS,
    tlsFactoryBlock: isSecured ? below('client_ssl_socket_factory').allocate(SSL_SOCKET_FACTORY_STATS).cell : NO_CELLS,
    http2Block: settings.http2 === undefined ? NO_CELLS : below('http2').allocate(HTTP2_STATS).cell,
    sizeBlock: settings.tracksMessageSizes ? scope.allocate(MESSAGE_SIZE_STATS).cell : NO_CELLS,
  };
}
