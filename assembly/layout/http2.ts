// Layout of the HTTP/2 module's part of a worker's codec memory: it lies behind that of HTTP/1 (http1.ts), whose
// records, header tables and areas it fills and reads, so that a head has one form whatever protocol brought it. Both
// compilers read this file, so it holds numbers and arithmetic only. A change here raises LAYOUT_VERSION there.
//
//   HTTP2_START  ┌──────────────────────────────┐ the first page behind HTTP/1
//                │ state of the block at hand     │  STATE_*
//                │ static table: entries, text    │  written once by the facade, as are
//                │ names of it, policies by id    │  all tables up to the areas
//                │ Huffman codes both ways        │
//                │ reason phrases                 │
//                ├──────────────────────────────┤
//                │ block in      64 KiB + slack   │  a header block to decode
//                │ name scratch, value scratch    │  Huffman strings, decoded
//                │ pseudo fields 64 KiB + slack   │
//                │ cookie        64 KiB + slack   │  crumbs, joined
//                │ lines         64 KiB + slack   │  trailers as text, decoded or to encode
//                │ block out    256 KiB + slack   │  an encoded header block
//                │ spill        112 KiB + slack   │  a table that has outgrown its body
//                ├──────────────────────────────┤
//                │ dynamic tables, one per        │  TABLE_*; handed out by the facade, which
//                │ connection and direction       │  grows the memory for them
//                └──────────────────────────────┘

/** First byte behind the pages of HTTP/1's part. */
export const HTTP2_START = 786432;

// State of the block at hand, u32 each.
export const STATE = HTTP2_START;
export const STATE_BYTES = 256;
/** Next byte of the block, and the one behind its last. */
export const STATE_AT = 0;
export const STATE_END = 4;
/** Where the next byte of the text goes, and how far it may reach. */
export const STATE_OUT = 8;
export const STATE_OUT_END = 12;
/** First fault of the message, 0 while there is none; decoding goes on, since the dynamic table has to. */
export const STATE_FAULT = 16;
export const STATE_FIELD_COUNT = 20;
export const STATE_MAX_FIELDS = 24;
/** BLOCK_* bits of the call. */
export const STATE_FLAGS = 28;
/** Known ids met so far, u64. */
export const STATE_KNOWN = 32;
/** Bit k: a pseudo field of kind k has been met. */
export const STATE_PSEUDO_SEEN = 40;
/** 1 behind the start line. */
export const STATE_STARTED = 44;
export const STATE_PSEUDO_END = 48;
export const STATE_COOKIE_END = 52;
/** HeadFlag bits collected on the way. */
export const STATE_HEAD_FLAGS = 56;
/** HTTP/1 record to fill; 0 for trailers. */
export const STATE_RECORD = 60;
/** What readString found: address and length. */
export const STATE_STRING = 64;
export const STATE_STRING_LENGTH = 68;
/** Bytes of a string that go on behind the part of a block at hand, and are of no use to anybody. */
export const STATE_SKIP = 72;
/** SCHEME_* of the request that is encoded, as far as its fields have been written. */
export const STATE_SCHEME = 80;
/** Bytes between name and value of the line that :authority becomes: GAP or NEVER_INDEXED_GAP. */
export const STATE_AUTHORITY_GAP = 84;
/** (address, length) of each pseudo field, by kind. */
export const STATE_PSEUDO = 128;

// Bytes between the name and the value of a line that came by HTTP/2. A colon and a blank; a second blank marks a field that no table of any
// connection may hold (RFC 7541 section 6.2.3). It is whitespace to every reader, so that the mark stays with the line through text and
// whoever reads that again, and no value of HTTP/2 begins with a blank of its own (RFC 9113 section 8.2.1).
export const GAP = 2;
export const NEVER_INDEXED_GAP = 3;

// Flags of a call that decodes.
/** HEADERS came with END_STREAM. */
export const BLOCK_END_STREAM = 1;
/** SETTINGS_ENABLE_CONNECT_PROTOCOL was announced. */
export const BLOCK_CONNECT_PROTOCOL = 2;
// Flags of a call that reads a part of a block that is too large.
/** The part is the first one: the request's record learns the method. Of other messages nothing is told. */
export const PART_OPENS_REQUEST = 1;
/** The part is the first one: updates of the table's size may stand in front. */
export const PART_OPENS = 2;
/** No part follows. */
export const PART_ENDS = 4;
// What x-forwarded-proto says of :scheme. Several fields say nothing that anybody could go by.
export const SCHEME_UNKNOWN = 0;
export const SCHEME_IS_HTTPS = 1;
export const SCHEME_IS_HTTP = 2;

