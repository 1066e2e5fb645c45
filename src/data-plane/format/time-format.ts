// Formats of START_TIME and its like: the conversions of strftime, and fractions of a second:
//
//   %f %3f %6f %9f   fraction in so many digits (9 without a number)        %E3S %E*S   seconds with a fraction
//   %s               whole seconds since the Unix epoch                     %Ez         offset as +hh:mm
//
// Names are English whatever the locale. What stands still within a second is made once per second.

/** @param timeMs milliseconds since the Unix epoch, with a fraction. */
export type FormatTime = (timeMs: number) => string;

/** Digits of a fraction, or a text of the calendar. */
type Part = { readonly digits: number } | ((calendar: Calendar) => string);

const DEFAULT_FORMAT = '%Y-%m-%dT%H:%M:%S.%3fZ';
const CONVERSION = /%(?:([1-9])?f|E([1-9*])S|(Ez)|([A-Za-z%]))/g;
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = 'January February March April May June July August September October November December'.split(' ');
const DAY_MS = 86_400_000;
const NANO_DIGITS = 9;

/** An instant taken apart, in UTC or in the machine's time zone. */
class Calendar {
  readonly epochSeconds: number;
  readonly offsetMinutes: number;
  /** Its UTC fields are those of the zone. */
  readonly fields: Date;

  constructor(epochSeconds: number, isLocal: boolean) {
    this.epochSeconds = epochSeconds;
    this.offsetMinutes = isLocal ? -new Date(epochSeconds * 1000).getTimezoneOffset() : 0;
    this.fields = new Date((epochSeconds + this.offsetMinutes * 60) * 1000);
  }

  get dayOfYear(): number {
    return Math.floor((this.fields.getTime() - Date.UTC(this.fields.getUTCFullYear(), 0, 1)) / DAY_MS) + 1;
  }

  get hour12(): number {
    return this.fields.getUTCHours() % 12 || 12;
  }

  offset(separator: string): string {
    const size = Math.abs(this.offsetMinutes);
    return `${this.offsetMinutes < 0 ? '-' : '+'}${padded(Math.floor(size / 60), 2)}${separator}${padded(size % 60, 2)}`;
  }
}

function padded(value: number, width: number, fill = '0'): string {
  return String(value).padStart(width, fill);
}

const CONVERSIONS: Readonly<Record<string, (calendar: Calendar) => string>> = {
  a: ({ fields }) => DAYS[fields.getUTCDay()]!.slice(0, 3),
  A: ({ fields }) => DAYS[fields.getUTCDay()]!,
  b: ({ fields }) => MONTHS[fields.getUTCMonth()]!.slice(0, 3),
  B: ({ fields }) => MONTHS[fields.getUTCMonth()]!,
  C: ({ fields }) => padded(Math.floor(fields.getUTCFullYear() / 100), 2),
  d: ({ fields }) => padded(fields.getUTCDate(), 2),
  e: ({ fields }) => padded(fields.getUTCDate(), 2, ' '),
  h: ({ fields }) => MONTHS[fields.getUTCMonth()]!.slice(0, 3),
  H: ({ fields }) => padded(fields.getUTCHours(), 2),
  I: (calendar) => padded(calendar.hour12, 2),
  j: (calendar) => padded(calendar.dayOfYear, 3),
  k: ({ fields }) => padded(fields.getUTCHours(), 2, ' '),
  l: (calendar) => padded(calendar.hour12, 2, ' '),
  m: ({ fields }) => padded(fields.getUTCMonth() + 1, 2),
  M: ({ fields }) => padded(fields.getUTCMinutes(), 2),
  n: () => '\n',
  p: ({ fields }) => (fields.getUTCHours() < 12 ? 'AM' : 'PM'),
  s: ({ epochSeconds }) => String(epochSeconds),
  S: ({ fields }) => padded(fields.getUTCSeconds(), 2),
  t: () => '\t',
  u: ({ fields }) => String(fields.getUTCDay() || 7),
  U: ({ dayOfYear, fields }) => padded(Math.floor((dayOfYear + 6 - fields.getUTCDay()) / 7), 2),
  w: ({ fields }) => String(fields.getUTCDay()),
  W: ({ dayOfYear, fields }) => padded(Math.floor((dayOfYear + 6 - ((fields.getUTCDay() + 6) % 7)) / 7), 2),
  y: ({ fields }) => padded(fields.getUTCFullYear() % 100, 2),
  Y: ({ fields }) => padded(fields.getUTCFullYear(), 4),
  z: (calendar) => calendar.offset(''),
  Z: (calendar) => (calendar.offsetMinutes === 0 ? 'UTC' : calendar.offset('')),
};

/** Conversions that stand for several others. */
const COMPOSED: Readonly<Record<string, string>> = {
  c: '%a %b %e %H:%M:%S %Y',
  D: '%m/%d/%y',
  F: '%Y-%m-%d',
  r: '%I:%M:%S %p',
  R: '%H:%M',
  T: '%H:%M:%S',
  x: '%m/%d/%y',
  X: '%H:%M:%S',
};

/** @param format empty for ISO 8601 with milliseconds. An unknown conversion is written as it stands. */
export function compileTimeFormat(format: string, isLocal: boolean): FormatTime {
  const parts = partsOf(format || DEFAULT_FORMAT);
  let second = Number.NaN;
  let still: readonly (string | number)[] = [];
  return (timeMs) => {
    const nowSecond = Math.floor(timeMs / 1000);
    if (nowSecond !== second) {
      second = nowSecond;
      still = standStill(parts, new Calendar(second, isLocal));
    }
    let text = '';
    for (const part of still) text += typeof part === 'string' ? part : fraction(timeMs - second * 1000, part);
    return text;
  };
}

/** Texts, and between them the digits of fractions. */
function standStill(parts: readonly Part[], calendar: Calendar): (string | number)[] {
  const still: (string | number)[] = [];
  let text = '';
  for (const part of parts) {
    if (typeof part === 'function') {
      text += part(calendar);
    } else {
      still.push(text, part.digits);
      text = '';
    }
  }
  still.push(text);
  return still;
}

function fraction(withinSecondMs: number, digits: number): string {
  const nanoseconds = Math.min(Math.floor(withinSecondMs * 1e6), 999_999_999);
  return padded(nanoseconds, NANO_DIGITS).slice(0, digits);
}

function partsOf(format: string): Part[] {
  const parts: Part[] = [];
  let at = 0;
  for (const match of format.matchAll(CONVERSION)) {
    const [whole, digits, secondDigits, offset, letter] = match;
    parts.push(literal(format.slice(at, match.index)));
    at = match.index + whole.length;
    if (secondDigits !== undefined) {
      parts.push(CONVERSIONS.S!, literal('.'), { digits: secondDigits === '*' ? NANO_DIGITS : Number(secondDigits) });
    } else if (offset !== undefined) parts.push((calendar) => calendar.offset(':'));
    else if (letter === undefined) parts.push({ digits: Number(digits ?? NANO_DIGITS) });
    else parts.push(...lettered(letter));
  }
  parts.push(literal(format.slice(at)));
  return parts;
}

function lettered(letter: string): Part[] {
  if (letter === '%') return [literal('%')];
  const composed = COMPOSED[letter];
  if (composed !== undefined) return partsOf(composed);
  return [CONVERSIONS[letter] ?? literal(`%${letter}`)];
}

function literal(text: string): Part {
  return () => text;
}
