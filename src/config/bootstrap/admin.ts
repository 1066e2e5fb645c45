// Admin message → AdminSettings. Without an address there is no admin interface.

import type { Admin } from '../proto/generated/messages.ts';
import { convertAccessLogs, isReportedLog } from '../resources/access-log/access-log.ts';
import { checkLogPath } from '../resources/access-log/log-path.ts';
import { convertAddress } from '../resources/address.ts';
import type { Conversion } from '../resources/conversion.ts';
import { defaultLineFormat } from '../resources/format/line-format.ts';
import { convertStringMatcher } from '../resources/string-match.ts';
import type { AdminSettings } from './bootstrap-config.ts';

const DEFAULT_PROFILE_PATH = '/var/log/proxy/proxy.prof';

export function convertAdmin(message: Admin | null, at: string, conversion: Conversion): AdminSettings | undefined {
  if (message === null || message.address === null) return undefined;
  const { faults } = conversion;
  const address = convertAddress(message.address, `${at}.address`, 'admin', faults);
  const path = message.access_log_path;
  checkLogPath(path, `${at}.access_log_path`, conversion, faults);
  const ofPath = { destination: { kind: 'file', path }, format: defaultLineFormat(), filter: null } as const;
  const accessLogs = convertAccessLogs(message.access_log, `${at}.access_log`, conversion);
  for (const [index, log] of message.access_log.entries()) {
    if (!isReportedLog(log, conversion)) continue;
    faults.warning(
      `${at}.access_log[${index}]`,
      'is not written: the admin interface logs to files and standard streams',
    );
  }
  const allowedPaths = message.allow_paths.flatMap(
    (matcher, index) => convertStringMatcher(matcher, `${at}.allow_paths[${index}]`, faults) ?? [],
  );
  if (address === undefined) return undefined;
  return {
    address,
    accessLogs: path === '' ? accessLogs : [ofPath, ...accessLogs],
    profilePath: message.profile_path || DEFAULT_PROFILE_PATH,
    allowedPaths,
  };
}
