// How old a response is, and how long it may be given to others without asking (RFC 9111 section 4.2). Times are seconds; wall
// time where dates are compared, monotonic where time passes.

import { type CacheControl, parseCacheControl } from './cache-control.ts';

/** What a response says of itself. */
export interface ResponseDates {
  readonly control: CacheControl;
  /** How long it is fresh; undefined where it does not say. */
  readonly lifetime: number | undefined;
  /** How old it was when it came. */
  readonly initialAge: number;
}

/** First value of a field by its name in lower case, several fields of a name joined. */
export type FieldReader = (name: string) => string | undefined;

/**
 * @param requestedAt when it was asked for, @param receivedAt when it came; wall time.
 */
export function datesOf(read: FieldReader, requestedAt: number, receivedAt: number): ResponseDates {
  const control = parseCacheControl(read('cache-control'));
  const date = secondsOfDate(read('date')) ?? receivedAt;
  const ageText = read('age');
  // An age that is said twice, or in words, is not known.
  const age = ageText === undefined || !/^\d+$/.test(ageText) ? 0 : Number(ageText);
  const apparent = Math.max(0, receivedAt - date);
  const corrected = age + Math.max(0, receivedAt - requestedAt);
  return { control, lifetime: lifetimeOf(read, control, date), initialAge: Math.max(apparent, corrected) };
}

function lifetimeOf(read: FieldReader, control: CacheControl, date: number): number | undefined {
  const said = control.sMaxAge ?? control.maxAge;
  if (said !== undefined) return said;
  const expires = read('expires');
  if (expires === undefined) return undefined;
  // What is no date means the past (RFC 9111 section 5.3).
  return Math.max(0, (secondsOfDate(expires) ?? date) - date);
}

/** @returns undefined for what is no date. */
export function secondsOfDate(text: string | undefined): number | undefined {
  if (text === undefined || !/^[A-Za-z]{3,9},? /.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000);
}

/** What may be given of a response that has to be asked about (RFC 5861). */
export interface Staleness {
  /** While somebody asks. */
  readonly whileRevalidating: boolean;
  /** Where the upstream fails. */
  readonly ifError: boolean;
}

const NEVER: Staleness = { whileRevalidating: false, ifError: false };

/**
 * Of a response of this age that is not fresh. A lifetime for shared caches does not stand against what the same response says of its
 * stale self, other than `must-revalidate`; a request that wants news gets no old ones.
 * @param request null where clients have no say.
 */
export function stalenessFor(
  { control, lifetime = 0 }: Pick<ResponseDates, 'control' | 'lifetime'>,
  age: number,
  request: CacheControl | null,
): Staleness {
  if (control.noCache || control.mustRevalidate) return NEVER;
  const { noCache = false, maxAge, minFresh = 0, staleIfError: wanted = 0 } = request ?? {};
  if (noCache || minFresh > 0 || (maxAge !== undefined && age > maxAge)) return NEVER;
  const staleFor = age - lifetime;
  return {
    whileRevalidating: staleFor <= (control.staleWhileRevalidate ?? 0),
    ifError: staleFor <= Math.max(control.staleIfError ?? 0, wanted),
  };
}

/** What a request takes from a cache. */
export type Freshness = 'fresh' | 'must-validate';

/**
 * Whether a response of this age may answer a request without asking the upstream.
 * @param request null where clients have no say.
 */
export function freshnessFor(
  { control, lifetime = 0 }: Pick<ResponseDates, 'control' | 'lifetime'>,
  age: number,
  request: CacheControl | null,
): Freshness {
  if (control.noCache) return 'must-validate';
  const left = lifetime - age;
  if (request === null) return left > 0 ? 'fresh' : 'must-validate';
  const { noCache, maxAge, minFresh = 0, maxStale } = request;
  if (noCache || (maxAge !== undefined && age > maxAge)) return 'must-validate';
  if (left > 0) return left >= minFresh ? 'fresh' : 'must-validate';
  // A shared cache that is told how long says so on behalf of must-revalidate, too (RFC 9111 section 5.2.2.10).
  if (maxStale === undefined || minFresh > 0 || control.mustRevalidate || control.sMaxAge !== undefined) {
    return 'must-validate';
  }
  return -left <= maxStale ? 'fresh' : 'must-validate';
}
