// Layout of the HTTP/1 part of a worker's codec memory; http2.ts has what lies behind it. One thread's own, no heap,
// no static data. Both compilers read this file, so it holds numbers and arithmetic only.
//
//   0        ┌──────────────────────────────┐
//            │ unused, so that 0 is no address │
//   64       ├──────────────────────────────┤
//            │ request record   512           │  RECORD_* offsets, written by parse and by the facade
//            │ response record  512           │
//            ├──────────────────────────────┤
//            │ known names: buckets, entries  │  written once by the facade, read by parse
//            ├──────────────────────────────┤
//            │ request fields   16 x 1024     │  FIELD_* offsets, one entry per header line
//            │ response fields  16 x 1024     │
//            ├──────────────────────────────┤
//            │ request in    64 KiB + slack   │  heads that lie elsewhere are copied in here
//            │ response in   64 KiB + slack   │
//            ├──────────────────────────────┤
//            │ prepared lines   32 KiB        │  constant header lines, placed once
//            │ new target       64 KiB        │  texts of the edits at hand
//            │ new host          4 KiB        │
//            │ request lines    32 KiB        │
//            │ response lines   32 KiB        │
//            ├──────────────────────────────┤
//            │ request out     208 KiB        │  the rewritten heads
//            │ response out    144 KiB        │
//            └──────────────────────────────┘ MEMORY_BYTES, whole pages
//
// Slack: copying and scanning go in steps of 16 bytes and may touch up to 15 bytes behind a region.

/** Raised with every change of this file; a module built from another version is refused. */
export const LAYOUT_VERSION = 9;

export const SLACK_BYTES = 64;

// One record per direction, filled by one parse. u32 unless said; offsets count from the first byte of the head.
export const RECORD_BYTES = 512;
export const REQUEST_RECORD = 64;
export const RESPONSE_RECORD = REQUEST_RECORD + RECORD_BYTES;

/** Address of the head's first byte. */
export const RECORD_BASE = 0;
export const RECORD_HEAD_LENGTH = 4;
/** f64; -1 without a Content-Length. */
export const RECORD_CONTENT_LENGTH = 8;
export const RECORD_FLAGS = 16;
export const RECORD_FIELD_COUNT = 20;
export const RECORD_FRAMING = 24;
export const RECORD_MINOR_VERSION = 28;
/** Bit i says that a field with known id i is present: ids 0 to 31, then 32 to 63. */
export const RECORD_KNOWN_LOW = 32;
export const RECORD_KNOWN_HIGH = 36;
/** Request: METHOD_* id. Response: status code. */
export const RECORD_METHOD = 40;
export const RECORD_STATUS = 40;
/** First byte of the start line: 2 when an empty line stood before it. */
export const RECORD_START = 44;
export const RECORD_METHOD_LENGTH = 48;
/** Request: the target as received. Response: the reason phrase. */
export const RECORD_TARGET_OFFSET = 52;
export const RECORD_TARGET_LENGTH = 56;
/** Path and query within the target; empty for authority-form and for an absolute form without a path. */
export const RECORD_PATH_OFFSET = 60;
export const RECORD_PATH_LENGTH = 64;
/** Effective host[:port]: from the target when it has one, else from Host. */
export const RECORD_AUTHORITY_OFFSET = 68;
export const RECORD_AUTHORITY_LENGTH = 72;
/** First byte of the first field line. */
export const RECORD_FIELDS_START = 76;
// Edits. Addresses are 0 when there is no such edit.
export const RECORD_NEW_TARGET_LENGTH = 80;
export const RECORD_NEW_HOST_LENGTH = 84;
/** Bytes and lines of free text behind the prepared pieces. */
export const RECORD_ADDED_BYTES = 88;
export const RECORD_ADDED_LINES = 92;
export const RECORD_PIECE_COUNT = 96;
/** u16 x 64: field index of the first and of the last field with that known id. */
export const RECORD_FIRST_FIELD = 128;
export const RECORD_LAST_FIELD = 256;
/** (u32 address, u32 length) x PIECE_CAPACITY: prepared lines to append. */
export const RECORD_PIECES = 384;
export const PIECE_BYTES = 8;
export const PIECE_CAPACITY = 16;

