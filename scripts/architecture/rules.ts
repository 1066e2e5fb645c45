// The import table and the owner rules, as data. test/architecture holds the tree to them and `npm run check` reads
// them too. An exception stands here with its reason, or it does not exist.

/** A unit of the import table: a folder of src/, a file at its top, or the memory layouts shared with WASM. */
export type Unit = string;

export interface UnitRule {
  /** Units whose code this one may use. */
  readonly uses: readonly Unit[];
  /** Units of which it may name types, which vanish before anything runs. */
  readonly namesTypesOf?: readonly Unit[];
  readonly why: string;
}

export const LAYOUT_UNIT = 'assembly/layout';

export const IMPORT_RULES: Readonly<Record<Unit, UnitRule>> = {
  base: { uses: [], why: 'vocabulary without policy' },
  [LAYOUT_UNIT]: { uses: [], why: 'offsets, read by both compilers' },
  wasm: { uses: ['base', LAYOUT_UNIT], why: 'facades over WASM memory' },
  log: {
    uses: ['base'],
    namesTypesOf: ['snapshot'],
    why: 'a worker posts its log records as messages of the snapshot contract',
  },
  snapshot: { uses: ['base'], why: 'the contract between the planes' },
  tls: {
    uses: ['base'],
    namesTypesOf: ['snapshot'],
    why: 'how peers are judged and contexts made, by either kind of thread',
  },
  stats: {
    uses: ['base', 'wasm'],
    namesTypesOf: ['snapshot'],
    why: 'handles over shared cells; asks main for cells by message',
  },
  config: {
    uses: ['base'],
    namesTypesOf: ['snapshot'],
    why: 'bytes to settings; pure, so serve, validate and later xDS share it',
  },
  'control-plane': {
    uses: ['base', 'wasm', 'log', 'stats', 'config', 'snapshot', 'tls'],
    why: 'decides what should exist',
  },
  'data-plane': {
    uses: ['base', 'wasm', 'log', 'stats', 'snapshot', 'tls'],
    why: 'moves bytes; knows snapshots, never the configuration',
  },
  'filter-modules': {
    uses: ['base'],
    why: "what filters of users' own are made of, and how they are loaded, in whichever thread",
  },
  'extensions/control': {
    uses: ['base', 'config', 'filter-modules'],
    namesTypesOf: ['snapshot', 'extensions/data', 'extensions/main'],
    why: 'configurations of extensions to their settings; the part of them that the main thread loads',
  },
  'extensions/main': {
    uses: ['base', 'config', 'stats'],
    namesTypesOf: ['control-plane'],
    why: 'extensions at work on main: sinks of statistics',
  },
  'extensions/data': {
    uses: ['base', 'wasm', 'stats', 'data-plane', 'filter-modules'],
    namesTypesOf: ['snapshot'],
    why: 'extensions at work in a worker, which never loads the configuration',
  },
  admin: {
    uses: ['base', 'log', 'stats', 'config', 'control-plane'],
    namesTypesOf: ['snapshot', 'page'],
    why: 'renders read-only views of the control plane, and tells the page what both have agreed upon',
  },
  page: { uses: [], why: "the admin interface's page: runs in a browser" },
  cli: { uses: ['base'], why: 'the option table' },
  core: {
    uses: ['base', 'wasm', LAYOUT_UNIT],
    why: 'the tables and histograms as a library: loads nothing of the proxy, above all no native addon',
  },
  'bench-cli': {
    uses: ['base', 'wasm', 'core'],
    why: 'the micro-benchmarks and their gate: measures the core and the facades that the proxy calls',
  },
  'hot-restarter': {
    uses: ['base'],
    why: 'the command that starts the processes of hot restarts; none of the proxy itself',
  },
  demo: { uses: ['base'], why: 'outside of the proxy: upstreams to try it on' },
  process: {
    uses: [
      'base',
      'log',
      'stats',
      'config',
      'control-plane',
      // The formats of access logs, for those of the admin interface.
      'data-plane',
      'extensions/control',
      'extensions/main',
      'admin',
      'cli',
      'demo',
    ],
    why: 'the modes of the program and its signals; joins the parts of the main thread',
  },
  library: {
    uses: ['base', 'log', 'stats', 'config', 'control-plane', 'cli', 'process', 'filter-modules'],
    why: "the proxy in somebody else's process: what the program does with options and signals, this does with arguments",
  },
  'main.ts': { uses: ['base', 'cli', 'process'], why: 'entry point of the program; wires, does not decide' },
  'response-reader.ts': {
    uses: ['config'],
    why: 'entry point of the thread that reads large files of resources',
  },
  'worker.ts': {
    uses: ['base', 'wasm', 'log', 'stats', 'snapshot', 'data-plane', 'extensions/data'],
    why: 'entry point of a data-plane thread; wires, does not decide',
  },
};

/** Units without one front door: each file is a concept of its own and is imported directly. */
export const OPEN_UNITS: readonly Unit[] = [
  'base',
  'wasm',
  'tls',
  'process',
  'filter-modules',
  'page',
  'extensions/control',
  'extensions/data',
  'extensions/main',
  LAYOUT_UNIT,
];

/** Beside its front door a unit may have one for those who load it at need; behind it lies what is of no use to others. */
export const SIDE_DOORS: readonly string[] = ['src/config/exchange.ts'];

