// Watchdog messages → WatchdogSettings, of the main thread and of workers.

import type { WatchdogSettings } from '../../snapshot/index.ts';
import type { Bootstrap, Watchdog } from '../proto/generated/messages.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { durationMsOr } from '../resources/units.ts';

export interface WatchdogsSettings {
  readonly main: WatchdogSettings;
  readonly workers: WatchdogSettings;
}

const DEFAULT_MISS_MS = 200;
const DEFAULT_MEGA_MISS_MS = 1000;

type Messages = Pick<Bootstrap, 'watchdog' | 'watchdogs'>;

/** There are always watchdogs: what is not configured has defaults. */
export function convertWatchdogs({ watchdog, watchdogs }: Messages, faults: FaultSink): WatchdogsSettings {
  if (watchdog !== null && watchdogs !== null) {
    faults.error('watchdog', 'is set together with watchdogs; only one of them may be');
  }
  return {
    main: convert(watchdogs === null ? watchdog : watchdogs.main_thread_watchdog),
    workers: convert(watchdogs === null ? watchdog : watchdogs.worker_watchdog),
  };
}

function convert(message: Watchdog | null): WatchdogSettings {
  return {
    missMs: durationMsOr(message?.miss_timeout ?? null, DEFAULT_MISS_MS),
    megaMissMs: durationMsOr(message?.megamiss_timeout ?? null, DEFAULT_MEGA_MISS_MS),
    killMs: durationMsOr(message?.kill_timeout ?? null, 0),
    killJitterMs: durationMsOr(message?.max_kill_timeout_jitter ?? null, 0),
    multikillMs: durationMsOr(message?.multikill_timeout ?? null, 0),
    multikillPercent: message?.multikill_threshold?.value ?? 0,
  };
}
