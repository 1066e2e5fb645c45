// What all workers have been told and go on to go by: one that starts later finds it in its first message. Main thread.

import type { RuntimeTexts } from '../../base/runtime.ts';
import {
  type DrainState,
  NO_OVERLOAD,
  type OverloadState,
  type TapSession,
  type WorkerInit,
} from '../../snapshot/index.ts';

export class StandingOrders {
  isHealthCheckFailing = false;
  runtime: RuntimeTexts = new Map();
  /** As they are at the time of the call. */
  drains: () => DrainState = () => ({ inbound: null, others: null });
  tap: TapSession | null = null;
  overload: OverloadState = NO_OVERLOAD;

  /** As they are now. */
  now(): Pick<WorkerInit, 'isHealthCheckFailing' | 'runtime' | 'drains' | 'tap' | 'overload'> {
    const { isHealthCheckFailing, runtime, drains, tap, overload } = this;
    return { isHealthCheckFailing, runtime, drains: drains(), tap, overload };
  }
}
