// Decision trees, ready to be asked. Made once per snapshot. Whoever has one compiled brings what reads its inputs, of
// requests or of connections, and says what its actions become.

import { utf8Bytes } from '../../base/byte-text.ts';
import { compileMetadataMatch } from '../../base/metadata-match.ts';
import { isWithin, type RuntimeValues } from '../../base/runtime.ts';
import { compileByteMatch } from '../../base/string-match.ts';
import type {
  InputTest,
  MatchDomains,
  MatchInput,
  MatchMap,
  MatchOutcome,
  MatchPredicate,
  MatchRanges,
  MatchTree,
  Metadata,
} from '../../snapshot/index.ts';
import type { LbKernel } from '../../wasm/lb.ts';
import { AddressRanges } from './address-ranges.ts';

/** @returns byte text; undefined for what is missing. */
export type ReadInput<Subject> = (subject: Subject) => string | undefined;

export interface InputReaders<Subject> {
  text(input: MatchInput): ReadInput<Subject>;
  /** What filters have said of it. */
  metadata(subject: Subject): Metadata | undefined;
}

export interface MatchTools {
  readonly runtime: RuntimeValues;
  /** Hashes; null where nothing is chosen by hashes. */
  readonly kernel: LbKernel | null;
}

/**
 * @param note told of what is found on the way by entries that keep matching.
 * @returns undefined where nothing follows.
 */
export type FindMatch<Subject, Result> = (
  subject: Subject,
  note?: ((result: Result) => void) | undefined,
) => Result | undefined;

type Test<Subject> = (subject: Subject) => boolean;

/** @param resultOf called once for each action. */
export function compileMatchTree<Subject, Action, Result>(
  tree: MatchTree<Action>,
  readers: InputReaders<Subject>,
  tools: MatchTools,
  resultOf: (action: Action) => Result,
): FindMatch<Subject, Result> {
  return new TreeCompiler(readers, tools, resultOf).compile(tree);
}

/** True for a subject that the predicate holds for. */
export function compilePredicate<Subject>(
  predicate: MatchPredicate,
  readers: InputReaders<Subject>,
  tools: MatchTools,
): Test<Subject> {
  switch (predicate.kind) {
    case 'input':
      return compileTest(predicate.input, predicate.test, readers, tools);
    case 'and': {
      const tests = predicate.of.map((each) => compilePredicate(each, readers, tools));
      return (subject) => tests.every((holds) => holds(subject));
    }
    case 'or': {
      const tests = predicate.of.map((each) => compilePredicate(each, readers, tools));
      return (subject) => tests.some((holds) => holds(subject));
    }
    case 'not': {
      const holds = compilePredicate(predicate.of, readers, tools);
      return (subject) => !holds(subject);
    }
  }
}

class TreeCompiler<Subject, Action, Result> {
  readonly #readers: InputReaders<Subject>;
  readonly #tools: MatchTools;
  readonly #resultOf: (action: Action) => Result;

  constructor(readers: InputReaders<Subject>, tools: MatchTools, resultOf: (action: Action) => Result) {
    this.#readers = readers;
    this.#tools = tools;
    this.#resultOf = resultOf;
  }

  compile(tree: MatchTree<Action>): FindMatch<Subject, Result> {
    const find = this.#compileEntries(tree);
    const otherwise = tree.otherwise === undefined ? null : this.#follow(tree.otherwise);
    if (otherwise === null) return find;
    return (subject, note) => find(subject, note) ?? otherwise(subject, note);
  }

  #compileEntries(tree: MatchTree<Action>): FindMatch<Subject, Result> {
    switch (tree.kind) {
      case 'list': {
        const entries = tree.entries.map(({ predicate, outcome }) => ({
          holds: compilePredicate(predicate, this.#readers, this.#tools),
          follow: this.#follow(outcome),
        }));
        return (subject, note) => {
          for (const { holds, follow } of entries) {
            const found = holds(subject) ? follow(subject, note) : undefined;
            if (found !== undefined) return found;
          }
          return undefined;
        };
      }
      case 'exact':
        return this.#compileExact(tree);
      case 'prefix':
        return this.#compilePrefix(tree);
      case 'ranges':
        return this.#compileRanges(tree);
      case 'domains':
        return this.#compileDomains(tree);
      case 'anything':
        return () => undefined;
    }
  }