// Known names: 256 buckets of one byte (number of the first entry, 0 for none), then the entries.
export const KNOWN_ID_CAPACITY = 64;
export const KNOWN_BUCKETS = RESPONSE_RECORD + RECORD_BYTES;
export const KNOWN_BUCKET_COUNT = 256;
/** Entries are numbered from 1. */
export const KNOWN_ENTRIES = KNOWN_BUCKETS + KNOWN_BUCKET_COUNT;
export const KNOWN_ENTRY_BYTES = 64;
export const KNOWN_ENTRY_CAPACITY = 128;
export const KNOWN_ENTRY_LENGTH = 0;
export const KNOWN_ENTRY_ID = 1;
/** Number of the next entry in the bucket, 0 for none. */
export const KNOWN_ENTRY_NEXT = 2;
/** Lower case, padded with zeros. */
export const KNOWN_ENTRY_NAME = 16;
export const KNOWN_NAME_CAPACITY = 48;
// Bucket of a name: its first and last byte in lower case and its length, each times one of these, modulo 256.
export const KNOWN_HASH_FIRST = 5;
export const KNOWN_HASH_LAST = 9;
export const KNOWN_HASH_LENGTH = 17;

// Header table, u16 unless said. Offsets of 16 bits bound a head to 65,535 bytes.
export const FIELD_BYTES = 16;
export const FIELD_CAPACITY = 1024;
export const FIELD_NAME_OFFSET = 0;
export const FIELD_NAME_LENGTH = 2;
export const FIELD_VALUE_OFFSET = 4;
export const FIELD_VALUE_LENGTH = 6;
/** First byte behind this field's line. */
export const FIELD_NEXT_LINE = 8;
/** Known id, 0 for any other name. */
export const FIELD_KNOWN_ID = 10;
/** Index of the next field with the same known id, NO_FIELD at the last. */
export const FIELD_NEXT_SAME = 12;
export const FIELD_FLAGS = 14;
export const NO_FIELD = 65535;
export const REQUEST_FIELDS = KNOWN_ENTRIES + KNOWN_ENTRY_BYTES * KNOWN_ENTRY_CAPACITY + 64;
export const RESPONSE_FIELDS = REQUEST_FIELDS + FIELD_BYTES * FIELD_CAPACITY;

/** The field does not go into the rewritten head. */
export const FIELD_DROPPED = 1;
/** The name holds an underscore. */
export const FIELD_UNDERSCORE = 2;

export const AREA_BYTES = 65536;
export const REQUEST_IN = RESPONSE_FIELDS + FIELD_BYTES * FIELD_CAPACITY;
export const RESPONSE_IN = REQUEST_IN + AREA_BYTES + SLACK_BYTES;
export const HEAD_LIMIT_BYTES = 65535;

export const PREPARED = RESPONSE_IN + AREA_BYTES + SLACK_BYTES;
export const PREPARED_BYTES = 32768;
export const NEW_TARGET = PREPARED + PREPARED_BYTES + SLACK_BYTES;
export const NEW_TARGET_BYTES = 65536;
export const NEW_HOST = NEW_TARGET + NEW_TARGET_BYTES + SLACK_BYTES;
export const NEW_HOST_BYTES = 4096;
export const REQUEST_LINES = NEW_HOST + NEW_HOST_BYTES + SLACK_BYTES;
export const LINES_BYTES = 32768;
export const RESPONSE_LINES = REQUEST_LINES + LINES_BYTES + SLACK_BYTES;

export const REQUEST_OUT = RESPONSE_LINES + LINES_BYTES + SLACK_BYTES;
export const REQUEST_OUT_BYTES = 212992;
export const RESPONSE_OUT = REQUEST_OUT + REQUEST_OUT_BYTES + SLACK_BYTES;
export const RESPONSE_OUT_BYTES = 147456;

export const PAGE_BYTES = 65536;
export const MEMORY_PAGES = 12;
export const MEMORY_END = RESPONSE_OUT + RESPONSE_OUT_BYTES + SLACK_BYTES;

// Methods. Any other token is METHOD_OTHER.
export const METHOD_OTHER = 0;
export const METHOD_GET = 1;
export const METHOD_HEAD = 2;
export const METHOD_POST = 3;
export const METHOD_PUT = 4;
export const METHOD_DELETE = 5;
export const METHOD_CONNECT = 6;
export const METHOD_OPTIONS = 7;
export const METHOD_TRACE = 8;
export const METHOD_PATCH = 9;

