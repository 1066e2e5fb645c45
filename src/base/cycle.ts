// Whether things that name others of their kind lead back to themselves.

/** Each with those that it names. */
export type References = ReadonlyMap<string, readonly string[]>;

/** @returns the names on a way from one back to itself, with its own at both ends; undefined when there is none. */
export function cycleThrough(start: string, references: References): readonly string[] | undefined {
  const seen = new Set<string>();
  const search = (way: readonly string[]): readonly string[] | undefined => {
    for (const next of references.get(way.at(-1)!) ?? []) {
      if (next === start) return [...way, next];
      if (seen.has(next)) continue;
      seen.add(next);
      const found = search([...way, next]);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return search([start]);
}
