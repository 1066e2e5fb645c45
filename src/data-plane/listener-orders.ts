// What is asked of all chains of a listener, while they serve.

import type { ListenerDrain } from './drains.ts';
import type { Overload } from './overload.ts';

export interface ListenerOrders {
  readonly drain: ListenerDrain;
  readonly overload: Overload;
}
