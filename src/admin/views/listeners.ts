// Listeners, as the admin interface reads them.

import type { Address } from '../../base/address.ts';

export interface ListenerView {
  readonly name: string;
  /** Bound addresses, with the real port where 0 was configured. */
  readonly addresses: readonly Address[];
  /** Not after an operator has had it drain, or stop. */
  readonly accepting: 'yes' | 'draining' | 'stopped';
}

export interface ListenersView {
  /** Active listeners, in the order of their creation. */
  listeners(): Iterable<ListenerView>;
}