/** Modules that may name one another's types in a circle: an owner, what it owns, and what that hands back to it. */
export const MAX_TYPE_KNOT = 5;

export interface OwnerRule {
  /** What is owned, as the message names it. */
  readonly name: string;
  /** Matched against code without comments and string contents. */
  readonly pattern: RegExp;
  /** Paths below src/ that may use it: files, or folders with a final slash. */
  readonly owners: readonly string[];
  readonly instead: string;
}

export const OWNER_RULES: readonly OwnerRule[] = [
  {
    name: 'the clock (Date.now, new Date(), performance.now, process.hrtime)',
    pattern: /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bprocess\.hrtime\b/,
    owners: ['base/', 'page/'],
    instead: 'take a clock of base/clock.ts, so that a test can turn it',
  },
  {
    name: 'timers (setTimeout, setInterval)',
    pattern: /\bset(?:Timeout|Interval)\b/,
    owners: ['base/clock.ts', 'demo/upstream.ts', 'page/'],
    instead: 'take a clock of base/clock.ts, so that a test can turn it',
  },
  {
    name: 'randomness (Math.random)',
    pattern: /\bMath\.random\b/,
    owners: ['base/random.ts'],
    instead: 'take a random source of base/random.ts, so that a test can seed it',
  },
  {
    name: 'the environment (process.env)',
    pattern: /\bprocess\.env\b/,
    owners: ['process/', 'cli/', 'hot-restarter/main.ts'],
    instead: 'pass the value down from process/',
  },
  {
    name: 'the end of the process (process.exit, process.exitCode, process.abort)',
    pattern: /\bprocess\.(?:exit|exitCode|abort)\b/,
    owners: ['main.ts', 'process/', 'bench-cli/main.ts', 'hot-restarter/main.ts'],
    instead: 'return or throw; the program decides',
  },
  {
    name: 'regular expressions made from text (new RegExp)',
    pattern: /\bnew RegExp\(|(?<![.\w])RegExp\(/,
    // The second has a limit in time, the third comes from the bootstrap alone; the last runs in the browser of whoever typed it.
    owners: ['base/regex.ts', 'base/ecma-name-filter.ts', 'base/tag-regex.ts', 'page/stat-list.ts'],
    instead: "use base/regex.ts: an operator's pattern must not backtrack",
  },
  {
    name: 'WebAssembly (new WebAssembly…, compile, instantiate)',
    pattern: /\bnew WebAssembly\b|\bWebAssembly\.(?:compile|instantiate|validate)/,
    owners: ['wasm/'],
    instead: 'add to the facade in wasm/; memories and modules are passed around by type only',
  },
  {
    name: 'the console',
    pattern: /\bconsole\.\w/,
    owners: [],
    instead: 'take a logger, or write to the stream that the caller gave',
  },
];

export interface BoundaryRule {
  readonly name: string;
  /** Matched against code without comments and string contents, over ends of lines. */
  readonly pattern: RegExp;
  readonly instead: string;
}

/** Of main, whose every turn of the event loop ends at a boundary: the process may be somebody else's. */
export const BOUNDED_PLACES: readonly string[] = [
  'admin/',
  'control-plane/',
  'extensions/stat_sinks/',
  'library/',
  'process/',
  'stats/',
];

/** Among those, what runs in a process of its own or in a worker only. */
export const UNBOUNDED_PLACES: readonly string[] = [
  'process/hot-restart/',
  'process/log.ts',
  'process/serve.ts',
  'process/signals.ts',
  'stats/worker-stats.ts',
];

export const BOUNDARY_RULES: readonly BoundaryRule[] = [
  {
    name: 'a bare handler of an event',
    pattern:
      /\.(?:on|once|prependListener|prependOnceListener|addListener|addEventListener)\([^,()]*,(?!\s*[\w.#]*faults\.handler\()/g,
    instead: 'make it one of FaultBoundary.handler',
  },
  {
    name: 'a bare callback of fs.watch',
    pattern: /(?<![.\w#])watch\((?![^()]*\): )(?:(?!faults\.handler\()[^;])*;/g,
    instead: 'make it one of FaultBoundary.handler',
  },
  {
    name: 'a bare callback of the event loop (setImmediate, queueMicrotask, nextTick)',
    pattern: /\b(?:setImmediate|queueMicrotask|nextTick)\b(?!\s+as\b)(?!\([\w.#]*faults\.handler\()/g,
    instead: 'make it one of FaultBoundary.handler',
  },
  {
    name: 'a bare callback of what has been written',
    pattern: /(?:socket|call)\.(?:write|send|end)\((?:[^;()]*,)?\s*(?:\([^()]*\)|\w+)\s*=>/gi,
    instead: 'make it one of FaultBoundary.handler',
  },
  {
    name: 'a promise that nobody awaits (void)',
    pattern: /\bvoid\s+(?=[\w(#])/g,
    instead: 'begin it by FaultBoundary.run',
  },
  {
    name: 'the clock of the system',
    pattern: /(?<!faults\.clock\()\bSYSTEM_CLOCK\b(?![^;]* from )/g,
    instead: 'take the clock of the proxy, whose timers fail without harm',
  },
];
