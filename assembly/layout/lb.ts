// Load-balancer tables in the heap of the shared memory: one block each, built whole by main, then only read,
// except for the lines at its end that belong to one slab each, and for the weights of a schedule, which main may change. Read by both compilers: numbers only. Part of the
// layout of shared-memory.ts: a change here raises LAYOUT_VERSION there.
//
//   Maglev        | header 64 | host of each slot, 1, 2 or 4 bytes wide                              |
//   ring          | header 64 | hashes, u64, ascending | buckets, u32 | host of each entry, 2 or 4  |
//   least request | header 64 | state of each slab, 128 bytes | host record addresses, u32           |
//   schedule      | header 64 | weights, f64 | host record addresses, u32 | queue of each slab        |
//   host lists    | header 64 | sources: lists of hosts, and what chooses among them                  |
//
// A host is its index in the list that the table was built from; in the sources of host lists it is its index in the
// cluster. Offsets in headers are relative to the block.

/** Size of every header. */
export const TABLE_BODY = 64;
/** u32, hosts in the list. */
export const TABLE_HOSTS = 0;

// ---- Maglev ------------------------------------------------------------------------------------------
/** u32, slots; a prime, or 1 when there is one host. */
export const MAGLEV_SIZE = 4;
/** u32, log2 of the bytes of a slot. */
export const MAGLEV_SLOT_SHIFT = 8;
/** u32, fewest and most slots of a host. */
export const MAGLEV_MIN_ENTRIES = 12;
export const MAGLEV_MAX_ENTRIES = 16;
export const MAGLEV_MAX_SIZE = 5000011;

// While it is built: one record per host, in the order of keys, and one byte per slot that is taken.
//
//   0     4        8        16       24     28        32      36
//   | key | length | weight | target | skip | position | count | index in the list |
export const MAGLEV_HOST_KEY = 0;
export const MAGLEV_HOST_KEY_LENGTH = 4;
/** f64, share of all weights. */
export const MAGLEV_HOST_WEIGHT = 8;
/** f64, the round times weight that lets the host take part again. */
export const MAGLEV_HOST_TARGET = 16;
export const MAGLEV_HOST_SKIP = 24;
/** The slot that the host prefers next. */
export const MAGLEV_HOST_POSITION = 28;
export const MAGLEV_HOST_COUNT = 32;
export const MAGLEV_HOST_INDEX = 36;
export const MAGLEV_HOST_SIZE = 40;

// ---- Ring --------------------------------------------------------------------------------------------
/** u32, entries. */
export const RING_SIZE = 4;
/** u32, 64 less the bits of a bucket's number. */
export const RING_BUCKET_SHIFT = 8;
/** u32, offset of the buckets: the first entry of each, and the size behind the last. */
export const RING_BUCKETS = 12;
/** u32, offset of the hosts. */
export const RING_OWNERS = 16;
/** u32, log2 of the bytes of an owner: 1 or 2. */
export const RING_OWNER_SHIFT = 20;
/** u32, size as the weights ask for it, which gauges show. */
export const RING_NOMINAL_SIZE = 24;
/** u32, fewest and most entries of a host. */
export const RING_MIN_ENTRIES = 28;
export const RING_MAX_ENTRIES = 32;
export const RING_MAX_SIZE = 8388608;

// While it is built: one record per host, and the hashes in the order of hosts. Behind each key is room for
// what tells a host's entries apart.
//
//   0     4        8       12
//   | key | length | count |
export const RING_HOST_KEY = 0;
export const RING_HOST_KEY_LENGTH = 4;
export const RING_HOST_COUNT = 8;
export const RING_HOST_SIZE = 12;
/** "_" and up to seven digits. */
export const RING_KEY_SUFFIX = 8;

// ---- Least request -----------------------------------------------------------------------------------
/** u32, hosts drawn per pick; 0 scans all. */
export const LEAST_CHOICES = 4;
/** u32, offset of the host record addresses. */
export const LEAST_RECORDS = 8;
/** A slab's state: u64 of its random sequence, then room for draws. Lines of its own, since picks write it. */
export const LEAST_STATE_SIZE = 128;
/** The two hosts drawn for each of the next picks, of 16 bits each: the first of a pair in the upper half. */
export const LEAST_PAIRS = 8;
export const LEAST_PAIR_COUNT = 30;
/** What 16 bits tell apart. */
export const LEAST_PAIR_MAX_HOSTS = 65536;

// ---- Schedule: earliest deadline first ---------------------------------------------------------------
/** u32, offset of the host record addresses; 0 when weights alone decide. */
export const SCHEDULE_RECORDS = 4;
/** u32, offset of slab 0's queue. */
export const SCHEDULE_QUEUES = 8;
/** u32, bytes from one slab's queue to the next. */
export const SCHEDULE_QUEUE_STRIDE = 12;
/** f64, exponent of active requests. */
export const SCHEDULE_BIAS = 16;

// A slab's queue: a binary heap by (deadline, order).
//
//   0      8            64
//   | time | next order | entries: | deadline f64 | order u64 | host u32 | unused |
export const QUEUE_TIME = 0;
export const QUEUE_NEXT_ORDER = 8;
export const QUEUE_ENTRIES = 64;
export const QUEUE_DEADLINE = 0;
export const QUEUE_ORDER = 8;
export const QUEUE_HOST = 16;
export const QUEUE_ENTRY_SIZE = 24;

// ---- Host lists: which hosts of a cluster may be picked ----------------------------------------------
/** u32, words behind the header. */
export const LISTS_WORDS = 0;
/** u32, word at which the source begins that requests are served from. */
export const LISTS_ROOT = 4;

// Behind the header stand sources, of u32 words, the first of which says the kind. A source names others by the
// words at which they begin.
//
//   none    | kind |
//   list    | kind | balancer | its address or 0 | slot | hosts | index of each host in the cluster |
//   shares  | kind | shares | of each: percent up to which it reaches | source | flags | priority | availability |
//   turns   | kind | address of a schedule | sources | of each: source |
//   zones   | kind | flags | local share | any host | localities | of each: up to | source |
//   bounded | kind | table, a list | percent | hosts | of each: share of 1, f64 |
//   subsets | kind | source of any host | of the default subset | bytes of names | sources | of each: source | names |
//
// The names of subsets are text in UTF-8, one to a line, without a last line end.
export const SOURCE_NONE = 0;
export const SOURCE_LIST = 1;
export const SOURCE_SHARES = 2;
export const SOURCE_TURNS = 3;
export const SOURCE_SUBSETS = 4;
export const SOURCE_BOUNDED = 5;
export const SOURCE_ZONES = 6;

/** The kinds of balancer that a list names. */
export const BALANCER_CYCLE = 0;
export const BALANCER_RANDOM = 1;
export const BALANCER_LEAST_REQUEST = 2;
export const BALANCER_SCHEDULE = 3;
export const BALANCER_RING = 4;
export const BALANCER_MAGLEV = 5;

/** Flags of zones: all requests stay; the local cluster is in panic; requests have no host then. */
export const ZONES_DIRECT = 1;
export const ZONES_PANIC = 2;
export const ZONES_FAIL_IN_PANIC = 4;

/** Flag of a share: its priority is in panic. */
export const SHARE_PANIC = 1;
