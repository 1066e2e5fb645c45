// Resources of a response by their names, for all who want some of them: there may be thousands of either.

export class ResourceIndex<Resource extends { readonly name: string }> {
  /** In their order. */
  readonly #all: Resource[] = [];
  readonly #byName = new Map<string, number[]>();

  add(resource: Resource): void {
    const places = this.#byName.get(resource.name);
    if (places === undefined) this.#byName.set(resource.name, [this.#all.length]);
    else places.push(this.#all.length);
    this.#all.push(resource);
  }

  /** What could not be opened has no name: it is told of to everybody. @param wanted undefined for all. */
  concernedOf(wanted: ReadonlySet<string> | undefined): readonly Resource[] {
    if (wanted === undefined) return this.#all;
    const places = ['', ...wanted].flatMap((name) => this.#byName.get(name) ?? []);
    return places.sort((a, b) => a - b).map((at) => this.#all[at]!);
  }
}
