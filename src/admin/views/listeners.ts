// Listeners, as the admin interface reads them.

import type { Address } from '../../base/address.ts';

export interface ListenerView {
  readonly name: string;
  /** Bound addresses, with the real port where 0 was configured. */
  readonly addresses: readonly Address[];
}

export interface ListenersView {
  /** Active listeners, in the order of their creation. */
  listeners(): Iterable<ListenerView>;
}
