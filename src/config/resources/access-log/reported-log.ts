// AccessLog messages → settings of the logs that extensions write.

import type { ReportedLogSettings } from '../../../snapshot/index.ts';
import type { SupportTable } from '../../support/verdict.ts';
import type { AccessLoggerConversion, Conversion } from '../conversion.ts';
import { openExtension } from '../extension.ts';
import type { AccessLog } from '../messages.ts';
import { convertAccessLogFilter } from './access-log-filter.ts';

/** What an extension says of an access logger to those who read configurations. */
export interface AccessLoggerManifest extends AccessLoggerConversion {
  /** Rows for its message and for those in it that nothing else leads to. */
  readonly support: SupportTable;
}

/** By the full name of the message that configures the logger. */
export type AccessLoggerManifests = Readonly<Record<string, AccessLoggerManifest>>;

/** Logs with faults are left out; there is at least one error then. @returns nothing for none, to be spread into settings. */
export function convertReportedLogs(
  messages: readonly AccessLog[],
  at: string,
  conversion: Conversion,
): { readonly reportedLogs?: readonly ReportedLogSettings[] } {
  const logs = messages.flatMap(({ typed_config, filter: message }, index): ReportedLogSettings[] => {
    const opened = openExtension(typed_config);
    const manifest = opened && conversion.accessLoggers?.[opened.typeName];
    if (manifest === undefined) return [];
    const logger = manifest.convert(opened!.message, `${at}[${index}].typed_config`, conversion);
    const filter =
      message === null ? null : convertAccessLogFilter(message, `${at}[${index}].filter`, conversion.faults);
    return logger === undefined || filter === undefined ? [] : [{ logger, filter }];
  });
  return logs.length === 0 ? {} : { reportedLogs: logs };
}
