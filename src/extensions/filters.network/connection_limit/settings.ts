// What the connection limit filter and its configuration share.

import type { RuntimeSetting } from '../../../base/runtime.ts';

export interface ConnectionLimitSettings {
  readonly maxConnections: number;
  /** How long a connection beyond the limit is kept before it is closed; 0 for not at all. */
  readonly delayMs: number;
  /** While it is not, connections are counted and none is refused. */
  readonly enabled: RuntimeSetting<boolean>;
}
