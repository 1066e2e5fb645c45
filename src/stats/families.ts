// Stats by family: those whose names are the same without the values of their tags, as Prometheus shows them. A family is
// mostly one row of a table that thousands of owners have, so that owners are kept by what their names have in common, and the
// names, tags and views of stats are made a batch at a time.
//
//   owners           cluster.a.   cluster.b.   cluster.c.            one group: the same words around one value
//   rows of group    upstream_cx_total ─→ family cluster.upstream_cx_total, with the tag cluster_name of each owner

import type { TimeSlice } from '../base/time-slice.ts';
import type { Listed, ListedOwner, NameSelection, StatList } from './listing.ts';
import { SortedList } from './sorted-list.ts';
import { byName, type StatRow } from './stat-table.ts';
import type { OwnerTags, Tag, TagProducer } from './tags/tag-producer.ts';

/** Some stats of a family, with the tags of each; those of one family follow each other. */
export interface FamilyBatch<Stat> {
  /** Without the values of tags. */
  readonly name: string;
  readonly stats: readonly Stat[];
  readonly tags: readonly (readonly Tag[])[];
}

export interface FamiliesOptions<Owner extends ListedOwner, Stat extends Listed> {
  /** Sorted by their prefixes. */
  readonly owners: readonly Owner[];
  readonly kind: StatRow['kind'];
  listsOf(owner: Owner): readonly StatList<Stat>[];
  combine(first: Stat, second: Stat): Stat | undefined;
  readonly selection: NameSelection;
  readonly tags: TagProducer;
  readonly batchSize: number;
}

/** One stat list of one owner, and how the tags of its names are made. */
interface Member<Owner, Stat> {
  readonly owner: Owner;
  readonly list: StatList<Stat>;
  readonly tags: OwnerTags | undefined;
}

/** A row that all members have, or one of the only member. */
interface Source<Owner, Stat> {
  readonly members: readonly Member<Owner, Stat>[];
  readonly at: number;
}

/** One stat before it is made. */
interface Entry<Owner, Stat> {
  readonly name: string;
  readonly member: Member<Owner, Stat>;
  readonly at: number;
  /** Owners that go are left out when their stats are made. */
  readonly isLive: true;
}

export class Families<Owner extends ListedOwner, Stat extends Listed> {
  readonly #options: FamiliesOptions<Owner, Stat>;
  readonly #sources = new Map<string, Source<Owner, Stat>[]>();

  constructor(options: FamiliesOptions<Owner, Stat>) {
    this.#options = options;
  }

  async *batches(slice: TimeSlice): AsyncGenerator<FamilyBatch<Stat>> {
    await this.#collect(slice);
    const names = [...this.#sources.keys()].sort();
    for (const name of names) {
      for (const batch of this.#inBatches(await this.#entries(this.#sources.get(name)!, slice))) {
        if (batch.stats.length > 0) yield { name, ...batch };
        if (slice.isOverNow()) await slice.rest();
      }
    }
  }

  async #collect(slice: TimeSlice): Promise<void> {
    const { owners, listsOf, selection, tags } = this.#options;
    /** By the words that their names have in common, then by the shape of the list. */
    const groups = new Map<string, Map<object, Member<Owner, Stat>[]>>();
    for (const owner of owners) {
      // An owner may have names by the thousand.
      if (slice.isOverNow()) await slice.rest();
      if (!owner.isLive || !selection.parts.mayBeUnder(owner.prefix)) continue;
      const lists = listsOf(owner).map((list) => selection.parts.narrow(owner.prefix, list));
      // With a filter most owners have nothing to show, and need no tags.
      if (lists.every(({ length }) => length === 0)) continue;
      const ownerTags = tags.ofOwner(owner.prefix);
      for (const narrowed of lists) {
        const member = { owner, list: narrowed, tags: ownerTags };
        if (ownerTags === undefined || narrowed.shape === undefined) await this.#addAlone(member, slice);
        else addTo(groups, ownerTags.words, narrowed.shape, member);
      }
    }
    for (const byShape of groups.values()) for (const members of byShape.values()) this.#addGroup(members);
  }

