// Who wants filters that come by discovery asks for them so. Main thread.

import type {
  DiscoveredFilter,
  DiscoveredListenerFilter,
  DiscoveredNetworkFilter,
  DiscoveredTerminal,
} from '../../snapshot/index.ts';
import type { PublishedLease } from '../discovery/resource-lease.ts';

export interface FilterLeases {
  /** @param name of the filter in its chain. @param statPrefix of the connection manager, under which the filter counts. */
  lease(name: string, wanted: DiscoveredFilter, statPrefix: string): PublishedLease;
  /** The same of a network filter that others stand behind. */
  leaseNetwork(name: string, wanted: DiscoveredNetworkFilter): PublishedLease;
  /** The same of one that ends its chain. @param listenerPrefix of the listener's stats, with its dot. */
  leaseTerminal(name: string, wanted: DiscoveredTerminal, listenerPrefix: string): PublishedLease;
  /** The same of a listener filter. */
  leaseListener(name: string, wanted: DiscoveredListenerFilter): PublishedLease;
}
