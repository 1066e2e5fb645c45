// Whether an exchange is one that a tap wants, as far as it has been seen: each condition is settled by the part of the exchange
// that it looks at, and those around it as soon as they can be. Worker thread, one for each exchange.

import { compileHeaderTest } from '../../../data-plane/index.ts';
import type { TapMatch, TapMessage, TappedFields } from '../../../snapshot/index.ts';

/** What has happened; bodies come in as many parts as they like. */
export interface TapEvent {
  readonly of: TapMessage;
  readonly part: 'headers' | 'body' | 'trailers';
  /** Of headers and trailers. */
  readonly fields: TappedFields;
  /** Of a body: borrowed. */
  readonly bytes: Buffer;
}

/** As things stand; an exchange that ends leaves it at that. */
interface Verdict {
  readonly matches: boolean;
  readonly isSettled: boolean;
}

interface Node {
  readonly verdict: Verdict;
  see(event: TapEvent): void;
}

const MATCHED: Verdict = { matches: true, isSettled: true };
const MISSED: Verdict = { matches: false, isSettled: true };
const UNSEEN: Verdict = { matches: false, isSettled: false };

export class TapMatcher {
  readonly #root: Node;

  constructor(match: TapMatch) {
    this.#root = nodeOf(match);
  }

  see(event: TapEvent): void {
    if (!this.#root.verdict.isSettled) this.#root.see(event);
  }

  /** It matches if nothing more comes. */
  get matches(): boolean {
    return this.#root.verdict.matches;
  }

  /** Nothing that may come changes it. */
  get isSettled(): boolean {
    return this.#root.verdict.isSettled;
  }
}

function nodeOf(match: TapMatch): Node {
  switch (match.kind) {
    case 'any':
      return { verdict: MATCHED, see() {} };
    case 'not':
      return new NotNode(nodeOf(match.rule));
    case 'and':
    case 'or':
      return new SetNode(match.rules.map(nodeOf), match.kind === 'or');
    case 'headers':
    case 'trailers':
      return new FieldsNode(match);
    case 'body':
      return new BodyNode(match);
  }
}

class NotNode implements Node {
  readonly #rule: Node;

  constructor(rule: Node) {
    this.#rule = rule;
  }

  get verdict(): Verdict {
    const { matches, isSettled } = this.#rule.verdict;
    return { matches: !matches, isSettled };
  }

  see(event: TapEvent): void {
    this.#rule.see(event);
  }
}

/** One rule that is as it should be settles `or`, one that is not settles `and`. */
class SetNode implements Node {
  readonly #rules: readonly Node[];
  readonly #deciding: boolean;

  constructor(rules: readonly Node[], isOr: boolean) {
    this.#rules = rules;
    this.#deciding = isOr;
  }

  get verdict(): Verdict {
    const deciding = this.#rules.filter(({ verdict }) => verdict.matches === this.#deciding);
    const matches = deciding.length > 0 ? this.#deciding : !this.#deciding;
    const isSettled =
      deciding.some(({ verdict }) => verdict.isSettled) || this.#rules.every(({ verdict }) => verdict.isSettled);
    return { matches, isSettled };
  }

  see(event: TapEvent): void {
    for (const rule of this.#rules) if (!rule.verdict.isSettled) rule.see(event);
  }
}

class FieldsNode implements Node {
  verdict = UNSEEN;
  readonly #of: TapMessage;
  readonly #part: TapEvent['part'];
  readonly #passes: (fields: TappedFields) => boolean;

  constructor({ of, kind, headers }: Extract<TapMatch, { headers: unknown }>) {
    this.#of = of;
    this.#part = kind;
    const tests = headers.map((header) => ({ name: header.name, test: compileHeaderTest(header) }));
    this.#passes = (fields) => tests.every(({ name, test }) => test(joinedValue(fields, name)));
  }

  see({ of, part, fields }: TapEvent): void {
    if (of === this.#of && part === this.#part) this.verdict = this.#passes(fields) ? MATCHED : MISSED;
  }
}

/** All patterns have to be there, wherever, also over the ends of parts. */
class BodyNode implements Node {
  verdict = UNSEEN;
  readonly #of: TapMessage;
  readonly #limitBytes: number;
  #missing: readonly Buffer[];
  /** The end of what has been looked through, as long as a pattern can begin in it. */
  #tail: Buffer = NO_BYTES;
  #seenBytes = 0;

  constructor({ of, limitBytes, patterns }: Extract<TapMatch, { patterns: unknown }>) {
    this.#of = of;
    this.#limitBytes = limitBytes === 0 ? Number.POSITIVE_INFINITY : limitBytes;
    this.#missing = patterns.map((pattern) => Buffer.from(pattern));
  }

  see({ of, part, bytes }: TapEvent): void {
    if (of !== this.#of || part === 'headers') return;
    if (part === 'trailers') {
      this.verdict = MISSED;
      return;
    }
    const looked = bytes.subarray(0, this.#limitBytes - this.#seenBytes);
    this.#seenBytes += looked.length;
    const text = Buffer.concat([this.#tail, looked]);
    this.#missing = this.#missing.filter((pattern) => !text.includes(pattern));
    const longest = this.#missing.reduce((length, pattern) => Math.max(length, pattern.length), 1);
    this.#tail = text.subarray(Math.max(0, text.length - longest + 1));
    if (this.#missing.length === 0) this.verdict = MATCHED;
    else if (this.#seenBytes >= this.#limitBytes) this.verdict = MISSED;
  }
}

const NO_BYTES = Buffer.alloc(0);

function joinedValue(fields: TappedFields, name: string): string | undefined {
  const values = fields.filter(([each]) => each === name).map(([, value]) => value);
  return values.length === 0 ? undefined : values.join(',');
}
