// Listings of stats in the order of their names. Owners are sorted by their prefixes, the stats of each by their names; here both
// become one list, a batch at a time. The names of an owner usually lie between those of its neighbours, but where a prefix goes
// on from another (`cluster.a.` and `cluster.a.retry.`) the names of both mingle.
//
//   owners    a.     a.b.          c.
//   cursors   a.a  → a.a, a.b.x  → a.z      opened when a name of theirs may be the next one

import { byName } from './stat-table.ts';

/** Some stats of one owner, sorted by their names. */
export interface StatList<Stat> {
  readonly length: number;
  /** What follows the owner's prefix. */
  nameAt(at: number): string;
  /** @param name in full. */
  make(at: number, name: string): Stat;
}

export interface ListedOwner {
  readonly prefix: string;
  readonly isLive: boolean;
}

export interface Listed {
  readonly name: string;
}

class Cursor<Owner extends ListedOwner, Stat> {
  readonly owner: Owner;
  readonly #list: StatList<Stat>;
  #at = 0;
  /** Of the stat it stands at. */
  name: string;

  /** @param list of one stat at least. */
  constructor(owner: Owner, list: StatList<Stat>) {
    this.owner = owner;
    this.#list = list;
    this.name = owner.prefix + list.nameAt(0);
  }

  get isAtEnd(): boolean {
    return this.#at === this.#list.length;
  }

  take(): Stat {
    const stat = this.#list.make(this.#at, this.name);
    this.#at += 1;
    if (!this.isAtEnd) this.name = this.owner.prefix + this.#list.nameAt(this.#at);
    return stat;
  }
}

export interface ListingOptions<Owner extends ListedOwner, Stat extends Listed> {
  /** Sorted by their prefixes; some may have gone, others may go. */
  readonly owners: readonly Owner[];
  listsOf(owner: Owner): readonly StatList<Stat>[];
  /** Makes one of two stats that have the same name, or undefined to keep both. */
  combine(first: Stat, second: Stat): Stat | undefined;
  /** What the names begin with that are asked for; others may be among them. */
  readonly namePrefix: string;
}

export class Listing<Owner extends ListedOwner, Stat extends Listed> {
  readonly #options: ListingOptions<Owner, Stat>;
  readonly #owners: readonly Owner[];
  #nextOwner = 0;
  /** Those of owners whose names may mingle; hardly ever more than the lists of two or three. */
  #cursors: Cursor<Owner, Stat>[] = [];

  constructor(options: ListingOptions<Owner, Stat>) {
    this.#options = options;
    this.#owners = options.owners;
  }

  /** The next stats, at most `size`; none when all have been taken. What goes meanwhile is left out. */
  take(size: number): Stat[] {
    this.#cursors = this.#cursors.filter(({ owner }) => owner.isLive);
    const batch: Stat[] = [];
    let cursor = this.#first();
    while (cursor !== undefined && batch.length < size) {
      const { name } = cursor;
      let stat = this.#takeFrom(cursor);
      cursor = this.#first();
      while (cursor?.name === name) {
        const second = this.#takeFrom(cursor);
        const combined = this.#options.combine(stat, second);
        if (combined === undefined) batch.push(stat);
        stat = combined ?? second;
        cursor = this.#first();
      }
      batch.push(stat);
    }
    return batch;
  }

  #takeFrom(cursor: Cursor<Owner, Stat>): Stat {
    const stat = cursor.take();
    if (cursor.isAtEnd) this.#cursors.splice(this.#cursors.indexOf(cursor), 1);
    return stat;
  }

  /** The cursor that stands at the first name of all. */
  #first(): Cursor<Owner, Stat> | undefined {
    for (;;) {
      const first = this.#firstOpen();
      const owner = this.#owners[this.#nextOwner];
      // Names of owners further on begin with what is behind their prefix.
      if (owner === undefined || (first !== undefined && first.name < owner.prefix)) return first;
      this.#nextOwner += 1;
      this.#open(owner);
    }
  }

  #firstOpen(): Cursor<Owner, Stat> | undefined {
    let first = this.#cursors[0];
    for (let at = 1; at < this.#cursors.length; at++) {
      if (byName(this.#cursors[at]!, first!) < 0) first = this.#cursors[at];
    }
    return first;
  }

  #open(owner: Owner): void {
    const { namePrefix, listsOf } = this.#options;
    const mayHave = owner.prefix.startsWith(namePrefix) || namePrefix.startsWith(owner.prefix);
    if (!owner.isLive || !mayHave) return;
    for (const list of listsOf(owner)) if (list.length > 0) this.#cursors.push(new Cursor(owner, list));
  }
}
