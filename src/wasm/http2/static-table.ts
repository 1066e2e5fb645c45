// The static table of RFC 7541, appendix A, placed where the module looks fields up, by index and by name.

import * as http1 from '../../../assembly/layout/http1.ts';
import * as layout from '../../../assembly/layout/http2.ts';
import { HEADER_ID, knownBucket } from '../http1/known-headers.ts';
import type { CodecMemory } from '../http1/memory.ts';

/** Names with the values that have an index of their own, in the table's order. */
export const STATIC_TABLE: readonly (readonly [name: string, ...values: string[]])[] = [
  [':authority'],
  [':method', 'GET', 'POST'],
  [':path', '/', '/index.html'],
  [':scheme', 'http', 'https'],
  [':status', '200', '204', '206', '304', '400', '404', '500'],
  ['accept-charset'],
  ['accept-encoding', 'gzip, deflate'],
  ...(
    'accept-language accept-ranges accept access-control-allow-origin age allow authorization cache-control ' +
    'content-disposition content-encoding content-language content-length content-location content-range ' +
    'content-type cookie date etag expect expires from host if-match if-modified-since if-none-match if-range ' +
    'if-unmodified-since last-modified link location max-forwards proxy-authenticate proxy-authorization range ' +
    'referer refresh retry-after server set-cookie strict-transport-security transfer-encoding user-agent vary via ' +
    'www-authenticate'
  )
    .split(' ')
    .map((name): readonly [string] => [name]),
];

/** Credentials: no table of any connection holds them (RFC 7541 section 7.1.3). */
const NEVER_INDEXED = new Set(['authorization', 'cookie', 'proxy-authorization', 'set-cookie']);
/** Of use to one message only, and likely to come twice by chance. */
const NOT_INDEXED = new Set([
  ':path',
  'age',
  'content-length',
  'content-location',
  'content-range',
  'etag',
  'expires',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-modified',
  'location',
  'range',
]);

const KINDS: Readonly<Record<string, number>> = {
  ':authority': layout.KIND_AUTHORITY,
  ':method': layout.KIND_METHOD,
  ':path': layout.KIND_PATH,
  ':scheme': layout.KIND_SCHEME,
  ':status': layout.KIND_STATUS,
  host: layout.KIND_HOST,
  cookie: layout.KIND_COOKIE,
  'transfer-encoding': layout.KIND_CONNECTION,
};

/** Known ids by name; a name that is not listed has none. */
const IDS: Readonly<Record<string, number | undefined>> = HEADER_ID;

function policyOf(name: string): number {
  if (NEVER_INDEXED.has(name)) return layout.POLICY_NEVER;
  return NOT_INDEXED.has(name) ? layout.POLICY_LITERAL : layout.POLICY_INDEX;
}

/** Once per codec memory, before the first block. */
export function writeStaticTable({ bytes, u16, u32 }: CodecMemory): void {
  let index = 1;
  let text: number = layout.STATIC_TEXT;
  for (const [name, ...values] of STATIC_TABLE) {
    const first = index;
    const id = IDS[name] ?? 0;
    for (const value of values.length === 0 ? [''] : values) {
      const entry = layout.STATIC_ENTRIES + index * layout.ENTRY_BYTES;
      u32[(entry + layout.ENTRY_TEXT) >> 2] = text;
      u16[(entry + layout.ENTRY_NAME_LENGTH) >> 1] = name.length;
      u16[(entry + layout.ENTRY_VALUE_LENGTH) >> 1] = value.length;
      bytes[entry + layout.ENTRY_ID] = id;
      bytes[entry + layout.ENTRY_KIND] = KINDS[name] ?? layout.KIND_ORDINARY;
      bytes[layout.STATIC_POLICY + index] = policyOf(name);
      text += bytes.write(name + value, text, 'latin1');
      index += 1;
    }
    if (id !== 0) bytes[layout.STATIC_BY_ID + id] = first;
    const bucket = layout.STATIC_BUCKETS + knownBucket(name);
    bytes[layout.STATIC_NEXT + first] = bytes[bucket]!;
    bytes[bucket] = first;
  }
  if (index !== layout.STATIC_COUNT + 1 || text > layout.STATIC_TEXT + layout.STATIC_TEXT_BYTES) {
    throw new RangeError('the static table does not fit its layout');
  }
  // Names beyond the static table are indexed, which is policy 0 of index 0.
  bytes[layout.STATIC_POLICY] = layout.POLICY_INDEX;
  if (http1.KNOWN_BUCKET_COUNT !== 256) throw new RangeError('static names lie in 256 buckets');
}
