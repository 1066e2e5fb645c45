// StdoutAccessLog and StderrAccessLog messages → settings of logs that are lines of a standard stream.

import {
  convertSubstitutionFormat,
  defaultLineFormat,
  type LineLoggerManifest,
  type MessageTypes,
  rejected,
  supported,
} from '../../../config/index.ts';

const PACKAGE = 'proxy.extensions.access_loggers.stream.v3';
type Config = MessageTypes['proxy.extensions.access_loggers.stream.v3.StdoutAccessLog'];

export const STDOUT_LOG = streamLog('stdout', `${PACKAGE}.StdoutAccessLog`);
export const STDERR_LOG = streamLog('stderr', `${PACKAGE}.StderrAccessLog`);

function streamLog(kind: 'stdout' | 'stderr', type: string): LineLoggerManifest {
  return {
    support: { [type]: { otherwise: rejected(), fields: { log_format: supported() } } },
    convertLine(message, at, conversion) {
      const { log_format } = message as Config;
      const format =
        log_format === null
          ? defaultLineFormat()
          : convertSubstitutionFormat(log_format, `${at}.log_format`, conversion);
      return format && { destination: { kind }, format };
    },
  };
}
