// Splits a stat's name into tags and the name that remains. Called once per stat; every extractor looks at
// the whole name, and what they cut out is removed together at the end.

import {
  DEFAULT_TAG_NAMES,
  DEFAULT_TAGS,
  RESPONSE_CODE_CLASS_TAG,
  RESPONSE_CODE_TAG,
  TAG_PREFIX,
} from '../../base/default-stat-tags.ts';
import { WeirError } from '../../base/errors.ts';
import { type NameTokens, nameTokens } from './name-tokens.ts';
import { type TagMatch, TagPattern } from './tag-pattern.ts';

export interface Tag {
  readonly name: string;
  readonly value: string;
}

export interface TaggedName {
  /** The name without the values of its tags. */
  readonly extractedName: string;
  readonly tags: readonly Tag[];
}

/**
 * An operator's own extractor. Its expression's first group is cut out; the second group is the value, or
 * the first when there is no second. Any engine with this method will do.
 */
export interface RegexTag {
  readonly name: string;
  readonly regex: { exec(text: string): RegExpExecArray | null };
}

export interface TagOptions {
  /** Extract all default tags, or only those of `defaultTags`. Default true. */
  readonly useAllDefaultTags?: boolean;
  /** Default tags by full name (`proxy.cluster_name`), where not all are wanted. */
  readonly defaultTags?: readonly string[];
  readonly regexTags?: readonly RegexTag[];
  /** Added to every stat; change no name. */
  readonly fixedTags?: readonly Tag[];
}

/** Tags of the names of one owner, made from those of another that differs in one word. */
export interface OwnerTags {
  /** What both have in common. */
  readonly words: string;
  /** @param rest what follows the owner's prefix. */
  produce(rest: string): TaggedName;
}

/** Stands in the place of an owner's word; no name holds it. */
const ANY_WORD = '\u0001';

type Extract = (name: string, tokens: NameTokens) => TagMatch | undefined;

interface Extractor {
  readonly tag: string;
  readonly extract: Extract;
}

export class TagProducer {
  readonly #fixedTags: readonly Tag[];
  /** Extractors that can only match names with this first token; one lookup spares trying the rest. */
  readonly #byFirstToken = new Map<string, Extractor[]>();
  readonly #forAll: Extractor[] = [];
  /** First tokens behind which not every second token is like any other. */
  readonly #peculiar = new Set<string>();
  /** Second tokens that some pattern names. */
  readonly #named = new Set<string>();
  readonly #hasRegexes: boolean;
  /**
   * By the first token, then by what follows the second: of a name with ANY_WORD in the second place. Undefined behind first
   * tokens where the second is no tag's value: such names are of a family each.
   */
  readonly #patterns = new Map<string, Map<string, TaggedName> | undefined>();

  /** @throws WeirError WEIR_STAT_TAG for a default tag that does not exist. */
  constructor(options: TagOptions = {}) {
    this.#fixedTags = options.fixedTags ?? [];
    const wanted = wantedTags(options);
    for (const { name, patterns, except, isBare } of DEFAULT_TAGS) {
      const tag = isBare ? name : TAG_PREFIX + name;
      if (wanted.has(tag)) this.#addPatterns(tag, patterns, except);
    }
    for (const { tag, extract } of NAME_END_EXTRACTORS) {
      if (wanted.has(tag)) this.#forAll.push({ tag, extract });
    }
    const { regexTags = [] } = options;
    this.#hasRegexes = regexTags.length > 0;
    for (const { name, regex } of regexTags) {
      this.#forAll.push({ tag: name, extract: (text) => regexMatch(regex, text) });
    }
  }

