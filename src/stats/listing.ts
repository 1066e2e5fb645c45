// Listings of stats in the order of their names. Owners are sorted by their prefixes, the stats of each by their names; here both
// become one list, a batch at a time. The names of an owner usually lie between those of its neighbours, but where a prefix goes
// on from another (`cluster.a.` and `cluster.a.retry.`) the names of both mingle.
//
//   owners    a.     a.b.          c.
//   cursors   a.a  → a.a, a.b.x  → a.z      opened when a name of theirs may be the next one

import type { NameParts } from './name-parts.ts';
import { byName, type StatRow } from './stat-table.ts';

/** Some stats of one owner, sorted by their names. */
export interface StatList<Stat> {
  /** The same object for all owners that have the same names here; undefined where names are an owner's own. */
  readonly shape: object | undefined;
  readonly length: number;
  kindAt(at: number): StatRow['kind'];
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
  readonly list: StatList<Stat>;
  at = 0;
  /** Of the stat it stands at. */
  name: string;

  /** @param list of one stat at least. */
  constructor(owner: Owner, list: StatList<Stat>) {
    this.owner = owner;
    this.list = list;
    this.name = owner.prefix + list.nameAt(0);
  }

  /** @returns false at the end. */
  advance(): boolean {
    this.at += 1;
    if (this.at === this.list.length) return false;
    this.name = this.owner.prefix + this.list.nameAt(this.at);
    return true;
  }
}

/** Which stats are asked for; see NameFilter. */
export interface NameSelection {
  readonly parts: NameParts;
  /** Places of the names that are asked for, of those that `parts` lets through; undefined for all. */
  readonly pick: ((names: readonly string[]) => readonly number[]) | undefined;
}

export interface ListingOptions<Owner extends ListedOwner, Stat extends Listed> {
  /** Sorted by their prefixes; some may have gone, others may go. */
  readonly owners: readonly Owner[];
  listsOf(owner: Owner): readonly StatList<Stat>[];
  /** Makes one of two stats that have the same name, or undefined to keep both. */
  combine(first: Stat, second: Stat): Stat | undefined;
  readonly selection: NameSelection;
}

/** A few hundred microseconds of work. */
const MOST_OPENED = 512;

export class Listing<Owner extends ListedOwner, Stat extends Listed> {
  readonly #options: ListingOptions<Owner, Stat>;
  readonly #owners: readonly Owner[];
  #nextOwner = 0;
  /** Owners that may be looked at before the caller must have a chance to rest: most of them may have nothing to show. */
  #mayOpen = 0;
  /** Those of owners whose names may mingle; hardly ever more than the lists of two or three. */
  #cursors: Cursor<Owner, Stat>[] = [];

  constructor(options: ListingOptions<Owner, Stat>) {
    this.#options = options;
    this.#owners = options.owners;
  }

  /**
   * The stats that are asked for among the next, `size` at most, perhaps none; undefined when all have been looked at. What
   * goes meanwhile is left out.
   */
  take(size: number): Stat[] | undefined {
    this.#cursors = this.#cursors.filter(({ owner }) => owner.isLive);
    const names: string[] = [];
    const lists: StatList<Stat>[] = [];
    const places: number[] = [];
    this.#mayOpen = MOST_OPENED;
    for (let cursor = this.#first(); cursor !== undefined; cursor = this.#first()) {
      // Stats of one name stay together.
      if (names.length >= size && cursor.name !== names.at(-1)) break;
      names.push(cursor.name);
      lists.push(cursor.list);
      places.push(cursor.at);
      if (!cursor.advance()) this.#cursors.splice(this.#cursors.indexOf(cursor), 1);
    }
    if (names.length === 0 && this.#mayOpen > 0) return undefined;
    const batch: Stat[] = [];
    const { pick } = this.#options.selection;
    for (const at of pick === undefined ? names.keys() : pick(names)) {
      this.#append(batch, lists[at]!.make(places[at]!, names[at]!));
    }
    return batch;
  }

  #append(batch: Stat[], stat: Stat): void {
    const last = batch.at(-1);
    const combined = last?.name === stat.name ? this.#options.combine(last, stat) : undefined;
    if (combined === undefined) batch.push(stat);
    else batch[batch.length - 1] = combined;
  }

  /** The cursor that stands at the first name of all; undefined at the end, or when enough owners have been looked at. */
  #first(): Cursor<Owner, Stat> | undefined {
    for (;;) {
      const first = this.#firstOpen();
      const owner = this.#owners[this.#nextOwner];
      // Names of owners further on begin with what is behind their prefix.
      if (owner === undefined || (first !== undefined && first.name < owner.prefix)) return first;
      if (this.#mayOpen === 0) return undefined;
      this.#mayOpen -= 1;
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
    const { selection, listsOf } = this.#options;
    if (!owner.isLive || !selection.parts.mayBeUnder(owner.prefix)) return;
    for (const list of listsOf(owner)) {
      const narrowed = selection.parts.narrow(owner.prefix, list);
      if (narrowed.length > 0) this.#cursors.push(new Cursor(owner, narrowed));
    }
  }
}
