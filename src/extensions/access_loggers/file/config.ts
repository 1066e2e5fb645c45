// FileAccessLog messages → settings of logs that are lines of a file. The data plane keeps the file: it opens it anew when told to.

import {
  type Conversion,
  checkLogPath,
  convertJsonFormat,
  convertSubstitutionFormat,
  convertTextFormat,
  defaultLineFormat,
  type LineLoggerManifest,
  type MessageTypes,
  rejected,
  supported,
} from '../../../config/index.ts';
import type { LineFormat } from '../../../snapshot/index.ts';

const CONFIG = 'proxy.extensions.access_loggers.file.v3.FileAccessLog';
type Config = MessageTypes[typeof CONFIG];

export const FILE_LOG: LineLoggerManifest = {
  support: {
    [CONFIG]: {
      otherwise: rejected(),
      fields: {
        path: supported(),
        format: supported(),
        json_format: supported('every value is written as text'),
        typed_json_format: supported(),
        log_format: supported(),
      },
    },
  },
  convertLine(message, at, conversion) {
    const config = message as Config;
    checkLogPath(config.path, `${at}.path`, conversion, conversion.faults);
    const format = convertFormat(config, at, conversion);
    return format && { destination: { kind: 'file', path: config.path }, format };
  },
};

/** @returns undefined where a fault says why. */
function convertFormat(config: Config, at: string, conversion: Conversion): LineFormat | undefined {
  const json = { isTyped: false, omitEmptyValues: false };
  switch (config.access_log_format) {
    case 'format':
      if (config.format === '') return defaultLineFormat();
      return convertTextFormat(Buffer.from(config.format), `${at}.format`, conversion);
    case 'json_format':
      return convertJsonFormat(config.json_format!, `${at}.json_format`, conversion, json);
    case 'typed_json_format':
      return convertJsonFormat(config.typed_json_format!, `${at}.typed_json_format`, conversion, {
        ...json,
        isTyped: true,
      });
    case 'log_format':
      return convertSubstitutionFormat(config.log_format!, `${at}.log_format`, conversion);
    default:
      return defaultLineFormat();
  }
}
