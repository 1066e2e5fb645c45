// The header names that weir looks up by number. The parser stores a known name's id beside the field and
// keeps a bit per id, so that asking for one costs a bit test instead of a comparison of strings.
// A new known header is a row here; the parser reads this list from its memory.

import * as layout from '../../../assembly/layout/http1.ts';

const FREE = layout.ID_FREE;

/** Id of each known name. An x-proxy-* name also stands for its x-envoy-* spelling. At most 63. */
export const HEADER_ID = {
  host: layout.ID_HOST,
  connection: layout.ID_CONNECTION,
  'content-length': layout.ID_CONTENT_LENGTH,
  'transfer-encoding': layout.ID_TRANSFER_ENCODING,
  upgrade: layout.ID_UPGRADE,
  expect: layout.ID_EXPECT,
  'keep-alive': layout.ID_KEEP_ALIVE,
  'proxy-connection': layout.ID_PROXY_CONNECTION,
  te: layout.ID_TE,
  'x-forwarded-for': layout.ID_X_FORWARDED_FOR,
  'x-forwarded-proto': layout.ID_X_FORWARDED_PROTO,
  'x-forwarded-host': layout.ID_X_FORWARDED_HOST,
  'x-request-id': FREE,
  via: FREE + 1,
  server: FREE + 2,
  date: FREE + 3,
  'user-agent': FREE + 4,
  referer: FREE + 5,
  'content-type': FREE + 6,
  location: FREE + 7,
  cookie: FREE + 8,
  'set-cookie': FREE + 9,
  authorization: FREE + 10,
  trailer: FREE + 11,
  origin: FREE + 12,
  'x-client-trace-id': FREE + 13,
  'grpc-timeout': FREE + 14,
  'grpc-status': FREE + 15,
  'grpc-message': FREE + 16,
  'x-proxy-internal': FREE + 17,
  'x-proxy-external-address': FREE + 18,
  'x-proxy-attempt-count': FREE + 19,
  'x-proxy-upstream-service-time': FREE + 20,
  'x-proxy-expected-rq-timeout-ms': FREE + 21,
  'x-proxy-upstream-rq-timeout-ms': FREE + 22,
  'x-proxy-upstream-rq-per-try-timeout-ms': FREE + 23,
  'x-proxy-upstream-stream-duration-ms': FREE + 24,
  'x-proxy-max-retries': FREE + 25,
  'x-proxy-retry-on': FREE + 26,
  'x-proxy-retry-grpc-on': FREE + 27,
  'x-proxy-retriable-status-codes': FREE + 28,
  'x-proxy-retriable-header-names': FREE + 29,
  'x-proxy-hedge-on-per-try-timeout': FREE + 30,
  'x-proxy-is-timeout-retry': FREE + 31,
  'x-proxy-original-path': FREE + 32,
  'x-proxy-original-dst-host': FREE + 33,
  'x-proxy-overloaded': FREE + 34,
  'x-proxy-ratelimited': FREE + 35,
  'x-proxy-degraded': FREE + 36,
  'x-proxy-immediate-health-check-fail': FREE + 37,
  'x-proxy-upstream-healthchecked-cluster': FREE + 38,
  'x-proxy-upstream-canary': FREE + 39,
  'x-proxy-upstream-alt-stat-name': FREE + 40,
  'x-proxy-decorator-operation': FREE + 41,
  'x-proxy-force-trace': FREE + 42,
  'x-proxy-downstream-service-cluster': FREE + 43,
  'x-proxy-downstream-service-node': FREE + 44,
  'x-proxy-upstream-rq-timeout-alt-response': FREE + 45,
  'x-proxy-original-url': FREE + 46,
  'x-proxy-ip-tags': FREE + 47,
  'x-forwarded-client-cert': FREE + 48,
} as const;

export type KnownHeader = keyof typeof HEADER_ID;
export type HeaderId = (typeof HEADER_ID)[KnownHeader];

/** Prefix of the names as they are listed here. */
export const DEFAULT_HEADER_PREFIX = 'x-proxy';
/** The same names in the tongue of the reference. */
export const HEADER_ALIAS_PREFIX = 'x-envoy';

/** Every spelling the parser recognizes, with its id. @param headerPrefix one more spelling of `x-proxy`. */
export function knownSpellings(headerPrefix = DEFAULT_HEADER_PREFIX): (readonly [name: string, id: number])[] {
  const prefixes = new Set([DEFAULT_HEADER_PREFIX, HEADER_ALIAS_PREFIX, headerPrefix.toLowerCase()]);
  const spellings: (readonly [string, number])[] = [];
  for (const [name, id] of Object.entries(HEADER_ID)) {
    if (!name.startsWith(`${DEFAULT_HEADER_PREFIX}-`)) spellings.push([name, id]);
    else for (const prefix of prefixes) spellings.push([prefix + name.slice(DEFAULT_HEADER_PREFIX.length), id]);
  }
  return spellings;
}

/** Where the parser begins to look for a name in lower case. */
export function knownBucket(name: string): number {
  const first = name.charCodeAt(0) * layout.KNOWN_HASH_FIRST;
  const last = name.charCodeAt(name.length - 1) * layout.KNOWN_HASH_LAST;
  return (first + last + name.length * layout.KNOWN_HASH_LENGTH) % layout.KNOWN_BUCKET_COUNT;
}

/** Places the names where the parser looks them up. Once per codec, before the first parse. */
export function writeKnownHeaders(memory: Buffer, headerPrefix = DEFAULT_HEADER_PREFIX): void {
  const spellings = knownSpellings(headerPrefix);
  if (spellings.length > layout.KNOWN_ENTRY_CAPACITY) throw new RangeError('too many known header names');
  let number = 0;
  for (const [name, id] of spellings) {
    if (name.length > layout.KNOWN_NAME_CAPACITY || id >= layout.KNOWN_ID_CAPACITY) {
      throw new RangeError(`${name} does not fit the table of known header names`);
    }
    const entry = layout.KNOWN_ENTRIES + number * layout.KNOWN_ENTRY_BYTES;
    const bucket = layout.KNOWN_BUCKETS + knownBucket(name);
    number += 1;
    memory[entry + layout.KNOWN_ENTRY_LENGTH] = name.length;
    memory[entry + layout.KNOWN_ENTRY_ID] = id;
    memory[entry + layout.KNOWN_ENTRY_NEXT] = memory[bucket]!;
    memory.write(name, entry + layout.KNOWN_ENTRY_NAME, 'latin1');
    memory[bucket] = number;
  }
}