  async #addAlone(member: Member<Owner, Stat>, slice: TimeSlice): Promise<void> {
    for (const at of this.#rows(member)) {
      this.#add(member, { members: [member], at });
      if (slice.isOver()) await slice.rest();
    }
  }

  #addGroup(members: readonly Member<Owner, Stat>[]): void {
    for (const at of this.#rows(members[0]!)) this.#add(members[0]!, { members, at });
  }

  *#rows({ list }: Member<Owner, Stat>): Generator<number> {
    for (let at = 0; at < list.length; at++) if (list.kindAt(at) === this.#options.kind) yield at;
  }

  #add(member: Member<Owner, Stat>, source: Source<Owner, Stat>): void {
    const { extractedName } = this.#tagged(member, source.at);
    const known = this.#sources.get(extractedName);
    if (known === undefined) this.#sources.set(extractedName, [source]);
    else known.push(source);
  }

  #tagged({ owner, list, tags }: Member<Owner, Stat>, at: number): { extractedName: string; tags: readonly Tag[] } {
    const row = list.nameAt(at);
    return tags === undefined ? this.#options.tags.produce(owner.prefix + row) : tags.produce(row);
  }

  /** In the order of their names. A family may have a stat by the same name of each of thousands of owners. */
  async #entries(sources: readonly Source<Owner, Stat>[], slice: TimeSlice): Promise<Iterable<Entry<Owner, Stat>>> {
    // Owners of a group are in the order of their prefixes, none of which begins with another.
    if (sources.length === 1) return entriesOf(sources[0]!);
    const entries: Entry<Owner, Stat>[] = [];
    let isSorted = true;
    for (const source of sources) {
      for (const entry of entriesOf(source)) {
        isSorted &&= entries.length === 0 || byName(entries.at(-1)!, entry) <= 0;
        entries.push(entry);
        if (slice.isOver()) await slice.rest();
      }
    }
    if (isSorted) return entries;
    const list = new SortedList<Entry<Owner, Stat>>();
    for (const entry of entries) list.add(entry);
    return list.items();
  }

  *#inBatches(entries: Iterable<Entry<Owner, Stat>>): Generator<Omit<FamilyBatch<Stat>, 'name'>> {
    const { batchSize } = this.#options;
    let batch: Entry<Owner, Stat>[] = [];
    for (const entry of entries) {
      // Stats of one name stay together.
      if (batch.length >= batchSize && batch.at(-1)!.name !== entry.name) {
        yield this.#make(batch);
        batch = [];
      }
      batch.push(entry);
    }
    yield this.#make(batch);
  }

  #make(all: readonly Entry<Owner, Stat>[]): Omit<FamilyBatch<Stat>, 'name'> {
    const { selection, combine } = this.#options;
    const live = all.filter(({ member }) => member.owner.isLive);
    const places = selection.pick?.(live.map(({ name }) => name)) ?? live.keys();
    const stats: Stat[] = [];
    const tags: (readonly Tag[])[] = [];
    for (const place of places) {
      const { member, name, at } = live[place]!;
      const stat = member.list.make(at, name);
      const last = stats.at(-1);
      const combined = last?.name === name ? combine(last, stat) : undefined;
      if (combined !== undefined) {
        stats[stats.length - 1] = combined;
        continue;
      }
      stats.push(stat);
      tags.push(this.#tagged(member, at).tags);
    }
    return { stats, tags };
  }
}

function addTo<Member>(groups: Map<string, Map<object, Member[]>>, words: string, shape: object, member: Member): void {
  const byShape = groups.get(words) ?? new Map<object, Member[]>();
  groups.set(words, byShape);
  const members = byShape.get(shape);
  if (members === undefined) byShape.set(shape, [member]);
  else members.push(member);
}

function* entriesOf<Owner extends ListedOwner, Stat>({
  members,
  at,
}: Source<Owner, Stat>): Generator<Entry<Owner, Stat>> {
  for (const member of members) yield { name: member.owner.prefix + member.list.nameAt(at), member, at, isLive: true };
}
