// A response as it is kept, and what may be kept at all (RFC 9111 section 3).

import { type CacheControl, parseCacheControl } from './cache-control.ts';
import { datesOf, type ResponseDates } from './freshness.ts';

export type Field = readonly [name: string, value: string];

/** When a response came; seconds. */
export interface Moments {
  readonly requestedAt: number;
  readonly receivedAt: number;
  /** Monotonic. */
  readonly receivedMonotonic: number;
}

export interface StoredResponse {
  readonly status: number;
  /** Names in lower case, without those that belong to its connection. */
  readonly fields: readonly Field[];
  readonly body: Buffer;
  readonly dates: ResponseDates;
  /** Monotonic. */
  readonly receivedMonotonic: number;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  /** The cluster that it came from; others have their own. */
  readonly cluster: string;
  /** Names that it varies by, with what its request said of them. */
  readonly vary: readonly (readonly [name: string, value: string | undefined])[];
}

/** Understood, and kept where they say for how long (RFC 9110 section 15.1), but for parts. */
const STATUSES = new Set([200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 451, 501]);

/** Of one connection or one message, and what clients get anew. */
const NOT_KEPT = new Set([
  'age',
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'content-length',
  'upgrade',
]);

/** What a 304 does not change of what it stands for: they describe the body that is kept. */
const OF_THE_BODY = new Set(['content-encoding', 'content-length', 'content-range', 'content-type']);

export function valueIn(fields: readonly Field[], name: string): string | undefined {
  const values = fields.flatMap(([each, value]) => (each === name ? [value] : []));
  return values.length === 0 ? undefined : values.join(', ');
}

/** @param entries of a head. */
export function keptFields(entries: readonly Field[]): readonly Field[] {
  const ofConnection = new Set(
    (valueIn(entries, 'connection') ?? '').split(',').map((name) => name.trim().toLowerCase()),
  );
  return entries.filter(([name]) => !NOT_KEPT.has(name) && !ofConnection.has(name));
}

/** @param isAuthorized its request came with credentials. */
export function mayStore(
  status: number,
  fields: readonly Field[],
  { control, lifetime }: ResponseDates,
  isAuthorized: boolean,
): boolean {
  if (!STATUSES.has(status) || control.noStore || control.isPrivate) return false;
  // Cookies are one client's.
  if (valueIn(fields, 'set-cookie') !== undefined) return false;
  if (isAuthorized && !isForAll(control)) return false;
  const isValidatable = valueIn(fields, 'etag') !== undefined || valueIn(fields, 'last-modified') !== undefined;
  const { staleWhileRevalidate = 0, staleIfError = 0, mustRevalidate } = control;
  const staleFor = mustRevalidate ? 0 : Math.max(staleWhileRevalidate, staleIfError);
  const isGoodForATime = lifetime !== undefined && lifetime + staleFor > 0 && !control.noCache;
  return isGoodForATime || (isValidatable && (lifetime !== undefined || control.noCache));
}

/** Also what a request with credentials has got may be given to others (RFC 9111 section 3.5). */
export function isForAll({ isPublic, mustRevalidate, sMaxAge }: CacheControl): boolean {
  return isPublic || mustRevalidate || sMaxAge !== undefined;
}

/** Names that a response varies by, in lower case; null where no other request can get it. */
export function variedBy(fields: readonly Field[]): readonly string[] | null {
  const names = (valueIn(fields, 'vary') ?? '').split(',').map((name) => name.trim().toLowerCase());
  const said = [...new Set(names.filter((name) => name !== ''))];
  return said.includes('*') ? null : said;
}

/** With what a 304 says of it (RFC 9111 section 4.3.4). @param entries of the head of the 304. */
export function refreshed(stored: StoredResponse, entries: readonly Field[], moments: Moments): StoredResponse {
  const news = keptFields(entries).filter(([name]) => !OF_THE_BODY.has(name));
  const said = new Set(news.map(([name]) => name));
  const fields = [...stored.fields.filter(([name]) => !said.has(name)), ...news];
  // The age of the 304 itself is not among what is kept.
  const read = (name: string) => valueIn(name === 'age' ? entries : fields, name);
  return {
    ...stored,
    fields,
    dates: datesOf(read, moments.requestedAt, moments.receivedAt),
    receivedMonotonic: moments.receivedMonotonic,
    etag: valueIn(fields, 'etag'),
    lastModified: valueIn(fields, 'last-modified'),
  };
}

/** Directives of a request; `pragma` speaks where there are none. */
export function requestControl(cacheControl: string | undefined, pragma: string | undefined): CacheControl {
  return parseCacheControl(
    cacheControl ?? (pragma !== undefined && /\bno-cache\b/i.test(pragma) ? 'no-cache' : undefined),
  );
}
