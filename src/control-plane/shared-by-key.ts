// Things that several want: each is made once for all who want the same, and ends with the last of them. Main thread.

/** A thing that somebody wants. */
export interface Share<Thing> {
  readonly thing: Thing;
  /** Nobody has wanted it before. */
  readonly isNew: boolean;
  /** Idempotent. */
  release(): void;
}

interface Counted<Thing> {
  readonly thing: Thing;
  users: number;
}

export class SharedByKey<Thing> {
  readonly #byKey = new Map<string, Counted<Thing>>();
  readonly #end: (thing: Thing) => void;

  /** @param end called once for each thing, when nobody wants it any more. */
  constructor(end: (thing: Thing) => void) {
    this.#end = end;
  }

  /** @param key the same for all who want the same. @param make may throw: nobody has it then. */
  lease(key: string, make: () => Thing): Share<Thing> {
    const known = this.#byKey.get(key);
    const counted = known ?? { thing: make(), users: 0 };
    this.#byKey.set(key, counted);
    counted.users += 1;
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      counted.users -= 1;
      if (counted.users > 0) return;
      this.#byKey.delete(key);
      this.#end(counted.thing);
    };
    return { thing: counted.thing, isNew: known === undefined, release };
  }

  find(key: string): Thing | undefined {
    return this.#byKey.get(key)?.thing;
  }

  *[Symbol.iterator](): IterableIterator<Thing> {
    for (const { thing } of this.#byKey.values()) yield thing;
  }
}
