// The log levels, from the most to the least talkative. Their order is their number: 0 is trace, 6 is off.

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warning', 'error', 'critical', 'off'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** A level that a message can have; `off` is only a threshold. */
export type MessageLevel = Exclude<LogLevel, 'off'>;

/** 0 (trace) to 6 (off). */
export function levelNumber(level: LogLevel): number {
  return LOG_LEVELS.indexOf(level);
}

/** The level of exactly this name, or undefined. */
export function findLevel(name: string): LogLevel | undefined {
  return LOG_LEVELS.find((level) => level === name);
}
