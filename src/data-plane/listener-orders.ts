// What is asked of a chain of a listener, while it serves.

import type { ListenerDrain } from './drains.ts';
import type { Overload } from './overload.ts';

export interface ListenerOrders {
  readonly drain: ListenerDrain;
  readonly overload: Overload;
}
