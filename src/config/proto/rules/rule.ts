// The rule language of the (proxy.rule) option: terms that must all hold, separated by commas.
//
//   required                    the message or wrapper must be present
//   non-empty                   at least one character, byte
//   > >= < <= NUMBER[ms|s]      bounds of a number, or with a unit of a duration
//   bytes|length|items OP N     bounds of a size: UTF-8 bytes, characters, list entries
//   known, not N                a declared enum value, and not that one
//   header-name, header-value   no CR, LF or NUL; with strict- in front also the characters of RFC 9110
//   path-prefix                 a path that ends in no slash and holds neither ? nor #
//   in 'a' 'b'                  one of the strings
//   prefix 'a', suffix 'a'      how the string starts and ends
//   or-empty                    the other terms do not apply to the empty string; and nothing within a message is
//                               looked at whose fields have all their default values
//   true                        a switch that can only be turned on
//   unique                      no two equal list entries
//
// `each` in front of a term makes it speak of the entries of a list, `keys` of the keys of a map.
// Rules come from proto/ only: a mistake in one is a bug and throws.

export type RuleTarget = 'value' | 'each' | 'keys';
export type Comparison = '<' | '<=' | '>' | '>=';
export type Measure = 'value' | 'bytes' | 'length' | 'items';

export type RuleTerm =
  | { readonly kind: 'required' | 'non-empty' | 'known' | 'path-prefix' | 'or-empty' | 'true' | 'unique' }
  | { readonly kind: 'not'; readonly value: number }
  | { readonly kind: 'header'; readonly part: 'name' | 'value'; readonly isStrict: boolean }
  | { readonly kind: 'in'; readonly values: readonly string[] }
  | { readonly kind: 'prefix' | 'suffix'; readonly text: string }
  | Bound;

export interface Bound {
  readonly kind: 'bound';
  readonly measure: Measure;
  readonly comparison: Comparison;
  /** A count, a number, or seconds when the rule gives a unit. */
  readonly limit: number;
  /** As faults show it, with its unit. */
  readonly limitText: string;
}

/** The terms of a rule by what they speak of. */
export type Rule = Readonly<Record<RuleTarget, readonly RuleTerm[]>>;

const SECONDS_PER_UNIT: Readonly<Record<string, number>> = { ms: 0.001, s: 1 };
const TERM = /\s*((?:[^,']|'[^']*')+?)\s*(?:,|$)/y;
const BOUND = /^(?:(bytes|length|items) )?(<=?|>=?) (-?[\d.]+)(ms|s)?$/;
const HEADER = /^(strict-)?header-(name|value)$/;
const LITERAL = /'([^']*)'/g;

export function parseRule(text: string): Rule {
  const rule: Record<RuleTarget, RuleTerm[]> = { value: [], each: [], keys: [] };
  for (const term of splitTerms(text)) {
    const target = term.startsWith('each ') ? 'each' : term.startsWith('keys ') ? 'keys' : 'value';
    rule[target].push(parseTerm(target === 'value' ? term : term.slice(target.length + 1)));
  }
  return rule;
}

function splitTerms(text: string): string[] {
  if (text === 'none') return [];
  const terms: string[] = [];
  TERM.lastIndex = 0;
  while (TERM.lastIndex < text.length) {
    const match = TERM.exec(text);
    if (match === null) throw new Error(`cannot read the rule "${text}"`);
    terms.push(match[1]!);
  }
  return terms;
}

function parseTerm(term: string): RuleTerm {
  const [word] = term.split(' ', 1);
  switch (word) {
    case 'required':
    case 'non-empty':
    case 'known':
    case 'path-prefix':
    case 'or-empty':
    case 'true':
    case 'unique':
      return { kind: word };
    case 'not':
      return { kind: 'not', value: Number(term.slice(word.length)) };
    case 'in':
      return { kind: 'in', values: literals(term) };
    case 'prefix':
    case 'suffix':
      return { kind: word, text: literals(term)[0]! };
    default:
      return parseHeader(term) ?? parseBound(term);
  }
}

function literals(term: string): string[] {
  return Array.from(term.matchAll(LITERAL), ([, literal]) => literal!);
}

function parseHeader(term: string): RuleTerm | undefined {
  const match = HEADER.exec(term);
  return match === null
    ? undefined
    : { kind: 'header', part: match[2] as 'name' | 'value', isStrict: match[1] !== undefined };
}

function parseBound(term: string): Bound {
  const match = BOUND.exec(term);
  if (match === null) throw new Error(`unknown rule term "${term}"`);
  const [, measure, comparison, digits, unit] = match;
  return {
    kind: 'bound',
    measure: (measure as Measure | undefined) ?? 'value',
    comparison: comparison as Comparison,
    limit: Number(digits) * SECONDS_PER_UNIT[unit ?? 's']!,
    limitText: digits! + (unit ?? ''),
  };
}
