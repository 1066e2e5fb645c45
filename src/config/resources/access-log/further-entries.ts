// Which entries requests get in access logs beside that of their end → HttpLogEntries.

import type { HttpLogEntries } from '../../../snapshot/index.ts';
import type { FaultSink } from '../fault-sink.ts';
import type { HttpConnectionManager } from '../messages.ts';
import { durationMsOr } from '../units.ts';

/** The older fields have moved into a message of their own. @param at path of the connection manager. */
export function convertHttpLogEntries(message: HttpConnectionManager, at: string, faults: FaultSink): HttpLogEntries {
  const { access_log_options: options, access_log_flush_interval: interval } = message;
  const onStart = message.flush_access_log_on_new_request;
  if (options === null) return { onStart, onTunnel: false, intervalMs: durationMsOr(interval, 0) };
  const repeated = 'cannot be given together with access_log_options';
  if (onStart) faults.error(`${at}.flush_access_log_on_new_request`, repeated);
  if (interval !== null) faults.error(`${at}.access_log_flush_interval`, repeated);
  return {
    onStart: options.flush_access_log_on_new_request,
    onTunnel: options.flush_log_on_tunnel_successfully_established,
    intervalMs: durationMsOr(options.access_log_flush_interval, 0),
  };
}
