// The date and time flags of the log format, in local time. Names are English whatever the locale: log lines
// are read by programs.

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'] as const;
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
] as const;

/** One instant taken apart. Reused for every line; the date is only taken apart again when the second changes. */
export class LogTime {
  #second = Number.NaN;
  #date = new Date(0);
  /** Nanoseconds within the second, as far as the clock has them. */
  nanoseconds = 0;

  constructor() {
    // Has the rules of the time zone read: at the first line there may be no descriptor, and it would be UTC for ever.
    this.#date.getTimezoneOffset();
  }

  /** @param timeMs milliseconds since 1970, with a fraction. */
  set(timeMs: number): void {
    const second = Math.floor(timeMs / 1000);
    this.nanoseconds = Math.min(Math.floor((timeMs - second * 1000) * 1e6), 999_999_999);
    if (second === this.#second) return;
    this.#second = second;
    this.#date = new Date(second * 1000);
  }

  get date(): Date {
    return this.#date;
  }
}

function two(value: number): string {
  return value < 10 ? `0${value}` : String(value);
}

function dayName(date: Date): string {
  return DAYS[date.getDay()]!;
}

function monthName(date: Date): string {
  return MONTHS[date.getMonth()]!;
}

function shortDate(date: Date): string {
  return `${two(date.getMonth() + 1)}/${two(date.getDate())}/${two(date.getFullYear() % 100)}`;
}

function clock(date: Date): string {
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

function hour12(date: Date): string {
  return two(date.getHours() % 12 || 12);
}

function half(date: Date): string {
  return date.getHours() < 12 ? 'AM' : 'PM';
}

function utcOffset(date: Date): string {
  const minutes = -date.getTimezoneOffset();
  const size = Math.abs(minutes);
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

function fullDate(date: Date): string {
  const day = `${dayName(date).slice(0, 3)} ${monthName(date).slice(0, 3)} ${date.getDate()}`;
  return `${day} ${clock(date)} ${date.getFullYear()}`;
}

const DATE_FLAGS = {
  a: ({ date }) => dayName(date).slice(0, 3),
  A: ({ date }) => dayName(date),
  b: ({ date }) => monthName(date).slice(0, 3),
  B: ({ date }) => monthName(date),
  c: ({ date }) => fullDate(date),
  C: ({ date }) => two(date.getFullYear() % 100),
  Y: ({ date }) => String(date.getFullYear()),
  D: ({ date }) => shortDate(date),
  x: ({ date }) => shortDate(date),
  m: ({ date }) => two(date.getMonth() + 1),
  d: ({ date }) => two(date.getDate()),
  H: ({ date }) => two(date.getHours()),
  I: ({ date }) => hour12(date),
  M: ({ date }) => two(date.getMinutes()),
  S: ({ date }) => two(date.getSeconds()),
  e: ({ nanoseconds }) => String(Math.floor(nanoseconds / 1e6)).padStart(3, '0'),
  f: ({ nanoseconds }) => String(Math.floor(nanoseconds / 1e3)).padStart(6, '0'),
  F: ({ nanoseconds }) => String(nanoseconds).padStart(9, '0'),
  p: ({ date }) => half(date),
  r: ({ date }) => `${hour12(date)}:${two(date.getMinutes())}:${two(date.getSeconds())} ${half(date)}`,
  R: ({ date }) => `${two(date.getHours())}:${two(date.getMinutes())}`,
  T: ({ date }) => clock(date),
  X: ({ date }) => clock(date),
  z: ({ date }) => utcOffset(date),
} as const satisfies Record<string, (time: LogTime) => string>;

export type DateFlag = keyof typeof DATE_FLAGS;

export function isDateFlag(letter: string): letter is DateFlag {
  return Object.hasOwn(DATE_FLAGS, letter);
}

export function formatDateFlag(flag: DateFlag, time: LogTime): string {
  return DATE_FLAGS[flag](time);
}
