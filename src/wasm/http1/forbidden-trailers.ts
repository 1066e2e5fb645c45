// Fields that may not come as trailers (RFC 9110 section 6.5.1), recognized one byte at a time: a name can be cut
// anywhere by the buffers that it arrives in, and nothing of it is kept.

/**
 * Framing, routing, authentication and content fields, those of one hop, and those by which proxies tell who the client
 * is: a reader that merges trailers would take them for headers. At most 31.
 */
const FORBIDDEN_NAMES = [
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

const FORBIDDEN: ReadonlySet<string> = new Set(FORBIDDEN_NAMES);
const ALL = 2 ** FORBIDDEN_NAMES.length - 1;
const LONGEST = Math.max(...FORBIDDEN_NAMES.map((name) => name.length));

/** MATCHING[position * 256 + byte]: one bit per name that has this byte, in either case, at this position. */
const MATCHING = new Int32Array(LONGEST * 256);
/** ENDING[length]: one bit per name of this length. */
const ENDING = new Int32Array(LONGEST + 1);
FORBIDDEN_NAMES.forEach((name, bit) => {
  for (let position = 0; position < name.length; position += 1) {
    MATCHING[position * 256 + name.charCodeAt(position)]! |= 1 << bit;
    MATCHING[position * 256 + name.toUpperCase().charCodeAt(position)]! |= 1 << bit;
  }
  ENDING[name.length]! |= 1 << bit;
});

/** True when a field of this name, in whatever case, may not come as a trailer. */
export function isForbiddenTrailer(name: string): boolean {
  return FORBIDDEN.has(name.toLowerCase());
}

/** Which of the names the bytes so far may still become. */
export class ForbiddenNameMatch {
  #candidates = 0;
  #length = 0;

  begin(): void {
    this.#candidates = ALL;
    this.#length = 0;
  }

  add(byte: number): void {
    this.#candidates = this.#length < LONGEST ? this.#candidates & MATCHING[this.#length * 256 + byte]! : 0;
    this.#length += 1;
  }

  /** True when the bytes since begin() are exactly one of the names. */
  isForbidden(): boolean {
    return this.#candidates !== 0 && (this.#candidates & ENDING[this.#length]!) !== 0;
  }
}
