// ConnectionLimit message → ConnectionLimitSettings.

import type { ConnectionLimitSettings } from '../../snapshot/index.ts';
import { int64ToNumber } from '../proto/int64.ts';
import type { FaultSink } from './fault-sink.ts';
import type { ConnectionLimit } from './messages.ts';
import { runtimeFlagOf } from './runtime-settings.ts';
import { durationMsOr } from './units.ts';

/** @returns nothing when the filter is switched off or has no limit; a fault says the latter. */
export function convertConnectionLimit(
  message: ConnectionLimit,
  at: string,
  faults: FaultSink,
): readonly ConnectionLimitSettings[] {
  if (message.max_connections === null) {
    faults.error(`${at}.max_connections`, 'is required');
    return [];
  }
  const enabled = runtimeFlagOf(message.runtime_enabled, true);
  if (!enabled.default && enabled.key === '') return [];
  return [
    {
      statPrefix: message.stat_prefix,
      maxConnections: int64ToNumber(message.max_connections.value),
      delayMs: durationMsOr(message.delay, 0),
      enabled,
    },
  ];
}
