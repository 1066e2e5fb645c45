// Where a worker keeps responses: by the key of their requests, and of each key those that differ by headers. Bounded by bytes and
// by number; who was asked for least recently goes first.

import type { StoredResponse } from './stored-response.ts';

export interface StoreLimits {
  readonly maxBytes: number;
  readonly maxEntries: number;
  /** Of one key. */
  readonly maxVariants: number;
}

/** What an entry costs beside its texts and its body, about. */
const OVERHEAD_BYTES = 1024;

/** Of a request: what it says of the headers that a response varies by. */
export type ReadVary = (name: string) => string | undefined;

interface Group {
  readonly variants: StoredResponse[];
}

export class ResponseStore {
  readonly #limits: StoreLimits;
  /** The one that was asked for least recently first. */
  readonly #groups = new Map<string, Group>();
  readonly #onEvicted: () => void;
  #bytes = 0;
  #entries = 0;

  /** @param onEvicted for each that makes room. */
  constructor(limits: StoreLimits, onEvicted: () => void) {
    this.#limits = limits;
    this.#onEvicted = onEvicted;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get entries(): number {
    return this.#entries;
  }

  keys(): Iterable<string> {
    return this.#groups.keys();
  }

  find(key: string, cluster: string, read: ReadVary): StoredResponse | undefined {
    const group = this.#groups.get(key);
    if (group === undefined) return undefined;
    this.#groups.delete(key);
    this.#groups.set(key, group);
    return group.variants.find((each) => each.cluster === cluster && isFor(each, read));
  }

  /** In place of the one that the same requests would get. @returns false where it is too large. */
  put(key: string, response: StoredResponse): boolean {
    const cost = costOf(key, response);
    if (cost > this.#limits.maxBytes) return false;
    const group = this.#groups.get(key) ?? { variants: [] };
    const at = group.variants.findIndex((each) => isSame(each, response));
    if (at >= 0) this.#drop(key, group, at);
    else if (group.variants.length >= this.#limits.maxVariants) this.#evict(key, group);
    group.variants.push(response);
    this.#groups.delete(key);
    this.#groups.set(key, group);
    this.#bytes += cost;
    this.#entries += 1;
    this.#makeRoom();
    return true;
  }

  /** @returns how many have gone. */
  remove(key: string): number {
    const group = this.#groups.get(key);
    if (group === undefined) return 0;
    const count = group.variants.length;
    while (group.variants.length > 0) this.#drop(key, group, 0);
    return count;
  }

  #makeRoom(): void {
    const { maxBytes, maxEntries } = this.#limits;
    while (this.#bytes > maxBytes || this.#entries > maxEntries) {
      const [oldest] = this.#groups;
      this.#evict(...oldest!);
    }
  }

  #evict(key: string, group: Group): void {
    this.#drop(key, group, 0);
    this.#onEvicted();
  }

  #drop(key: string, group: Group, at: number): void {
    const [response] = group.variants.splice(at, 1);
    this.#bytes -= costOf(key, response!);
    this.#entries -= 1;
    if (group.variants.length === 0) this.#groups.delete(key);
  }
}

function isFor({ vary }: StoredResponse, read: ReadVary): boolean {
  return vary.every(([name, value]) => read(name) === value);
}

function isSame(a: StoredResponse, b: StoredResponse): boolean {
  return a.cluster === b.cluster && JSON.stringify(a.vary) === JSON.stringify(b.vary);
}

/** The same for as long as the response is there: it never changes. */
function costOf(key: string, { fields, body, vary }: StoredResponse): number {
  let bytes = OVERHEAD_BYTES + body.length + key.length;
  for (const [name, value] of fields) bytes += name.length + value.length + 64;
  for (const [name, value] of vary) bytes += name.length + (value?.length ?? 0) + 64;
  return bytes;
}
