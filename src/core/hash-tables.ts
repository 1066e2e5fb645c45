// Maglev tables and hash rings of the core: src/wasm/lb builds and reads them, this checks what a caller hands in and
// gives the memory back.

import { WeirError } from '../base/errors.ts';
import type { HashRing, HashTable, MaglevTable } from '../wasm/lb/hash-table.ts';
import type { LbTables } from '../wasm/lb/table-builder.ts';
import { argumentError, checkBigint, show } from './arguments.ts';
import type { Maglev, RingEntry, RingHash } from './types.ts';

const LARGEST_ATTEMPT = 0xffff_ffff;

class CoreHashTable<Table extends HashTable> {
  readonly minEntriesPerHost: number;
  readonly maxEntriesPerHost: number;
  readonly #tables: LbTables;
  /** Undefined once freed. */
  #table: Table | undefined;
  #bytes: number;

  constructor(tables: LbTables, table: Table) {
    this.#tables = tables;
    this.#table = table;
    this.#bytes = tables.bytesOf(table);
    this.minEntriesPerHost = table.minEntriesPerHost;
    this.maxEntriesPerHost = table.maxEntriesPerHost;
  }

  get bytes(): number {
    return this.#bytes;
  }

  lookup(hash: bigint, attempt = 0): number {
    checkBigint('hash', hash);
    checkAttempt(attempt);
    return this.table.lookupHash(hash, attempt);
  }

  lookupKey(key: string | Uint8Array, attempt = 0): number {
    checkData('key', key);
    checkAttempt(attempt);
    return this.table.hashAndLookup(key, attempt);
  }

  free(): void {
    if (this.#table === undefined) return;
    this.#tables.free(this.#table);
    this.#table = undefined;
    this.#bytes = 0;
  }

  /** @throws WeirError WEIR_CORE_FREED once freed: the block may belong to another table by then. */
  protected get table(): Table {
    if (this.#table === undefined) throw freedError();
    return this.#table;
  }
}

export class CoreMaglev extends CoreHashTable<MaglevTable> implements Maglev {
  readonly tableSize: number;

  constructor(tables: LbTables, table: MaglevTable) {
    super(tables, table);
    this.tableSize = table.size;
  }
}

export class CoreRing extends CoreHashTable<HashRing> implements RingHash {
  readonly size: number;

  constructor(tables: LbTables, table: HashRing) {
    super(tables, table);
    this.size = table.size;
  }

  get minHashesPerHost(): number {
    return this.minEntriesPerHost;
  }

  get maxHashesPerHost(): number {
    return this.maxEntriesPerHost;
  }

  ring(): RingEntry[] {
    return this.table.entries();
  }
}

export function freedError(): WeirError {
  return new WeirError('WEIR_CORE_FREED', 'this table was freed');
}

/** @throws WeirError unless `data` can be hashed. */
export function checkData(name: string, data: string | Uint8Array): void {
  if (typeof data === 'string' || data instanceof Uint8Array) return;
  throw argumentError(name, `${show(data)} is neither a string nor a Uint8Array`);
}

function checkAttempt(attempt: number): void {
  if (attempt >>> 0 === attempt) return;
  throw argumentError('attempt', `${show(attempt)} is not a whole number from 0 to ${LARGEST_ATTEMPT}`);
}
