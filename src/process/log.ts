// The log of the process, as the command line asks for it.

import { errorMessage } from '../base/errors.ts';
import type { ServerOptions } from '../cli/index.ts';
import {
  LineTable,
  LogDestination,
  Loggers,
  type LogLevels,
  logTarget,
  STANDARD_ERROR,
  TextSink,
} from '../log/index.ts';
import { print } from './print.ts';

export interface ProcessLog {
  readonly loggers: Loggers;
  readonly destination: LogDestination;
}

const MAIN_THREAD_ID = 0;

/**
 * Opens what the log needs once and for all; later there may be no descriptor to open anything.
 * @param entry `import.meta.url` of the program's first file.
 * @returns undefined when the log file cannot be opened; that has been said on standard error.
 */
export function openLog(options: ServerOptions, entry: string): ProcessLog | undefined {
  const { logPath, logFormat: format, logFormatEscaped: escaped } = options;
  try {
    const destination = LogDestination.open(logPath === '' ? STANDARD_ERROR : logTarget(logPath), {
      makesFolders: true,
      onDropped: (count) => loggers.countDropped(count),
      onResumed: () => sink.reportDropped(),
    });
    const sink = new TextSink({ format, escaped, destination });
    const lines = LineTable.read(entry);
    const loggers = new Loggers({ levels: startLevels(options), sink, threadId: MAIN_THREAD_ID, lines });
    return { loggers, destination };
  } catch (error) {
    print('stderr', `${errorMessage(error)}\n`, 'serve');
    return undefined;
  }
}

function startLevels(options: ServerOptions): LogLevels {
  const components = options.componentLogLevels.map(({ component, level }) => [component, level]);
  return { ...Object.fromEntries(components), default: options.logLevel };
}
