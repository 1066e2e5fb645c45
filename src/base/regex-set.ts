// Many regular expressions asked at once: which of them match the whole of a text, in a time that hardly depends on how many
// there are. RE2's automaton for all of them is bounded in memory; a set that would need more is divided.

import { isBeyondAscii } from './byte-text.ts';
import { re2 } from './re2.ts';

type Re2Set = InstanceType<ReturnType<typeof re2>['Set']>;

/** For the automaton of a set, which grows with the texts that come: as much as a single expression may take, and what more need to begin with. */
const BASE_BYTES = 8 * 1024 * 1024;
const BYTES_PER_PATTERN = 6 * 1024;

interface Part {
  readonly set: Re2Set;
  /** Index of its first pattern. */
  readonly first: number;
}

export class RegexSet {
  readonly #parts: readonly Part[];

  /** @throws Error for a pattern that does not compile. */
  constructor(patterns: readonly string[], memoryBytes = BASE_BYTES + patterns.length * BYTES_PER_PATTERN) {
    this.#parts = partsOf(patterns, 0, memoryBytes);
  }

  get size(): number {
    return this.#parts.length;
  }

  /**
   * @param text byte text, which the patterns take for UTF-8.
   * @returns indexes of those that match the whole text, in ascending order; null when memory did not suffice to tell.
   */
  matches(text: string): readonly number[] | null {
    const subject = isBeyondAscii(text) ? Buffer.from(text, 'latin1') : text;
    try {
      if (this.#parts.length === 1) return ascending(this.#parts[0]!.set.match(subject));
      return this.#parts.flatMap(({ set, first }) => ascending(set.match(subject)).map((index) => first + index));
    } catch {
      return null;
    }
  }
}

function partsOf(patterns: readonly string[], first: number, memoryBytes: number): readonly Part[] {
  const { Set: Re2Set } = re2();
  try {
    return [{ set: new Re2Set(patterns, { anchor: 'both', maxMem: memoryBytes }), first }];
  } catch (error) {
    if (patterns.length === 1) throw error;
    const middle = patterns.length >> 1;
    const left = partsOf(patterns.slice(0, middle), first, memoryBytes);
    return [...left, ...partsOf(patterns.slice(middle), first + middle, memoryBytes)];
  }
}

function ascending(indexes: number[]): number[] {
  return indexes.length < 2 ? indexes : indexes.sort((a, b) => a - b);
}
