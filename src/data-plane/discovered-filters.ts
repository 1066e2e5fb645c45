// The configurations of HTTP and network filters of a worker that are resources of their own, by their ids. Whichever chain has such a
// filter makes one of its own out of each configuration.

import type { PublishedExtension } from '../snapshot/index.ts';

/** A filter of a chain. */
export interface DiscoveredMember<Published extends PublishedExtension = PublishedExtension> {
  /**
   * Requests that begin from now on meet the filter so. What it throws leaves all of this member as it was.
   * @returns what retires the one before it: that calls `onGone` once, when its last request has ended.
   */
  configure(published: Published | null): (onGone: () => void) => void;
  /** It cannot take in the one in force, and goes on with the one that it has; where it has only just come, that is none: nobody goes past it. */
  onUnfit(error: unknown, published: Published | null): void;
}

interface Slot {
  published: PublishedExtension | null;
  /** With what each still has to tell, when it gives up a configuration in whose place it could not take another. */
  readonly members: Map<DiscoveredMember, (() => void)[]>;
}

export class DiscoveredFilters {
  readonly #slots = new Map<number, Slot>();

  /** A chain has this filter, as the configuration of the moment says. @returns what ends that, once. */
  join<Published extends PublishedExtension>(id: number, typed: DiscoveredMember<Published>): () => void {
    // Under one id come filters of one kind.
    const member = typed as unknown as DiscoveredMember;
    const slot = this.#slot(id);
    try {
      member.configure(slot.published);
    } catch (error) {
      member.onUnfit(error, slot.published);
    }
    const owed: (() => void)[] = [];
    slot.members.set(member, owed);
    return () => {
      slot.members.delete(member);
      for (const tell of owed.splice(0)) tell();
      if (slot.members.size === 0 && slot.published === null) this.#slots.delete(id);
    };
  }

  /**
   * Takes the place of what there was of this id.
   * @param onGone called once, in a later turn, when nothing uses what there was, also where this cannot be taken in.
   */
  publish(published: PublishedExtension, onGone: () => void): void {
    this.#configure(this.#slot(published.id), published, onGone);
  }

  /** No chain refers to it any more. @param onGone as for publish. */
  remove(id: number, onGone: () => void): void {
    const slot = this.#slot(id);
    if (slot.members.size === 0) this.#slots.delete(id);
    this.#configure(slot, null, onGone);
  }

  #configure(slot: Slot, published: PublishedExtension | null, onGone: () => void): void {
    slot.published = published;
    let left = slot.members.size + 1;
    const onOneGone = (): void => {
      left -= 1;
      if (left === 0) onGone();
    };
    const retiring: (() => void)[] = [];
    for (const [member, owed] of slot.members) {
      try {
        const retire = member.configure(published);
        const due = [...owed.splice(0), onOneGone];
        const onRetired = (): void => {
          for (const tell of due) tell();
        };
        retiring.push(() => retire(onRetired));
      } catch (error) {
        owed.push(onOneGone);
        member.onUnfit(error, published);
      }
    }
    for (const retire of retiring) retire();
    onOneGone();
  }

  #slot(id: number): Slot {
    let slot = this.#slots.get(id);
    if (slot === undefined) {
      slot = { published: null, members: new Map() };
      this.#slots.set(id, slot);
    }
    return slot;
  }
}
