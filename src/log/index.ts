export { isLogComponent, LOG_COMPONENTS, type LogComponent } from '../base/log-components.ts';
export { findLevel, LOG_LEVELS, type LogLevel, type MessageLevel } from '../base/log-levels.ts';
export { type LogDestination, openLogDestination } from './destination.ts';
export { escapeLine } from './escape.ts';
export type { Logger } from './logger.ts';
export { Loggers, type LoggersOptions, type LogLevels } from './loggers.ts';
export type { LogRecord, LogSink } from './record.ts';
export { createTextSink, type TextSinkOptions } from './text-sink.ts';
