// Finds the virtual host of a request by its authority. Order, as in the reference: exact name, longest suffix
// wildcard (`*.example.com`, which never matches `example.com` itself), longest prefix wildcard (`example.*`), `*`.
// The port is part of the name: `example.com` does not serve `example.com:8080` unless a domain says so.

/** Wildcards of one length, by their fixed part. */
interface WildcardLength<T> {
  readonly length: number;
  readonly byFixedPart: Map<string, T>;
}

export class VirtualHostIndex<T> {
  readonly #exact = new Map<string, T>();
  readonly #suffixes: WildcardLength<T>[] = [];
  readonly #prefixes: WildcardLength<T>[] = [];
  #catchAll: T | undefined;
  #hasOthers = false;

  /** Adds a domain in lower case; the first owner of a domain keeps it. */
  add(domain: string, owner: T): void {
    if (domain === '*') {
      this.#catchAll ??= owner;
      return;
    }
    this.#hasOthers = true;
    if (domain.startsWith('*')) addWildcard(this.#suffixes, domain.slice(1), owner);
    else if (domain.endsWith('*')) addWildcard(this.#prefixes, domain.slice(0, -1), owner);
    else if (!this.#exact.has(domain)) this.#exact.set(domain, owner);
  }

  /** The owner of every authority there is; undefined when it takes one to tell. */
  get only(): T | undefined {
    return this.#hasOthers ? undefined : this.#catchAll;
  }

  /** @param authority in lower case, with its port where the client sent one. */
  find(authority: string): T | undefined {
    const exact = this.#exact.get(authority);
    if (exact !== undefined) return exact;
    for (const { length, byFixedPart } of this.#suffixes) {
      // A wildcard stands for at least one character.
      if (authority.length <= length) continue;
      const owner = byFixedPart.get(authority.slice(authority.length - length));
      if (owner !== undefined) return owner;
    }
    for (const { length, byFixedPart } of this.#prefixes) {
      if (authority.length <= length) continue;
      const owner = byFixedPart.get(authority.slice(0, length));
      if (owner !== undefined) return owner;
    }
    return this.#catchAll;
  }
}

/** Keeps the list ordered by falling length, so that the first hit is the longest. */
function addWildcard<T>(lengths: WildcardLength<T>[], fixedPart: string, owner: T): void {
  let entry = lengths.find((candidate) => candidate.length === fixedPart.length);
  if (entry === undefined) {
    entry = { length: fixedPart.length, byFixedPart: new Map() };
    lengths.push(entry);
    lengths.sort((a, b) => b.length - a.length);
  }
  if (!entry.byFixedPart.has(fixedPart)) entry.byFixedPart.set(fixedPart, owner);
}
