// Where a tag's value stands in a stat's name, as a pattern over its tokens:
//
//   literal     that token
//   *           any one token
//   $           any one token: the value; it is cut out with one adjoining dot
//   $$          one or more tokens: the value
//   text_$      a token that begins so; the value is the rest, which is a number
//   text=$      a token that begins so; the value is the rest, and the whole token is cut out
//   **          the rest of the name, at least one token; only as the last

import type { NameTokens } from './name-tokens.ts';

/** A tag's value and the stretch of the name that it takes with it. */
export interface TagMatch {
  readonly value: string;
  readonly cutStart: number;
  readonly cutEnd: number;
}

type Step =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'value' }
  | { readonly kind: 'values' }
  | { readonly kind: 'number'; readonly prefix: string }
  | { readonly kind: 'labelled'; readonly prefix: string };

export class TagPattern {
  readonly #steps: readonly Step[];
  readonly #hasRest: boolean;
  /** Place of the step that captures the value. */
  readonly #valueAt: number;
  /** Tokens that must be there at least. */
  readonly #leastTokens: number;

  constructor(pattern: string) {
    const parts = pattern.split('.');
    this.#hasRest = parts.at(-1) === '**';
    this.#steps = (this.#hasRest ? parts.slice(0, -1) : parts).map(parseStep);
    this.#valueAt = this.#steps.findIndex((step) => step.kind !== 'literal' && step.kind !== 'any');
    this.#leastTokens = parts.length;
  }

  /** The first token when it is a literal: patterns are looked up by it. */
  get firstLiteral(): string | undefined {
    const first = this.#steps[0]!;
    return first.kind === 'literal' ? first.text : undefined;
  }

  /** Whether any token fits in the second place, but for the one that is named there, if any. */
  get second(): { readonly takesAny: boolean; readonly literal: string | undefined } {
    const step = this.#steps[1];
    const literal = step?.kind === 'literal' ? step.text : undefined;
    return { takesAny: step?.kind !== 'number' && step?.kind !== 'labelled', literal };
  }

  match(name: string, { tokens, starts }: NameTokens): TagMatch | undefined {
    const spare = tokens.length - this.#leastTokens;
    if (spare < 0) return undefined;
    // Only `$$` and a rest can take more than one token each, and no pattern has both.
    const captured = this.#steps[this.#valueAt]!.kind === 'values' ? 1 + spare : 1;
    if (spare > 0 && captured === 1 && !this.#hasRest) return undefined;
    for (let at = 0; at < this.#steps.length; at++) {
      const token = at > this.#valueAt ? at + captured - 1 : at;
      if (!accepts(this.#steps[at]!, tokens[token]!)) return undefined;
    }
    const last = this.#valueAt + captured - 1;
    return this.#capture(name, starts[this.#valueAt]!, starts[last]! + tokens[last]!.length);
  }

  #capture(name: string, start: number, end: number): TagMatch {
    const step = this.#steps[this.#valueAt]!;
    const hasNext = end < name.length;
    if (step.kind === 'number') {
      const valueStart = start + step.prefix.length;
      return { value: name.slice(valueStart, end), cutStart: valueStart, cutEnd: hasNext ? end + 1 : end };
    }
    const valueStart = step.kind === 'labelled' ? start + step.prefix.length : start;
    const value = name.slice(valueStart, end);
    if (hasNext) return { value, cutStart: start, cutEnd: end + 1 };
    return { value, cutStart: Math.max(0, start - 1), cutEnd: end };
  }
}

function parseStep(part: string): Step {
  if (part === '*') return { kind: 'any' };
  if (part === '$') return { kind: 'value' };
  if (part === '$$') return { kind: 'values' };
  if (part.endsWith('_$')) return { kind: 'number', prefix: part.slice(0, -1) };
  if (part.endsWith('=$')) return { kind: 'labelled', prefix: part.slice(0, -1) };
  return { kind: 'literal', text: part };
}

function accepts(step: Step, token: string): boolean {
  switch (step.kind) {
    case 'literal':
      return token === step.text;
    case 'any':
      return true;
    case 'value':
    case 'values':
      return token.length > 0;
    case 'number':
      return token.startsWith(step.prefix) && /^\d+$/.test(token.slice(step.prefix.length));
    case 'labelled':
      return token.startsWith(step.prefix) && token.length > step.prefix.length;
  }
}
