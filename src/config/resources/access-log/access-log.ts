// AccessLog messages → AccessLogSettings. The loggers of this build differ in nothing but their destination.

import type { AccessLogDestination, AccessLogSettings, LineFormat } from '../../../snapshot/index.ts';
import type { Conversion } from '../conversion.ts';
import { openExtension } from '../extension.ts';
import {
  convertJsonFormat,
  convertSubstitutionFormat,
  convertTextFormat,
  defaultLineFormat,
} from '../format/line-format.ts';
import type { AccessLog, FileAccessLog, StderrAccessLog, StdoutAccessLog } from '../messages.ts';
import { convertAccessLogFilter } from './access-log-filter.ts';
import { checkLogPath } from './log-path.ts';

interface Logger {
  readonly destination: AccessLogDestination;
  /** Undefined when the format has faults. */
  readonly format: LineFormat | undefined;
}

type ConvertLogger = (message: object, at: string, conversion: Conversion) => Logger;

/** The access loggers of this build, by the message that configures them. */
const ACCESS_LOGGERS: Readonly<Record<string, ConvertLogger>> = {
  'proxy.extensions.access_loggers.file.v3.FileAccessLog': (message, at, conversion) => {
    const file = message as FileAccessLog;
    checkLogPath(file.path, `${at}.path`, conversion, conversion.faults);
    return { destination: { kind: 'file', path: file.path }, format: fileFormat(file, at, conversion) };
  },
  'proxy.extensions.access_loggers.stream.v3.StdoutAccessLog': (message, at, conversion) => ({
    destination: { kind: 'stdout' },
    format: streamFormat(message as StdoutAccessLog, at, conversion),
  }),
  'proxy.extensions.access_loggers.stream.v3.StderrAccessLog': (message, at, conversion) => ({
    destination: { kind: 'stderr' },
    format: streamFormat(message as StderrAccessLog, at, conversion),
  }),
};

/** Logs with faults are left out; there is at least one error then. */
export function convertAccessLogs(
  messages: readonly AccessLog[],
  at: string,
  conversion: Conversion,
): readonly AccessLogSettings[] {
  const converted = messages.map((message, index) => convertAccessLog(message, `${at}[${index}]`, conversion));
  return converted.filter((settings) => settings !== undefined);
}

function convertAccessLog(message: AccessLog, at: string, conversion: Conversion): AccessLogSettings | undefined {
  const opened = openExtension(message.typed_config);
  const convert = opened && ACCESS_LOGGERS[opened.typeName];
  // What this build lacks has been refused by the support table.
  if (convert === undefined) return undefined;
  const { destination, format } = convert(opened!.message, `${at}.typed_config`, conversion);
  const filter =
    message.filter === null ? null : convertAccessLogFilter(message.filter, `${at}.filter`, conversion.faults);
  return format === undefined || filter === undefined ? undefined : { destination, format, filter };
}

function fileFormat(message: FileAccessLog, at: string, conversion: Conversion): LineFormat | undefined {
  const json = { isTyped: false, omitEmptyValues: false };
  switch (message.access_log_format) {
    case 'format':
      if (message.format === '') return defaultLineFormat();
      return convertTextFormat(Buffer.from(message.format), `${at}.format`, conversion);
    case 'json_format':
      return convertJsonFormat(message.json_format!, `${at}.json_format`, conversion, json);
    case 'typed_json_format':
      return convertJsonFormat(message.typed_json_format!, `${at}.typed_json_format`, conversion, {
        ...json,
        isTyped: true,
      });
    case 'log_format':
      return convertSubstitutionFormat(message.log_format!, `${at}.log_format`, conversion);
    default:
      return defaultLineFormat();
  }
}

function streamFormat(
  message: StdoutAccessLog | StderrAccessLog,
  at: string,
  conversion: Conversion,
): LineFormat | undefined {
  if (message.log_format === null) return defaultLineFormat();
  return convertSubstitutionFormat(message.log_format, `${at}.log_format`, conversion);
}
