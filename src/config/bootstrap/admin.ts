// Admin message → AdminSettings. Without an address there is no admin interface.

import type { Admin } from '../proto/generated/messages.ts';
import { checkLogPath, type LogPathLook } from '../resources/access-log/log-path.ts';
import { convertAddress } from '../resources/address.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { convertStringMatcher } from '../resources/string-match.ts';
import type { AdminSettings } from './bootstrap-config.ts';

const DEFAULT_PROFILE_PATH = '/var/log/proxy/proxy.prof';

export function convertAdmin(
  message: Admin | null,
  at: string,
  look: LogPathLook,
  faults: FaultSink,
): AdminSettings | undefined {
  if (message === null || message.address === null) return undefined;
  const address = convertAddress(message.address, `${at}.address`, 'admin', faults);
  checkLogPath(message.access_log_path, `${at}.access_log_path`, look, faults);
  const allowedPaths = message.allow_paths.flatMap(
    (matcher, index) => convertStringMatcher(matcher, `${at}.allow_paths[${index}]`, faults) ?? [],
  );
  if (address === undefined) return undefined;
  return {
    address,
    accessLogPath: message.access_log_path,
    profilePath: message.profile_path || DEFAULT_PROFILE_PATH,
    allowedPaths,
  };
}
