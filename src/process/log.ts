// The log of the process, as the command line asks for it.

import { errorMessage } from '../base/errors.ts';
import type { ServerOptions } from '../cli/index.ts';
import { createTextSink, type LogDestination, Loggers, type LogLevels, openLogDestination } from '../log/index.ts';

export interface ProcessLog {
  readonly loggers: Loggers;
  readonly destination: LogDestination;
}

const MAIN_THREAD_ID = 0;

/** @returns undefined when the log file cannot be opened; that has been said on standard error. */
export function openLog(options: ServerOptions): ProcessLog | undefined {
  let destination: LogDestination;
  try {
    destination = openLogDestination(options.logPath);
  } catch (error) {
    process.stderr.write(`${errorMessage(error)}\n`);
    return undefined;
  }
  const sink = createTextSink({ format: options.logFormat, escaped: options.logFormatEscaped, destination });
  return { loggers: new Loggers({ levels: startLevels(options), sink, threadId: MAIN_THREAD_ID }), destination };
}

function startLevels(options: ServerOptions): LogLevels {
  const components = options.componentLogLevels.map(({ component, level }) => [component, level]);
  return { ...Object.fromEntries(components), default: options.logLevel };
}
