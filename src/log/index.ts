export { isLogComponent, LOG_COMPONENTS, type LogComponent } from '../base/log-components.ts';
export { findLevel, LOG_LEVELS, type LogLevel, levelNumber, type MessageLevel } from '../base/log-levels.ts';
export { escapeLine } from './escape.ts';
export { LineTable } from './line-table.ts';
export { LogDestination, type LogDestinationOptions } from './log-destination.ts';
export {
  LogOutput,
  type LogTarget,
  logTarget,
  STANDARD_ERROR,
  STANDARD_OUTPUT,
  type WriteError,
} from './log-output.ts';
export { findLogPathFault, openFailure } from './log-path.ts';
export type { Logger } from './logger.ts';
export { type ListedLogger, Loggers, type LoggersOptions, type LogLevels } from './loggers.ts';
export type { LogRecord, LogSink } from './record.ts';
export { RelayReceiver, RelaySink } from './relay.ts';
export { TextSink, type TextSinkOptions } from './text-sink.ts';
export { countLines, isReaderBehind, lineStart, RetryDelay } from './write-retry.ts';
