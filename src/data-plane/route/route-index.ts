// The routes of a virtual host that has many, found by what decides first: whole paths by look-up, prefixes by one walk along
// the path, regular expressions all at once. What comes out is what a walk through the list would find: the first route that
// matches. Made once per snapshot.

import { RegexSet } from '../../base/regex-set.ts';
import { PrefixTrie } from './prefix-trie.ts';
import type { Route } from './route.ts';
import type { RouteRequest } from './route-request.ts';

interface Ranked {
  readonly route: Route;
  /** Place in the configured order. */
  readonly rank: number;
}

export class RouteIndex {
  readonly #byPath = new PathIndex();
  /** Those whose case does not count, by lower-case paths; null for none. */
  #byLowerPath: PathIndex | null = null;
  readonly #regexes: Ranked[] = [];
  readonly #patterns: Pick<RegexSet, 'matches'> | null;
  readonly #ofConnect: Ranked[] = [];

  /** @param join makes one test of many regular expressions. */
  constructor(
    routes: readonly Route[],
    join: (patterns: readonly string[]) => Pick<RegexSet, 'matches'> = (patterns) => new RegexSet(patterns),
  ) {
    for (const [rank, route] of routes.entries()) this.#add({ route, rank });
    this.#patterns = this.#regexes.length === 0 ? null : join(this.#regexes.map(({ route }) => route.match.value));
  }

  #add(ranked: Ranked): void {
    const { kind, caseSensitive } = ranked.route.match;
    if (kind === 'connect') this.#ofConnect.push(ranked);
    else if (kind === 'regex') this.#regexes.push(ranked);
    else if (caseSensitive) this.#byPath.add(ranked);
    else {
      this.#byLowerPath ??= new PathIndex();
      this.#byLowerPath.add(ranked);
    }
  }

  find(request: RouteRequest): Route | undefined {
    if (request.isConnect) return firstOf(this.#ofConnect, request, null)?.route;
    const path = request.matchedPath;
    let found = this.#byPath.find(path, request, null);
    if (this.#byLowerPath !== null) found = this.#byLowerPath.find(path.toLowerCase(), request, found);
    if (this.#patterns !== null) found = this.#findByRegex(this.#patterns, path, request, found);
    return found?.route;
  }

  #findByRegex(
    patterns: Pick<RegexSet, 'matches'>,
    path: string,
    request: RouteRequest,
    before: Ranked | null,
  ): Ranked | null {
    if (before !== null && before.rank < this.#regexes[0]!.rank) return before;
    const indexes = patterns.matches(path);
    if (indexes === null)
      return firstOf(
        this.#regexes.filter(({ route }) => route.matchesPath(path)),
        request,
        before,
      );
    for (const index of indexes) {
      const ranked = this.#regexes[index]!;
      if (before !== null && ranked.rank > before.rank) break;
      if (ranked.route.meets(request)) return ranked;
    }
    return before;
  }
}

/** Whole paths and prefixes, all of one spelling. */
class PathIndex {
  readonly #whole = new Map<string, Ranked[]>();
  readonly #prefixes = new PrefixTrie<Ranked>();
  /** Of the walk at hand, which makes nothing for a request. */
  #request!: RouteRequest;
  #path = '';
  #found: Ranked | null = null;

  add(ranked: Ranked): void {
    const { kind, value, caseSensitive } = ranked.route.match;
    const text = caseSensitive ? value : value.toLowerCase();
    if (kind !== 'path') {
      this.#prefixes.add(text, ranked);
      return;
    }
    const others = this.#whole.get(text);
    if (others === undefined) this.#whole.set(text, [ranked]);
    else others.push(ranked);
  }

  /** @param before what has been found so far: those behind it do not count. */
  find(path: string, request: RouteRequest, before: Ranked | null): Ranked | null {
    const whole = this.#whole.get(path);
    this.#found = whole === undefined ? before : firstOf(whole, request, before);
    this.#request = request;
    this.#path = path;
    this.#prefixes.walk(path, this.#visit);
    return this.#found;
  }

  readonly #visit = (values: readonly Ranked[], length: number): void => {
    const isWhole = length === this.#path.length || this.#path[length] === '/';
    for (const ranked of values) {
      if (this.#found !== null && ranked.rank > this.#found.rank) return;
      if (!isWhole && ranked.route.match.kind === 'path-separated-prefix') continue;
      if (!ranked.route.meets(this.#request)) continue;
      this.#found = ranked;
      return;
    }
  };
}

/** @returns the first that the request meets, unless what was found before stands in front of it. */
function firstOf(list: readonly Ranked[], request: RouteRequest, before: Ranked | null): Ranked | null {
  for (const ranked of list) {
    if (before !== null && ranked.rank > before.rank) break;
    if (ranked.route.meets(request)) return ranked;
  }
  return before;
}