// Flags of a call that encodes.
/** Strings may be Huffman-coded, where that is shorter. */
export const ENCODE_HUFFMAN = 1;
/** An upgrade goes out as extended CONNECT (RFC 8441), 101 as 200. */
export const ENCODE_CONNECT_PROTOCOL = 4;
/** :scheme is this one, whatever x-forwarded-proto says. */
export const ENCODE_SCHEME_HTTP = 8;
export const ENCODE_SCHEME_HTTPS = 16;

// One entry of the static table or of a dynamic one.
export const ENTRY_BYTES = 16;
/** u32; dynamic: position in all bytes ever inserted, modulo 2^32. Static: address. The value follows the name. */
export const ENTRY_TEXT = 0;
export const ENTRY_NAME_LENGTH = 4;
export const ENTRY_VALUE_LENGTH = 6;
/** u8 each: known id, KIND_*, verdict. */
export const ENTRY_ID = 8;
export const ENTRY_KIND = 9;
/** Error of the name or value as a negative i16, 0 when both are good; judged once, at insertion. */
export const ENTRY_FAULT = 10;

// Kinds of field that the decoder treats by themselves.
export const KIND_ORDINARY = 0;
export const KIND_AUTHORITY = 1;
export const KIND_METHOD = 2;
export const KIND_PATH = 3;
export const KIND_SCHEME = 4;
export const KIND_STATUS = 5;
export const KIND_PROTOCOL = 6;
export const KIND_UNKNOWN_PSEUDO = 7;
export const KIND_HOST = 8;
export const KIND_COOKIE = 9;
export const KIND_TE = 10;
/** Fields of an HTTP/1 connection. */
export const KIND_CONNECTION = 11;

export const STATIC_COUNT = 61;
export const STATIC_ENTRIES = STATE + STATE_BYTES;
export const STATIC_TEXT = STATIC_ENTRIES + ENTRY_BYTES * 64;
export const STATIC_TEXT_BYTES = 1536;
/** u8 x 256: first index with a name of that hash, 0 for none; the hash is that of known names in http1.ts. */
export const STATIC_BUCKETS = STATIC_TEXT + STATIC_TEXT_BYTES;
/** u8 x 64, by index: next index with another name in the same bucket. */
export const STATIC_NEXT = STATIC_BUCKETS + 256;
/** u8 x 64, by known id: first static index with that name, 0 for none. */
export const STATIC_BY_ID = STATIC_NEXT + 64;
/** u8 x 64, by static index: POLICY_*. */
export const STATIC_POLICY = STATIC_BY_ID + 64;
export const POLICY_INDEX = 0;
export const POLICY_LITERAL = 1;
export const POLICY_NEVER = 2;

// Huffman code of RFC 7541, appendix B; it is canonical.
export const HUFFMAN_FAST_BITS = 10;
export const HUFFMAN_LONGEST = 30;
export const HUFFMAN_SHORTEST_SLOW = 11;
export const HUFFMAN_EOS = 256;
/** u16 x 1024, by the next 10 bits: length << 8 | symbol, 0 for a longer code. */
export const HUFFMAN_FAST = STATIC_POLICY + 64;
/** u32 x 32, by length: first code, how many codes, number of the first one's symbol. */
export const HUFFMAN_FIRST = HUFFMAN_FAST + 2048;
export const HUFFMAN_COUNT = HUFFMAN_FIRST + 128;
export const HUFFMAN_OFFSET = HUFFMAN_COUNT + 128;
/** u16 x 257: symbols in the order of their codes. */
export const HUFFMAN_SYMBOLS = HUFFMAN_OFFSET + 128;
/** u32 x 256 and u8 x 256, by symbol. */
export const HUFFMAN_CODES = HUFFMAN_SYMBOLS + 528;
export const HUFFMAN_LENGTHS = HUFFMAN_CODES + 1024;

// Reason phrases, which HTTP/2 has none of, for the status lines of heads that go on in HTTP/1.
/** u16 x 512, by status - 100: distance from REASON_TEXT, 0 for none. */
export const REASON_INDEX = HUFFMAN_LENGTHS + 256;
export const REASON_COUNT = 512;
/** Each phrase behind its length, a u8; the first one is empty. */
export const REASON_TEXT = REASON_INDEX + REASON_COUNT * 2;
export const REASON_TEXT_BYTES = 1536;

