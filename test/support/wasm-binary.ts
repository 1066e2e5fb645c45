// Reads just enough of a WASM binary to hold a module to its rules: which sections it has, and the
// signatures of what it exports.

const SECTION_TYPE = 1;
const SECTION_IMPORT = 2;
const SECTION_FUNCTION = 3;
const SECTION_GLOBAL = 6;
const SECTION_EXPORT = 7;
const SECTION_DATA = 11;
const VALUE_TYPES: Readonly<Record<number, string>> = { 127: 'i32', 126: 'i64', 125: 'f32', 124: 'f64', 123: 'v128' };

export interface WasmBinary {
  readonly hasDataSection: boolean;
  /** Globals that the module itself can change. */
  readonly mutableGlobals: number;
  /** `module.name` of each import. */
  readonly imports: readonly string[];
  /** `(i32, i32) -> i32` by name of each exported function. */
  readonly exports: Readonly<Record<string, string>>;
}

class Reader {
  readonly #bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes;
    this.at = at;
  }

  get isDone(): boolean {
    return this.at >= this.#bytes.length;
  }

  byte(): number {
    return this.#bytes[this.at++]!;
  }

  /** Unsigned LEB128. */
  u32(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
  }

  take(length: number): Uint8Array {
    const taken = this.#bytes.subarray(this.at, this.at + length);
    this.at += length;
    return taken;
  }

  name(): string {
    return Buffer.from(this.take(this.u32())).toString('utf8');
  }

  list<Item>(read: () => Item): Item[] {
    return Array.from({ length: this.u32() }, read);
  }
}

export function readWasm(bytes: Uint8Array): WasmBinary {
  const sections = readSections(bytes);
  const section = (id: number): Reader => new Reader(sections.get(id) ?? new Uint8Array([0]));
  const types = readTypes(section(SECTION_TYPE));
  const functions = readList(section(SECTION_FUNCTION));
  const imports = readImports(section(SECTION_IMPORT));
  const importedFunctions = imports.filter((entry) => entry.kind === 0).length;
  const exports = readExports(section(SECTION_EXPORT))
    .filter((entry) => entry.kind === 0)
    .map((entry) => [entry.name, types[functions[entry.index - importedFunctions]!]!]);
  return {
    hasDataSection: sections.has(SECTION_DATA),
    mutableGlobals: countMutableGlobals(section(SECTION_GLOBAL)),
    imports: imports.map((entry) => entry.name),
    exports: Object.fromEntries(exports),
  };
}

function readSections(bytes: Uint8Array): Map<number, Uint8Array> {
  const reader = new Reader(bytes, 8);
  const sections = new Map<number, Uint8Array>();
  while (!reader.isDone) {
    const id = reader.byte();
    sections.set(id, reader.take(reader.u32()));
  }
  return sections;
}

function readTypes(reader: Reader): string[] {
  const valueTypes = (): string => reader.list(() => VALUE_TYPES[reader.byte()] ?? 'other').join(', ');
  return reader.list(() => {
    reader.byte();
    const parameters = valueTypes();
    return `(${parameters}) -> ${valueTypes()}`;
  });
}

function readList(reader: Reader): number[] {
  return reader.list(() => reader.u32());
}

function readImports(reader: Reader): { name: string; kind: number }[] {
  return reader.list(() => {
    const name = `${reader.name()}.${reader.name()}`;
    const kind = reader.byte();
    if (kind === 0) reader.u32();
    else if (kind === 2) readLimits(reader);
    else throw new Error(`${name}: unexpected kind of import ${kind}`);
    return { name, kind };
  });
}

function readLimits(reader: Reader): void {
  const flags = reader.byte();
  reader.u32();
  if (flags & 1) reader.u32();
}

function readExports(reader: Reader): { name: string; kind: number; index: number }[] {
  return reader.list(() => ({ name: reader.name(), kind: reader.byte(), index: reader.u32() }));
}

/** Counts by each entry's mutability flag; initialisers are skipped up to their `end`. */
function countMutableGlobals(reader: Reader): number {
  return reader
    .list(() => {
      reader.byte();
      const isMutable = reader.byte() === 1;
      while (reader.byte() !== 0x0b);
      return isMutable;
    })
    .filter(Boolean).length;
}
