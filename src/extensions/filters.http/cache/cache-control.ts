// Directives of Cache-Control (RFC 9111 section 5.2), of requests and of responses. What cannot be read counts in the way that
// keeps least.

/** Times are seconds; undefined where nothing is said. */
export interface CacheControl {
  readonly noStore: boolean;
  readonly noCache: boolean;
  /** Also with names of fields: nobody keeps a part of a response here. */
  readonly isPrivate: boolean;
  readonly isPublic: boolean;
  readonly mustRevalidate: boolean;
  readonly noTransform: boolean;
  readonly onlyIfCached: boolean;
  readonly maxAge: number | undefined;
  readonly sMaxAge: number | undefined;
  readonly minFresh: number | undefined;
  /** Behind its time (RFC 5861): while the upstream is asked, and where that fails. */
  readonly staleWhileRevalidate: number | undefined;
  readonly staleIfError: number | undefined;
  /** Infinity for any time. */
  readonly maxStale: number | undefined;
}

/** Greater ones mean it (RFC 9111 section 1.2.2). */
const MOST_SECONDS = 2 ** 31;
const DIRECTIVE = /([!#$%&'*+\-.^_`|~0-9A-Za-z]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/g;

/** @param value of the field, several of them joined by commas; undefined without one. */
export function parseCacheControl(value: string | undefined): CacheControl {
  const found = new Map<string, string[]>();
  for (const [, name = '', quoted, bare] of (value ?? '').matchAll(DIRECTIVE)) {
    const key = name.toLowerCase();
    const values = found.get(key) ?? [];
    values.push(quoted ?? bare ?? '');
    found.set(key, values);
  }
  const seconds = (name: string): number | undefined => leastSeconds(found.get(name));
  const maxStale = found.get('max-stale');
  return {
    noStore: found.has('no-store'),
    noCache: found.has('no-cache'),
    isPrivate: found.has('private'),
    isPublic: found.has('public'),
    mustRevalidate: found.has('must-revalidate') || found.has('proxy-revalidate'),
    noTransform: found.has('no-transform'),
    onlyIfCached: found.has('only-if-cached'),
    maxAge: seconds('max-age'),
    sMaxAge: seconds('s-maxage'),
    minFresh: seconds('min-fresh'),
    staleWhileRevalidate: seconds('stale-while-revalidate'),
    staleIfError: seconds('stale-if-error'),
    maxStale: maxStale?.every((text) => text === '') ? Number.POSITIVE_INFINITY : seconds('max-stale'),
  };
}

/** The least of what is said, as who says two things cannot mean the greater; 0 for what is no number. */
function leastSeconds(values: readonly string[] | undefined): number | undefined {
  if (values === undefined) return undefined;
  return Math.min(...values.map((text) => (/^\d+$/.test(text) ? Math.min(Number(text), MOST_SECONDS) : 0)));
}
