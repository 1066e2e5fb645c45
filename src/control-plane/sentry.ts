// What those need that look at the process again and again, count what they see and act on it: the overload manager, the watchdog.

import type { Clock } from '../base/clock.ts';
import type { FaultBoundary } from '../base/fault-boundary.ts';
import type { Logger } from '../log/index.ts';
import type { StatsStore } from '../stats/index.ts';

export interface SentryDependencies<Settings, Workers> {
  readonly settings: Settings;
  readonly stats: Pick<StatsStore, 'scope'>;
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
  readonly workers: Workers;
}
