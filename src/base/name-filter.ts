// A regular expression that picks names from lists of a hundred thousand and more. A call of RE2 for each name would cost
// several microseconds; one for a whole batch costs a tenth of that. The names are joined as lines, of which RE2 gives those
// back that match, where that is the same as asking for each: for expressions in which nothing can match a line break. From
// the same expressions comes a text that every match has in it, which spares looking at most names at all.

import { errorMessage } from './errors.ts';
import { re2 } from './re2.ts';
import { literalPrefix } from './regex.ts';

export interface NameFilter {
  /** What every name that passes begins with; often empty. */
  readonly prefix: string;
  /** What every name that passes has in it somewhere; often none. */
  readonly parts: readonly string[];
  /** Places of the names that pass, ascending. */
  pick(names: readonly string[]): readonly number[];
}

export type CompiledFilter =
  | { readonly filter: NameFilter; readonly error?: undefined }
  | { readonly error: string; readonly filter?: undefined };

/** @param pattern of RE2, found anywhere in a name. */
export function compileNameFilter(pattern: string): CompiledFilter {
  try {
    const RE2 = re2();
    const regex = new RE2(pattern);
    const pieces = linePieces(pattern);
    if (pieces === undefined) return { filter: { prefix: '', parts: [], pick: (names) => pickEach(regex, names) } };
    const parts = literalsOf(pieces);
    const lines = new RE2(`^.*(?:${pattern}).*$`, 'gm');
    const pick = (names: readonly string[]): readonly number[] => {
      const text = names.join('\n');
      if (!parts.every((part) => text.includes(part))) return [];
      return placesOf(lines.match(text) ?? [], names) ?? pickEach(regex, names);
    };
    return { filter: { prefix: literalPrefix(pattern), parts, pick } };
  } catch (error) {
    return { error: errorMessage(error) };
  }
}

function pickEach(regex: { test(text: string): boolean }, names: readonly string[]): number[] {
  const places: number[] = [];
  for (let at = 0; at < names.length; at++) if (regex.test(names[at]!)) places.push(at);
  return places;
}

/** Undefined when a line is no name: then some name has a line break in it. */
function placesOf(lines: readonly string[], names: readonly string[]): number[] | undefined {
  const places: number[] = [];
  let at = 0;
  for (const line of lines) {
    while (at < names.length && names[at] !== line) at += 1;
    if (at === names.length) return undefined;
    places.push(at);
    at += 1;
  }
  return places;
}

type Piece = 'open' | 'close' | 'or' | 'quantifier' | 'other' | { readonly literal: string };

/** What such expressions consist of. Neither may match a control character, nor may an option change what others mean. */
const PIECES: readonly (readonly [RegExp, Piece | 'literal'])[] = [
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it must not take
  [/\[(?!\^)(?:[^\\[\]\x00-\x1f]|\\[dw]|\\[^A-Za-z0-9\s])+\]/y, 'other'],
  [/\((?:\?:|(?!\?))/y, 'open'],
  [/\)/y, 'close'],
  [/\|/y, 'or'],
  [/(?:[?*+]|\{\d+(?:,\d*)?\})\??/y, 'quantifier'],
  [/[.^$]|\\[dwb]/y, 'other'],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it must not take
  [/\\[^A-Za-z0-9\s]|[^\\[\](){}?*+|^$.\x00-\x1f]/y, 'literal'],
];

/** Undefined for an expression that is not made of those pieces alone. */
function linePieces(pattern: string): Piece[] | undefined {
  const pieces: Piece[] = [];
  for (let at = 0; at < pattern.length; ) {
    const before = at;
    for (const [regex, kind] of PIECES) {
      regex.lastIndex = at;
      const found = regex.exec(pattern);
      if (found === null) continue;
      pieces.push(kind === 'literal' ? { literal: found[0].at(-1)! } : kind);
      at = regex.lastIndex;
      break;
    }
    if (at === before) return undefined;
  }
  return pieces;
}

/** More than these would cost more than they spare. */
const MOST_PARTS = 4;

/** The longest of those outside of groups, and only where there is no choice between alternatives. */
function literalsOf(pieces: readonly Piece[]): readonly string[] {
  const literals = new Set<string>();
  let literal = '';
  let depth = 0;
  for (const [at, piece] of pieces.entries()) {
    if (piece === 'or' && depth === 0) return [];
    if (piece === 'open') depth += 1;
    if (piece === 'close') depth -= 1;
    const isPlain = typeof piece === 'object' && depth === 0 && pieces[at + 1] !== 'quantifier';
    if (isPlain) literal += piece.literal;
    if (isPlain && at + 1 < pieces.length) continue;
    if (literal !== '') literals.add(literal);
    literal = '';
  }
  return [...literals].sort((a, b) => b.length - a.length).slice(0, MOST_PARTS);
}
