// The log of the process, as the command line asks for it. While a configuration is only checked, it is that of the
// terminal: no file is made, and its reader has all the time that it needs.

import { errorMessage, WeirError } from '../base/errors.ts';
import type { ServerOptions } from '../cli/index.ts';
import {
  findLogPathFault,
  LineTable,
  type LogComponent,
  LogDestination,
  Loggers,
  type LogLevels,
  type LogTarget,
  logTarget,
  openFailure,
  STANDARD_ERROR,
  TextSink,
} from '../log/index.ts';
import { print } from './print.ts';

export interface ProcessLog {
  /** Has all further lines look otherwise; absent where nobody formats them. */
  readonly useFormat?: (format: string) => void;
  readonly loggers: Loggers;
  readonly destination: LogDestination;
  /**
   * Shows critical texts of the log to who sits at the terminal, one a line, unless the log has shown them there: it may
   * go elsewhere, or leave them out.
   */
  echo(component: LogComponent, texts: readonly string[]): void;
}

const MAIN_THREAD_ID = 0;

/**
 * Opens what the log needs once and for all; later there may be no descriptor to open anything.
 * @param entry `import.meta.url` of the program's first file.
 * @returns undefined when the log file cannot be opened; that has been said on standard error.
 */
export function openLog(options: ServerOptions, entry: string): ProcessLog | undefined {
  const { logFormat: format, logFormatEscaped: escaped } = options;
  const isOnlyAsked = options.mode === 'validate';
  const patience = isOnlyAsked ? 'ask' : 'serve';
  try {
    const target = isOnlyAsked ? targetOfCheck(options.logPath) : targetOf(options.logPath);
    const destination = LogDestination.open(target, {
      isPatient: isOnlyAsked,
      onDropped: (count) => loggers.countDropped(count),
      onResumed: () => sink.reportDropped(),
    });
    const sink = new TextSink({ format, escaped, destination });
    const lines = LineTable.read(entry);
    const loggers = new Loggers({ levels: startLevels(options), sink, threadId: MAIN_THREAD_ID, lines });
    const echo: ProcessLog['echo'] = (component, texts) => {
      if (target === STANDARD_ERROR && loggers.get(component).enabled('critical')) return;
      print('stderr', texts.map((text) => `${text}\n`).join(''), patience);
    };
    return { loggers, destination, echo, useFormat: (pattern) => sink.useFormat(pattern) };
  } catch (error) {
    print('stderr', `${errorMessage(error)}\n`, patience);
    return undefined;
  }
}

function targetOf(logPath: string): LogTarget {
  return logPath === '' ? STANDARD_ERROR : logTarget(logPath);
}

/** @throws WeirError as opening the file would. */
function targetOfCheck(logPath: string): LogTarget {
  const target = targetOf(logPath);
  if (typeof target === 'number') return target;
  const fault = findLogPathFault(logPath);
  if (fault !== undefined) throw new WeirError('WEIR_LOG_FILE', openFailure(target, fault));
  return STANDARD_ERROR;
}

/** As the options have them. */
export function startLevels({ logLevel, componentLogLevels, enableFineGrainLogging }: ServerOptions): LogLevels {
  if (enableFineGrainLogging) {
    return {
      default: logLevel,
      files: componentLogLevels.map(({ component: pattern, level }) => ({ pattern, level })),
    };
  }
  const components = Object.fromEntries(componentLogLevels.map(({ component, level }) => [component, level]));
  return { default: logLevel, components };
}