// Known ids that the parser itself acts on; the facade's list of names continues behind them.
export const ID_HOST = 1;
export const ID_CONNECTION = 2;
export const ID_CONTENT_LENGTH = 3;
export const ID_TRANSFER_ENCODING = 4;
export const ID_UPGRADE = 5;
export const ID_EXPECT = 6;
export const ID_KEEP_ALIVE = 7;
export const ID_PROXY_CONNECTION = 8;
export const ID_TE = 9;
export const ID_X_FORWARDED_FOR = 10;
export const ID_X_FORWARDED_PROTO = 11;
export const ID_X_FORWARDED_HOST = 12;
/** First id without a meaning to the parser. */
export const ID_FREE = 13;

// How the body's end is found.
export const FRAMING_NONE = 0;
export const FRAMING_LENGTH = 1;
export const FRAMING_CHUNKED = 2;
export const FRAMING_UNTIL_CLOSE = 3;
export const FRAMING_TUNNEL = 4;

// Flags of a head.
/** The connection may carry another message after this one. */
export const FLAG_PERSISTENT = 1;
export const FLAG_CLOSE = 2;
export const FLAG_KEEP_ALIVE = 4;
/** Connection names upgrade and an Upgrade field is present. */
export const FLAG_UPGRADE = 8;
/** HTTP/1.1 request with Expect: 100-continue. */
export const FLAG_EXPECT_CONTINUE = 16;
/** Expect with anything else: 417. */
export const FLAG_EXPECT_OTHER = 32;
/** Connection named further fields, now marked as dropped. */
export const FLAG_NOMINATED = 64;
export const FLAG_ABSOLUTE_FORM = 128;
export const FLAG_AUTHORITY_FORM = 256;
export const FLAG_ASTERISK_FORM = 512;
/** Absolute form with the https scheme. */
export const FLAG_HTTPS = 1024;
/** Some field name holds an underscore. */
export const FLAG_UNDERSCORE = 2048;
/** Request: written with its edits, which are still there, and read back from that text it would be the same head. */
export const FLAG_WRITTEN = 4096;

/** Options that the Connection fields of one head may list. */
export const CONNECTION_OPTION_LIMIT = 32;
/** Digits of a Content-Length: 15 keep every value exact in an f64. */
export const CONTENT_LENGTH_DIGITS = 15;

// Results of parse and write below zero. 0 is an incomplete head.
export const ERROR_HEAD_TOO_LARGE = -1;
export const ERROR_TOO_MANY_FIELDS = -2;
export const ERROR_METHOD = -3;
export const ERROR_TARGET = -4;
export const ERROR_VERSION_SYNTAX = -5;
export const ERROR_VERSION = -6;
export const ERROR_STATUS_LINE = -7;
export const ERROR_LINE_END = -8;
export const ERROR_FOLDED = -9;
export const ERROR_FIELD_NAME = -10;
export const ERROR_SPACE_BEFORE_COLON = -11;
export const ERROR_FIELD_VALUE = -12;
export const ERROR_HOST_MISSING = -13;
export const ERROR_HOST_REPEATED = -14;
export const ERROR_HOST = -15;
export const ERROR_CONTENT_LENGTH = -16;
export const ERROR_CONTENT_LENGTH_REPEATED = -17;
export const ERROR_LENGTH_AND_CHUNKED = -18;
export const ERROR_TRANSFER_ENCODING_REPEATED = -19;
export const ERROR_TRANSFER_CODING = -20;
export const ERROR_TRANSFER_ENCODING_1_0 = -21;
export const ERROR_CONNECTION = -22;
export const ERROR_BODY_FORBIDDEN = -23;
export const ERROR_EDITS_TOO_LARGE = -24;
export const ERROR_EDIT_CONTROL = -25;
// Results of the chunk scanner below zero.
export const ERROR_CHUNK_SIZE = -26;
export const ERROR_CHUNK_EXTENSION = -27;
export const ERROR_CHUNK_EXTENSION_TOO_LARGE = -28;
export const ERROR_CHUNK_END = -29;
export const ERROR_TRAILER = -30;
export const ERROR_TRAILERS_TOO_LARGE = -31;
export const ERROR_TRAILER_FORBIDDEN = -32;
export const ERROR_TOO_MANY_TRAILERS = -33;
