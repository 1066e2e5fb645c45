// AccessLog messages → settings of the logs that are lines, and of those that extensions report. The loggers come from the
// manifests of extensions.

import type { AccessLogSettings, ReportedLogSettings } from '../../../snapshot/index.ts';
import type { SupportTable } from '../../support/verdict.ts';
import type { AccessLoggerConversion, Conversion, LineConversion, ReportingConversion } from '../conversion.ts';
import { openExtension } from '../extension.ts';
import type { AccessLog } from '../messages.ts';
import { convertAccessLogFilter } from './access-log-filter.ts';

interface Supported {
  /** Rows for its message and for those in it that nothing else leads to. */
  readonly support: SupportTable;
}

/** What an extension says of an access logger to those who read configurations. */
export type AccessLoggerManifest = Supported & ReportingConversion;

/** The same of one that writes lines to a file or stream. */
export type LineLoggerManifest = Supported & LineConversion;

/** By the full name of the message that configures the logger. */
export type AccessLoggerManifests = Readonly<Record<string, AccessLoggerManifest | LineLoggerManifest>>;

/** Logs with faults are left out; there is at least one error then. */
export function convertAccessLogs(
  messages: readonly AccessLog[],
  at: string,
  conversion: Conversion,
): readonly AccessLogSettings[] {
  return messages.flatMap((message, index): AccessLogSettings[] => {
    const opened = openLogger(message, conversion);
    if (opened === undefined || !('convertLine' in opened.logger)) return [];
    const line = opened.logger.convertLine(opened.message, `${at}[${index}].typed_config`, conversion);
    const filter = convertFilter(message, `${at}[${index}]`, conversion);
    return line === undefined || filter === undefined ? [] : [{ ...line, filter }];
  });
}

/** Logs with faults are left out; there is at least one error then. @returns nothing for none, to be spread into settings. */
export function convertReportedLogs(
  messages: readonly AccessLog[],
  at: string,
  conversion: Conversion,
): { readonly reportedLogs?: readonly ReportedLogSettings[] } {
  const logs = messages.flatMap((message, index): ReportedLogSettings[] => {
    const opened = openLogger(message, conversion);
    if (opened === undefined || !('convert' in opened.logger)) return [];
    const logger = opened.logger.convert(opened.message, `${at}[${index}].typed_config`, conversion);
    const filter = convertFilter(message, `${at}[${index}]`, conversion);
    return logger === undefined || filter === undefined ? [] : [{ logger, filter }];
  });
  return logs.length === 0 ? {} : { reportedLogs: logs };
}

/** Whether an extension reports a log, rather than writing lines of it. */
export function isReportedLog(message: AccessLog, conversion: Conversion): boolean {
  const opened = openLogger(message, conversion);
  return opened !== undefined && 'convert' in opened.logger;
}

/** @returns undefined for what this build lacks: the support table has refused it. */
function openLogger(
  { typed_config }: AccessLog,
  { accessLoggers = {} }: Conversion,
): { readonly logger: AccessLoggerConversion; readonly message: object } | undefined {
  const opened = openExtension(typed_config);
  if (opened === undefined || !Object.hasOwn(accessLoggers, opened.typeName)) return undefined;
  return { logger: accessLoggers[opened.typeName]!, message: opened.message };
}

/** @returns null for none, undefined for one with faults. */
function convertFilter(
  { filter }: AccessLog,
  at: string,
  { faults }: Conversion,
): AccessLogSettings['filter'] | undefined {
  return filter === null ? null : convertAccessLogFilter(filter, `${at}.filter`, faults);
}
