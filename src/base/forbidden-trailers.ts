// Fields that may not come as trailers (RFC 9110 section 6.5.1).

/**
 * Framing, routing, authentication and content fields, those of one hop, and those by which proxies tell who the client
 * is: a reader that merges trailers would take them for headers. At most 31.
 */
export const FORBIDDEN_TRAILERS = [
  'transfer-encoding',
  'content-length',
  'host',
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'max-forwards',
  'content-encoding',
  'content-type',
  'content-range',
  'authorization',
  'www-authenticate',
  'proxy-authorization',
  'proxy-authenticate',
  'cookie',
  'set-cookie',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-forwarded-client-cert',
  'x-real-ip',
] as const;

const FORBIDDEN: ReadonlySet<string> = new Set(FORBIDDEN_TRAILERS);

/** True when a field of this name, in whatever case, may not come as a trailer. */
export function isForbiddenTrailer(name: string): boolean {
  return FORBIDDEN.has(name.toLowerCase());
}
