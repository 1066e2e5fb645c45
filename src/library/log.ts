// The log of an embedded proxy: lines and records go to a function of its owner, or nowhere.

import type { ServerOptions } from '../cli/index.ts';
import { LineTable, Loggers, type LogSink, TextSink } from '../log/index.ts';
import { startLevels } from '../process/log.ts';
import type { LogRecord } from './types.ts';

export type LogFunction = (line: string, record: LogRecord) => void;

/**
 * @param entry `import.meta.url` of the bundle's first file.
 * @param log what it throws is lost with the line.
 */
export function openLog(options: ServerOptions, log: LogFunction | undefined, entry: string): Loggers {
  const { logFormat: format, logFormatEscaped: escaped } = options;
  let line = '';
  const destination = {
    write(text: string): boolean {
      line = text.slice(0, -1);
      return true;
    },
  };
  const text = new TextSink({ format, escaped, destination });
  const levels = log === undefined ? ({ default: 'off' } as const) : startLevels(options);
  const sink: LogSink = {
    write(record, threadId) {
      if (log === undefined) return;
      text.write(record, threadId);
      const { level, logger: component, message, stack, timeMs } = record;
      log(line, { level, component, message, stack, timeMs, threadId });
    },
  };
  return new Loggers({ levels, sink, threadId: 0, lines: log && LineTable.read(entry) });
}
