// What main tells the workers of a tap filter.

import type { TapSession } from '../../../snapshot/index.ts';

export interface TapFilterSettings {
  /** Under which POST /tap finds the filter; empty where it records by itself. */
  readonly configId: string;
  /** What it records by itself; null where it waits to be asked. */
  readonly own: TapSession | null;
  /** Traces say when heads were there. */
  readonly recordsTimes: boolean;
  /** Name of the counter of recorded exchanges. */
  readonly counter: string;
}
