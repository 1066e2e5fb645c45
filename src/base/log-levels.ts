// The log levels, from the most to the least talkative. Their order is their number: 0 is trace, 6 is off.

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warning', 'error', 'critical', 'off'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** A level that a message can have; `off` is only a threshold. */
export type MessageLevel = Exclude<LogLevel, 'off'>;

/** By name, because a search for it would cost more than a line that is off may. */
const NUMBERS = Object.fromEntries(LOG_LEVELS.map((level, number) => [level, number])) as Readonly<
  Record<LogLevel, number>
>;

/** 0 (trace) to 6 (off). */
export function levelNumber(level: LogLevel): number {
  return NUMBERS[level];
}

/** The level of exactly this name, or undefined. */
export function findLevel(name: string): LogLevel | undefined {
  return LOG_LEVELS.find((level) => level === name);
}