  produce(name: string): TaggedName {
    const tokens = nameTokens(name);
    const tags: Tag[] = [];
    const cuts: TagMatch[] = [];
    const seen = new Set<string>();
    for (const extractors of [this.#byFirstToken.get(tokens.tokens[0]!) ?? [], this.#forAll]) {
      for (const { tag, extract } of extractors) {
        if (seen.has(tag)) continue;
        const match = extract(name, tokens);
        if (!match) continue;
        seen.add(tag);
        tags.push({ name: tag, value: match.value });
        cuts.push(match);
      }
    }
    return { extractedName: removeCuts(name, cuts), tags: [...tags, ...this.#fixedTags] };
  }

  /**
   * A quicker way to the tags of all names of an owner such as `cluster.web.`, of whose kind there are many; undefined for one
   * that is of no such kind.
   */
  ofOwner(prefix: string): OwnerTags | undefined {
    if (this.#hasRegexes) return undefined;
    const [first = '', word = '', ...more] = nameTokens(prefix).tokens;
    const isOfTwo = word !== '' && more.length === 1 && more[0] === '';
    if (!isOfTwo || this.#peculiar.has(first) || this.#named.has(word)) return undefined;
    const known = this.#patternsOf(first);
    if (known === undefined) return undefined;
    const produce = (rest: string): TaggedName => {
      const pattern = known.get(rest) ?? this.produce(`${first}.${ANY_WORD}.${rest}`);
      if (known.size < MAX_PATTERNS) known.set(rest, pattern);
      return { extractedName: pattern.extractedName, tags: pattern.tags.map((tag) => withWord(tag, word)) };
    };
    return { words: first, produce };
  }

  #addPatterns(tag: string, patterns: readonly string[], except: string | undefined): void {
    for (const text of patterns) {
      const pattern = new TagPattern(text);
      this.#noteSecond(pattern, except);
      const extract: Extract = (name, tokens) => {
        const match = pattern.match(name, tokens);
        return match?.value === except ? undefined : match;
      };
      this.#listFor(pattern.firstLiteral).push({ tag, extract });
    }
  }

  #patternsOf(first: string): Map<string, TaggedName> | undefined {
    if (!this.#patterns.has(first)) {
      const { extractedName } = this.produce(`${first}.${ANY_WORD}.x`);
      this.#patterns.set(first, extractedName.includes(ANY_WORD) ? undefined : new Map());
    }
    return this.#patterns.get(first);
  }

  #noteSecond({ firstLiteral, second }: TagPattern, except: string | undefined): void {
    if (second.literal !== undefined) this.#named.add(second.literal);
    if (except !== undefined) this.#named.add(except);
    if (!second.takesAny && firstLiteral !== undefined) this.#peculiar.add(firstLiteral);
  }

  #listFor(firstLiteral: string | undefined): Extractor[] {
    if (firstLiteral === undefined) return this.#forAll;
    const list = this.#byFirstToken.get(firstLiteral) ?? [];
    this.#byFirstToken.set(firstLiteral, list);
    return list;
  }
}

/** More different names than all tables have; response codes come on top. */
const MAX_PATTERNS = 8192;

function withWord(tag: Tag, word: string): Tag {
  return tag.value === ANY_WORD ? { name: tag.name, value: word } : tag;
}

function wantedTags({ useAllDefaultTags = true, defaultTags = [], regexTags = [] }: TagOptions): Set<string> {
  for (const tag of defaultTags) {
    if (DEFAULT_TAG_NAMES.includes(tag)) continue;
    throw new WeirError('WEIR_STAT_TAG', `${tag} is no default tag and has neither a regex nor a fixed value`, {
      source: 'config',
    });
  }
  const wanted = new Set(useAllDefaultTags ? DEFAULT_TAG_NAMES : defaultTags);
  // An operator's own rule takes the place of the one that is built in.
  for (const { name } of regexTags) wanted.delete(name);
  return wanted;
}

/** `…_rq_503` loses `_503`; `…_rq_5xx` loses the digit alone. */
const NAME_END_EXTRACTORS: readonly Extractor[] = [
  { tag: TAG_PREFIX + RESPONSE_CODE_TAG, extract: (name) => responseCode(name) },
  { tag: TAG_PREFIX + RESPONSE_CODE_CLASS_TAG, extract: (name) => responseCodeClass(name) },
];

const CODE_LENGTH = 3;

function responseCode(name: string): TagMatch | undefined {
  const at = name.length - CODE_LENGTH;
  if (!name.startsWith('_rq_', at - 4)) return undefined;
  for (let place = at; place < name.length; place++) {
    if (!isDigit(name.charCodeAt(place))) return undefined;
  }
  return { value: name.slice(at), cutStart: at - 1, cutEnd: name.length };
}

function responseCodeClass(name: string): TagMatch | undefined {
  const at = name.length - CODE_LENGTH;
  if (!name.endsWith('xx') || !name.startsWith('_rq_', at - 4) || !isDigit(name.charCodeAt(at))) return undefined;
  return { value: name.charAt(at), cutStart: at, cutEnd: at + 1 };
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function regexMatch(regex: RegexTag['regex'], name: string): TagMatch | undefined {
  const match = regex.exec(name);
  const cut = match?.[1];
  if (!match || cut === undefined) return undefined;
  // Expressions with the `d` flag say where the group lies; others are searched for its text.
  const cutStart = match.indices?.[1]?.[0] ?? match.index + match[0].indexOf(cut);
  return { value: match[2] ?? cut, cutStart, cutEnd: cutStart + cut.length };
}

function removeCuts(name: string, cuts: TagMatch[]): string {
  if (cuts.length === 0) return name;
  cuts.sort((a, b) => a.cutStart - b.cutStart);
  let extracted = '';
  let from = 0;
  for (const { cutStart, cutEnd } of cuts) {
    if (cutStart > from) extracted += name.slice(from, cutStart);
    from = Math.max(from, cutEnd);
  }
  // The last cut wants the dot before it, which a cut just before may have taken: the next dot goes instead.
  if (from === name.length && extracted.endsWith('.')) return extracted.slice(0, -1);
  return extracted + name.slice(from);
}
