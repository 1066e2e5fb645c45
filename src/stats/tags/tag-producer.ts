// Splits a stat's name into tags and the name that remains. Called once per stat; every extractor looks at
// the whole name, and what they cut out is removed together at the end.

import { WeirError } from '../../base/errors.ts';
import { DEFAULT_TAGS, RESPONSE_CODE_CLASS_TAG, RESPONSE_CODE_TAG, TAG_PREFIX } from './default-tags.ts';
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

type Extract = (name: string, tokens: NameTokens) => TagMatch | undefined;

interface Extractor {
  readonly tag: string;
  readonly extract: Extract;
}

/** Names of all default tags with their prefix, for checking configuration. */
export const DEFAULT_TAG_NAMES: readonly string[] = [
  ...DEFAULT_TAGS.map((tag) => (tag.isBare ? tag.name : TAG_PREFIX + tag.name)),
  TAG_PREFIX + RESPONSE_CODE_TAG,
  TAG_PREFIX + RESPONSE_CODE_CLASS_TAG,
];

export class TagProducer {
  readonly #fixedTags: readonly Tag[];
  /** Extractors that can only match names with this first token; one lookup spares trying the rest. */
  readonly #byFirstToken = new Map<string, Extractor[]>();
  readonly #forAll: Extractor[] = [];

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
    for (const { name, regex } of options.regexTags ?? []) {
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

  #addPatterns(tag: string, patterns: readonly string[], except: string | undefined): void {
    for (const text of patterns) {
      const pattern = new TagPattern(text);
      const extract: Extract = (name, tokens) => {
        const match = pattern.match(name, tokens);
        return match?.value === except ? undefined : match;
      };
      this.#listFor(pattern.firstLiteral).push({ tag, extract });
    }
  }

  #listFor(firstLiteral: string | undefined): Extractor[] {
    if (firstLiteral === undefined) return this.#forAll;
    const list = this.#byFirstToken.get(firstLiteral) ?? [];
    this.#byFirstToken.set(firstLiteral, list);
    return list;
  }
}

function wantedTags({ useAllDefaultTags = true, defaultTags = [] }: TagOptions): Set<string> {
  for (const tag of defaultTags) {
    if (DEFAULT_TAG_NAMES.includes(tag)) continue;
    throw new WeirError('WEIR_STAT_TAG', `${tag} is no default tag and has neither a regex nor a fixed value`, {
      source: 'config',
    });
  }
  return new Set(useAllDefaultTags ? DEFAULT_TAG_NAMES : defaultTags);
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