  /** What an entry that has been found leads to. */
  #follow({ next, keepsMatching }: MatchOutcome<Action>): FindMatch<Subject, Result> {
    let find: FindMatch<Subject, Result>;
    if (next.kind === 'tree') find = this.compile(next.tree);
    else {
      const result = this.#resultOf(next.action);
      find = () => result;
    }
    if (!keepsMatching) return find;
    return (subject, note) => {
      const found = find(subject, note);
      if (found !== undefined && note !== undefined) note(found);
      return undefined;
    };
  }

  #compileExact({ input, entries }: MatchMap<Action>): FindMatch<Subject, Result> {
    const read = this.#readers.text(input);
    const byValue = new Map(entries.map(([value, outcome]) => [utf8Bytes(value), this.#follow(outcome)]));
    return (subject, note) => {
      const value = read(subject);
      return value === undefined ? undefined : byValue.get(value)?.(subject, note);
    };
  }

  #compilePrefix({ input, entries }: MatchMap<Action>): FindMatch<Subject, Result> {
    const read = this.#readers.text(input);
    const byPrefix = new Map(entries.map(([value, outcome]) => [utf8Bytes(value), this.#follow(outcome)]));
    const lengths = [...new Set([...byPrefix.keys()].map(({ length }) => length))].sort((a, b) => b - a);
    return (subject, note) => {
      const value = read(subject);
      if (value === undefined) return undefined;
      for (const length of lengths) {
        const found = length > value.length ? undefined : byPrefix.get(value.slice(0, length))?.(subject, note);
        if (found !== undefined) return found;
      }
      return undefined;
    };
  }

  #compileRanges({ input, entries }: MatchRanges<Action>): FindMatch<Subject, Result> {
    const read = this.#readers.text(input);
    const followed = entries.map(({ outcome, isExclusive }) => ({ follow: this.#follow(outcome), isExclusive }));
    const ranges = new AddressRanges(entries.map(({ ranges: own }) => own));
    return (subject, note) => {
      const address = read(subject);
      if (address === undefined) return undefined;
      let isFirst = true;
      for (const index of ranges.holding(address)) {
        const { follow, isExclusive } = followed[index]!;
        const found = isExclusive && !isFirst ? undefined : follow(subject, note);
        if (found !== undefined) return found;
        isFirst = false;
      }
      return undefined;
    };
  }

  #compileDomains({ input, entries }: MatchDomains<Action>): FindMatch<Subject, Result> {
    const read = this.#readers.text(input);
    const byDomain = new Map<string, FindMatch<Subject, Result>[]>();
    for (const { domains, outcome } of entries) {
      const follow = this.#follow(outcome);
      for (const domain of domains) {
        const followed = byDomain.get(domain) ?? [];
        byDomain.set(domain, followed);
        followed.push(follow);
      }
    }
    return (subject, note) => {
      const name = read(subject)?.toLowerCase();
      if (name === undefined) return undefined;
      for (const domain of domainsOf(name)) {
        for (const follow of byDomain.get(domain) ?? []) {
          const found = follow(subject, note);
          if (found !== undefined) return found;
        }
      }
      return undefined;
    };
  }
}

/** `a.b.c`, `*.b.c`, `*.c`, `*`. */
function* domainsOf(name: string): Generator<string> {
  yield name;
  for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) yield `*${name.slice(dot)}`;
  yield '*';
}

function compileTest<Subject>(
  input: MatchInput,
  test: InputTest,
  readers: InputReaders<Subject>,
  tools: MatchTools,
): Test<Subject> {
  if (test.kind === 'value') {
    // The configuration lets it stand beside nothing else.
    const { namespace, path } = input.kind === 'dynamic-metadata' ? input : { namespace: '', path: [] };
    const holds = compileMetadataMatch({ namespace, path, value: test.match, isInverted: test.isInverted });
    return (subject) => holds(readers.metadata(subject));
  }
  const read = readers.text(input);
  const passes = compileTextTest(test, tools);
  return (subject) => {
    const value = read(subject);
    return value !== undefined && passes(value);
  };
}

function compileTextTest(
  test: Exclude<InputTest, { kind: 'value' }>,
  { runtime, kernel }: MatchTools,
): (text: string) => boolean {
  switch (test.kind) {
    case 'text':
      return compileByteMatch(test.match);
    case 'ip': {
      const ranges = new AddressRanges([test.ranges]);
      return (text) => ranges.holding(text).length > 0;
    }
    case 'hash': {
      const { threshold, modulo } = test;
      const seed = BigInt(test.seed);
      return (text) => hashModulo(kernel!, text, seed, modulo) >= threshold;
    }
    case 'share': {
      const share = runtime.share(test.share);
      const seed = BigInt(test.seed);
      return (text) => isWithin(share.value, hashModulo(kernel!, text, seed, share.value.denominator));
    }
  }
}

function hashModulo(kernel: LbKernel, text: string, seed: bigint, modulo: number): number {
  return Number(kernel.xxHash64(Buffer.from(text, 'latin1'), seed) % BigInt(modulo));
}
