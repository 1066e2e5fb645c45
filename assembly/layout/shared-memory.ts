// The shared linear memory: statistics, host state and load-balancer tables. Read by both compilers, so
// it holds numeric literals and arithmetic only. Every thread maps the same bytes; only main allocates.
//
//   byte 0      +--------------------------------------------------------------------+
//               | header: magic, layout version, slab count, cells per slab, size     |
//   ARENAS_AT   | one arena record per slab: blocks offered for histogram bins        |
//   DECADES_AT  | decade tables of histograms: constants, written once                |
//   SCRATCH_AT  +--------------------------------------------------------------------+  64 KiB
//               | one scratch per slab: keys to be hashed and what became of them      |
//   HEAP_AT     +--------------------------------------------------------------------+  576 KiB
//               | heap: blocks of main's allocator, aligned to BLOCK_ALIGNMENT, any    |
//               | order, never moved:                                                 |
//               |                                                                    |
//               |  cell chunk   | slab 0 (main) | slab 1 (worker 0) | slab 2 | ...    |
//               |               | 4096 f64      | 4096 f64          | 4096 f64        |
//               |  record span  | host, cluster or count records, on cache lines of their own |
//               |  bin blocks   | histogram bins, by decade                          |
//               |  table        | ring, Maglev table, picker state                   |
//               +--------------------------------------------------------------------+  grows in steps
//
// A cell id is the f64 index of the cell in main's slab, so that the same cell of slab s is found without
// a table: f64 index = id + s * CELLS_PER_SLAB. The header lies at 0, therefore id 0 is never a cell.

/** Raised with every change of this file; a module built against another layout is refused at start. */
export const LAYOUT_VERSION = 14;
/** "WEIR" read as a little-endian u32. */
export const MAGIC = 0x52494557;

// ---- Header: u32 fields, written once by main before any worker starts -------------------------------
export const HEADER_MAGIC = 0;
export const HEADER_LAYOUT_VERSION = 4;
/** Workers + 1; slab 0 is main's. */
export const HEADER_SLAB_COUNT = 8;
export const HEADER_CELLS_PER_SLAB = 12;
export const HEADER_SIZE = 128;

// ---- Slabs and cells ---------------------------------------------------------------------------------
export const MAX_SLABS = 512;
export const CELL_SIZE = 8;
/** 32 KiB a slab: workers meet on no cache line, and one block of a stat table always fits. */
export const CELLS_PER_SLAB = 4096;
export const SLAB_SIZE = CELLS_PER_SLAB * CELL_SIZE;

// ---- Heap --------------------------------------------------------------------------------------------
/** Two cache lines, since x86-64 fetches lines in pairs. */
export const BLOCK_ALIGNMENT = 128;

// ---- Arena records: one per slab, behind the header --------------------------------------------------
// Blocks for the bins of the histograms that the slab's owner records. Free blocks form a chain: the first
// word of each is the address of the next. Main offers a chain, the owner takes it when its own is used up.
export const ARENAS_AT = HEADER_SIZE;
/** Address of the first block of the owner's chain, 0 when it is used up; written by the owner. */
export const ARENA_CHAIN = 0;
/** u32, atomic: first block of the chain that main offers, 0 when the owner has taken it. */
export const ARENA_OFFER = 4;
/** f64: values that recordMany has refused since the start; written by the owner. */
export const ARENA_REFUSED = 8;
/** Address of the values of one recordMany call, room for STAGED_VALUES f64; written once by main. */
export const ARENA_STAGING = 16;
export const STAGED_VALUES = 512;
export const ARENA_STRIDE = 64;

// ---- Decade tables -----------------------------------------------------------------------------------
// What finds a value's bin without a branch or a division. A module has no static data, so main writes the
// tables here before any worker starts. They are constants from then on.
//
//   by leading zeros of a u32, 33 times  | u64: added to the u32, leaves its page in the high word  |
//   by page, 9 times                     | u64: times the u32, leaves its entry above the factor's bits |
//   by exponent of ten, 17 times         | f64: 10^exponent                                         |
export const DECADES_AT = ARENAS_AT + MAX_SLABS * ARENA_STRIDE;
export const DECADE_COUNT = 33;
export const PAGE_FACTORS_AT = DECADES_AT + DECADE_COUNT * 8;
/** The largest for which the product of any u32 and its page's factor fits 64 bits. */
export const PAGE_FACTOR_BITS = 57;
/** Pages that u32 values fall on. */
export const PAGE_FACTOR_COUNT = 9;
export const POWERS_OF_TEN_AT = PAGE_FACTORS_AT + PAGE_FACTOR_COUNT * 8;
export const POWERS_OF_TEN_COUNT = 17;

// ---- Scratch: one per slab, used by its owner within one call into a module ---------------------------
export const SCRATCH_AT = 65536;
/** u64, the hash that was asked for. */
export const SCRATCH_HASH = 0;
/** Four u64, a hash over more bytes than fit at once. */
export const SCRATCH_HASH_STATE = 8;
export const SCRATCH_KEY = 64;
export const SCRATCH_STRIDE = 1024;
/** A multiple of the 32 bytes that a hash takes in at a time. */
export const SCRATCH_KEY_SIZE = SCRATCH_STRIDE - SCRATCH_KEY;

/** First byte of the heap. */
export const HEAP_AT = SCRATCH_AT + MAX_SLABS * SCRATCH_STRIDE;

