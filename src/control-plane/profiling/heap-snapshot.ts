// What is on a heap by kind and class, out of V8's snapshot of it. A snapshot is several times as large as the heap, so it is
// read as it comes and never kept; and it holds all strings of the process, of which nothing but names of classes and functions
// goes on. Main thread.
//
//   {"snapshot":{"meta":{…}},      what a row of nodes has
//   "nodes":[type,name,id,…],      rows of numbers; `name` is an index into strings
//   "edges":[…], …                 who holds whom: not needed
//   "strings":["…",…]}

/** Objects of one class. */
export interface HeapClass {
  /** The engine's kind of object, in brackets: `(closure)`. */
  readonly kind: string;
  /** Of the class or function; that of the kind where a name would be content. */
  readonly name: string;
  readonly count: number;
  readonly bytes: number;
}

interface Meta {
  readonly node_fields: readonly string[];
  readonly node_types: readonly [readonly string[], ...unknown[]];
}

/** Kinds whose names are names, and not what a program has stored. */
const NAMED_KINDS: ReadonlySet<string> = new Set([
  'object',
  'closure',
  'native',
  'code',
  'hidden',
  'synthetic',
  'array',
  'object shape',
]);
/** The longest name that is taken over. */
const MAX_NAME_CHARACTERS = 200;

const NODES = Buffer.from('"nodes":[');
const STRINGS = Buffer.from('"strings":[');
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const LIST_END = 0x5d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const NONE = Buffer.alloc(0);

type Part = 'head' | 'nodes' | 'edges' | 'strings' | 'end';

export class HeapSnapshotReader {
  #part: Part = 'head';
  /** Of the part, what has come and is not read. */
  #held: Buffer = NONE;
  #kinds: readonly string[] = [];
  #fieldCount = 0;
  #typeAt = 0;
  #nameAt = 0;
  #sizeAt = 0;
  // ---- Nodes ----
  #number = 0;
  #hasDigits = false;
  #field = 0;
  #type = 0;
  #name = 0;
  #size = 0;
  /** By kind and index of the name. */
  readonly #classes = new Map<number, { count: number; bytes: number }>();
  // ---- Strings ----
  #stringIndex = 0;
  #isInString = false;
  #isEscaped = false;
  /** What has come of a name that is cut in two. */
  #literal: Buffer = NONE;
  /** Names by index. */
  readonly #names = new Map<number, string>();
  #wanted: ReadonlySet<number> = new Set();

  /** The next piece of the snapshot. */
  push(piece: Buffer): void {
    let rest: Buffer = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]);
    this.#held = NONE;
    for (let part: Part | undefined; part !== this.#part; ) {
      part = this.#part;
      rest = this.#read(rest);
    }
    this.#held = rest;
  }

  get isWhole(): boolean {
    return this.#part === 'end';
  }

  /** @throws Error when the snapshot was not whole. */
  classes(): HeapClass[] {
    if (!this.isWhole) throw new Error('the snapshot of a heap ends in the middle');
    const classes = new Map<string, HeapClass>();
    for (const [key, { count, bytes }] of this.#classes) {
      const kind = `(${this.#kinds[key % this.#kinds.length]!})`;
      const name = this.#names.get(Math.floor(key / this.#kinds.length) - 1) ?? kind;
      const both = `${kind}\n${name}`;
      const known = classes.get(both);
      classes.set(both, { kind, name, count: count + (known?.count ?? 0), bytes: bytes + (known?.bytes ?? 0) });
    }
    return [...classes.values()];
  }

  /** @returns what has to be read again with the next piece. */
  #read(bytes: Buffer): Buffer {
    switch (this.#part) {
      case 'head':
        return this.#readHead(bytes);
      case 'nodes':
        return this.#readNodes(bytes);
      case 'edges':
        return this.#skipEdges(bytes);
      case 'strings':
        return this.#readStrings(bytes);
      case 'end':
        return NONE;
    }
  }

  #readHead(bytes: Buffer): Buffer {
    const at = bytes.indexOf(NODES);
    if (at === -1) return bytes;
    const text = bytes.toString('latin1', 0, at).trimEnd().replace(/,$/, '}');
    const { meta } = (JSON.parse(text) as { snapshot: { meta: Meta } }).snapshot;
    const fields = meta.node_fields;
    this.#kinds = meta.node_types[0];
    this.#fieldCount = fields.length;
    [this.#typeAt, this.#nameAt, this.#sizeAt] = ['type', 'name', 'self_size'].map((name) => fields.indexOf(name)) as [
      number,
      number,
      number,
    ];
    this.#part = 'nodes';
    return bytes.subarray(at + NODES.length);
  }

  #readNodes(bytes: Buffer): Buffer {
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at]!;
      if (byte >= DIGIT_0 && byte <= DIGIT_9) {
        this.#number = this.#number * 10 + byte - DIGIT_0;
        this.#hasDigits = true;
        continue;
      }
      if (this.#hasDigits) this.#noteNumber();
      if (byte !== LIST_END) continue;
      this.#wanted = new Set([...this.#classes.keys()].map((key) => Math.floor(key / this.#kinds.length) - 1));
      this.#part = 'edges';
      return bytes.subarray(at + 1);
    }
    return NONE;
  }

  #noteNumber(): void {
    const value = this.#number;
    this.#number = 0;
    this.#hasDigits = false;
    if (this.#field === this.#typeAt) this.#type = value;
    else if (this.#field === this.#nameAt) this.#name = value;
    else if (this.#field === this.#sizeAt) this.#size = value;
    this.#field += 1;
    if (this.#field < this.#fieldCount) return;
    this.#field = 0;
    this.#noteNode();
  }

  #noteNode(): void {
    const isNamed = NAMED_KINDS.has(this.#kinds[this.#type]!);
    const key = (isNamed ? this.#name + 1 : 0) * this.#kinds.length + this.#type;
    const total = this.#classes.get(key);
    if (total === undefined) this.#classes.set(key, { count: 1, bytes: this.#size });
    else {
      total.count += 1;
      total.bytes += this.#size;
    }
  }

  #skipEdges(bytes: Buffer): Buffer {
    const at = bytes.indexOf(STRINGS);
    // The word itself may be cut in two.
    if (at === -1) return bytes.subarray(Math.max(0, bytes.length - STRINGS.length));
    this.#part = 'strings';
    return bytes.subarray(at + STRINGS.length);
  }

  /** Strings that are contents may be of any length: they pass by. */
  #readStrings(bytes: Buffer): Buffer {
    let start = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at];
      if (!this.#isInString) {
        if (byte === LIST_END) {
          this.#part = 'end';
          return NONE;
        }
        if (byte !== QUOTE) continue;
        this.#isInString = true;
        start = at;
      } else if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) {
        this.#isInString = false;
        if (this.#wanted.has(this.#stringIndex)) this.#noteName(bytes.subarray(start, at + 1));
        this.#literal = NONE;
        this.#stringIndex += 1;
      }
    }
    if (this.#isInString && this.#wanted.has(this.#stringIndex)) {
      this.#literal = Buffer.concat([this.#literal, bytes.subarray(start)]);
    }
    return NONE;
  }

  /** Literals of objects have their keys for a name, which may be anything. */
  #noteName(end: Buffer): void {
    const name = JSON.parse(Buffer.concat([this.#literal, end]).toString()) as string;
    const shown = name.startsWith('{') ? 'Object' : name.slice(0, MAX_NAME_CHARACTERS);
    if (shown !== '') this.#names.set(this.#stringIndex, shown);
  }
}