export const HTTP2_SLACK = 64;
export const BLOCK_LIMIT_BYTES = 65536;
export const BLOCK_IN = HTTP2_START + 12288;
/** A Huffman code has 5 bits at least: 65,536 bytes become 104,857 at most. */
export const SCRATCH_BYTES = 106496;
export const NAME_SCRATCH = BLOCK_IN + BLOCK_LIMIT_BYTES + HTTP2_SLACK;
export const VALUE_SCRATCH = NAME_SCRATCH + SCRATCH_BYTES + HTTP2_SLACK;
export const PSEUDO = VALUE_SCRATCH + SCRATCH_BYTES + HTTP2_SLACK;
export const PSEUDO_BYTES = 65536;
export const COOKIE = PSEUDO + PSEUDO_BYTES + HTTP2_SLACK;
export const COOKIE_BYTES = 65536;
export const FIELD_LINES = COOKIE + COOKIE_BYTES + HTTP2_SLACK;
export const FIELD_LINES_BYTES = 65536;
export const BLOCK_OUT = FIELD_LINES + FIELD_LINES_BYTES + HTTP2_SLACK;
export const BLOCK_OUT_BYTES = 262144;
/** Room for a table of the largest size that there is, between the call in which it outgrew its body and the end of that. */
export const SPILL = BLOCK_OUT + BLOCK_OUT_BYTES + HTTP2_SLACK;
export const SPILL_SLOTS = 2048;
export const SPILL_TEXT_BYTES = 81920;
export const HTTP2_AREAS_END = SPILL + SPILL_SLOTS * ENTRY_BYTES + SPILL_TEXT_BYTES + HTTP2_SLACK;

/** Dynamic tables lie from here on. */
export const TABLES = 1703936;
export const CODEC_PAGES = 26;
/** 1 GiB, reserved as addresses only; room for full tables of 50,000 connections. */
export const CODEC_MAXIMUM_PAGES = 16384;

// A dynamic table: a header, which stays where it is, and a body: entries as a ring, and bytes. An encoder has buckets
// behind its header.
//
//   | header 64 | [encoder: 128 x (u32 hash, u32 number)] |     | entries, 16 each | bytes |
//
// Bytes are written one behind the other; at the end of the region those in use move to its beginning. Most connections
// use little of what their settings allow, so a body begins small. When an entry does not fit, all of it moves to the
// spill area, and at the end of the call the facade gives it a larger body; the largest has size / 32 entries and
// 1.25 x size bytes.
export const TABLE_HEADER_BYTES = 64;
/** u32: octets in use as RFC 7541 section 4.1 counts them, and how many may be. */
export const TABLE_SIZE = 0;
export const TABLE_MAX = 4;
/** u32: what TABLE_MAX may rise to: the settings of the reading side, and what was allocated. */
export const TABLE_CAPACITY = 8;
export const TABLE_COUNT = 12;
/** u32: entries ever inserted; the newest has number inserted - 1. */
export const TABLE_INSERTED = 16;
/** u32: position of the first byte of the region, and behind the last one written. */
export const TABLE_FIRST_POSITION = 20;
export const TABLE_NEXT_POSITION = 24;
/** u32: slots - 1, a power of two less one. */
export const TABLE_SLOT_MASK = 28;
/** u32: addresses of the bytes region, and its size. */
export const TABLE_TEXT = 32;
export const TABLE_TEXT_BYTES = 36;
/** Encoder, u32: 1 when the peer waits for a size update, and the smallest size since the last one. */
export const TABLE_UPDATE = 40;
export const TABLE_SMALLEST = 44;
/** Encoder, u32: address of the buckets; 0 in a decoder's. */
export const TABLE_BUCKETS = 48;
/** u32: address of the body, which begins with the entries. */
export const TABLE_ENTRIES = 52;
/** u32: while the body is the spill area, address of the one that was too small; 0 otherwise. */
export const TABLE_OUTGROWN = 56;

export const ENTRY_OVERHEAD = 32;
export const BUCKET_COUNT = 128;
export const BUCKET_BYTES = 8;
export const BUCKET_HASH = 0;
/** Number of the entry + 1; 0 when the field was seen but not inserted. */
export const BUCKET_NUMBER = 4;

// Results below zero, besides those of http1.ts.
/** The dynamic tables of both sides are no longer the same: an error of the connection (RFC 7541 section 2.2 ff). */
export const ERROR_COMPRESSION = -48;
export const ERROR_PSEUDO_LATE = -49;
export const ERROR_PSEUDO_REPEATED = -50;
export const ERROR_PSEUDO_UNKNOWN = -51;
export const ERROR_PSEUDO_MISSING = -52;
export const ERROR_PSEUDO_EMPTY = -53;
export const ERROR_SCHEME = -54;
export const ERROR_PATH = -55;
export const ERROR_STATUS = -56;
export const ERROR_CONNECTION_FIELD = -57;
export const ERROR_TE = -58;
export const ERROR_UPPER_CASE = -59;
export const ERROR_VALUE_SPACE = -60;
export const ERROR_AUTHORITY_AND_HOST = -61;
export const ERROR_LENGTH_AND_END = -62;
export const ERROR_PROTOCOL = -63;
export const ERROR_INFORMATIONAL_END = -64;