// ---- Host record -------------------------------------------------------------------------------------
// Line 0 changes rarely and is read by every pick; line 1 is written by all workers.
//
//   0       4        8        12       64                68            72         84       88      92       128
//   | flags | weight | ledger | unused | active requests | connections | failures | wanted | times | unused |
/** i32, HealthFlag bits; written by main. */
export const HOST_HEALTH_FLAGS = 0;
/** i32, 1 or more; written by main. */
export const HOST_WEIGHT = 4;
/** Cell id of the ledger: what each slab has added to the counts of line 1, one cell per count. */
export const HOST_LEDGER = 8;
/** i32, atomic: requests in flight over all workers. */
export const HOST_ACTIVE_REQUESTS = 64;
/** i32, atomic: open connections over all workers. */
export const HOST_ACTIVE_CONNECTIONS = 68;
/** i32, atomic: answers and connections that failed, one after the other, over all workers; 0 after a success. */
export const HOST_CONSECUTIVE_5XX = 72;
export const HOST_CONSECUTIVE_GATEWAY_FAILURES = 76;
export const HOST_CONSECUTIVE_LOCAL_FAILURES = 80;
/** i32, atomic: 1 when a request has named the host and was turned away for its health; main sets it back to 0. */
export const HOST_WANTED = 84;
/**
 * Cell id of a histogram of response times, 0 while nobody looks at them; written by main. It shares the line with the active
 * requests because who reads it, at the end of a request, writes them next.
 */
export const HOST_TIMES = 88;
/** Those that have a ledger. */
export const HOST_COUNTS_AT = 64;
export const HOST_COUNTS = 2;
export const HOST_RECORD_SIZE = 128;

// ---- Cluster record: one cache line per routing priority ---------------------------------------------
//
//   0             4         8          12        16                 32                64
//   | connections | pending | requests | retries | connection pools | ledger | unused |   default
//   | the same for the high priority                                                  |   64..127
/** Offset of each priority's line in the record. */
export const CLUSTER_DEFAULT_PRIORITY = 0;
export const CLUSTER_HIGH_PRIORITY = 64;
/** i32, atomic, counts over all workers; offsets within a priority's line. */
export const CLUSTER_CONNECTIONS = 0;
export const CLUSTER_PENDING_REQUESTS = 4;
export const CLUSTER_REQUESTS = 8;
export const CLUSTER_RETRIES = 12;
export const CLUSTER_CONNECTION_POOLS = 16;
export const CLUSTER_COUNTS = 5;
/** Cell id of the line's ledger. It shares the line with the counts because who reads it writes them next. */
export const CLUSTER_LEDGER = 32;
export const CLUSTER_RECORD_SIZE = 128;

// ---- Count record: one count of its own ---------------------------------------------------------------
//
//   0       4                 64
//   | count | ledger | unused |
/** i32, atomic, over all workers. */
export const COUNT_VALUE = 0;
/** Cell id of the ledger, of one cell. */
export const COUNT_LEDGER = 4;
/** One cache line: workers that write another count are not in the way. */
export const COUNT_RECORD_SIZE = 64;

// ---- Histograms --------------------------------------------------------------------------------------
// Log-linear bins of two significant decimal digits, by decade, each decade on a page of its own that
// exists once a value has fallen into it. Page 0 counts the values 0 to 99 one by one; page p counts
// v by floor(v / 10^p), which is 10 to 99. The low word of a histogram's cell holds the address of its head.
//
//   head block  | page addresses, 16 u32 | bins of the first page that was needed, 100 u32 |  464 bytes
//   page block  | unused                 | bins of one further page                        |  464 bytes
//
// Counts of a worker only grow, and wrap at 2^32. Main never clears them: what is new since the last merge
// is the sum over all slabs less the merged counts, modulo 2^32.
export const HISTOGRAM_PAGES = 15;
export const HISTOGRAM_BINS = 100;
/** Offset of the bins within a block. */
export const HISTOGRAM_BINS_AT = 64;
export const HISTOGRAM_BLOCK_SIZE = HISTOGRAM_BINS_AT + HISTOGRAM_BINS * 4;
/** Bins of a page are added up in groups, so that a search passes over most of them. */
export const HISTOGRAM_GROUPS = 5;
export const HISTOGRAM_GROUP_BINS = 20;

// Main's merged counts of one histogram: a head of page addresses, and per page
//
//   0                8                  16              56                96              496         896
//   | interval total | cumulative total | interval sums | cumulative sums | interval bins | low words | high words |
//   | u64            | u64              | 5 u64         | 5 u64           | 100 u32       | 100 u32   | 100 u32    |
//
// The cumulative counts are 64 bits wide and lie in two halves: the low words are the workers' counts added
// up, and the high words change once in 2^32 samples.
export const MERGED_HEAD_SIZE = HISTOGRAM_BINS_AT;
/** Bit of the head in the mask of what a merge misses; bit p stands for page p. */
export const MERGED_HEAD_BIT = 32768;
export const MERGED_INTERVAL_TOTAL = 0;
export const MERGED_CUMULATIVE_TOTAL = 8;
export const MERGED_INTERVAL_SUMS = 16;
export const MERGED_CUMULATIVE_SUMS = MERGED_INTERVAL_SUMS + HISTOGRAM_GROUPS * 8;
export const MERGED_INTERVAL_BINS = MERGED_CUMULATIVE_SUMS + HISTOGRAM_GROUPS * 8;
export const MERGED_LOW_WORDS = MERGED_INTERVAL_BINS + HISTOGRAM_BINS * 4;
export const MERGED_HIGH_WORDS = MERGED_LOW_WORDS + HISTOGRAM_BINS * 4;
export const MERGED_PAGE_SIZE = MERGED_HIGH_WORDS + HISTOGRAM_BINS * 4;
