// Path templates such as `/users/{id}/*` → regular expressions, and rewrites by their names → substitutions.

import type { RegexSubstitution } from '../../snapshot/index.ts';
import { quote } from '../source/node.ts';
import type { FaultSink } from './fault-sink.ts';

/** RE2 counts groups up to 9; the reference allows as many names as this. */
const MAX_NAMES = 5;
const MAX_NAME_LENGTH = 16;

/** What a segment may hold (RFC 3986 section 3.3), of which templates keep `*` for themselves. */
const SEGMENT_CHARACTER = "[A-Za-z0-9._~!$&'()+,;:@=%-]";
const LITERAL = /^[A-Za-z0-9._~!$&'()+,;:@=%-]+$/;
const ONE_SEGMENT = `${SEGMENT_CHARACTER}+`;
const ANY_SEGMENTS = `(?:${SEGMENT_CHARACTER}|/)*`;
const NAME = /^[A-Za-z][A-Za-z0-9_]*$/;
const SPECIAL = /[.$()+]/g;
/** A segment, whose names may hold slashes. */
const SEGMENT = /\/((?:[^/{}]|\{[^{}]*\})*)/y;
const OPERATOR = /\*\*|\*|\{([^{}=]*)(?:=([^{}]*))?\}/g;

export interface PathTemplate {
  /** Of the whole path, with one group for each name. */
  readonly pattern: string;
  readonly names: readonly string[];
}

/** @returns undefined for what is no template; a fault says why. */
export function convertPathTemplate(template: string, at: string, faults: FaultSink): PathTemplate | undefined {
  const reader = new TemplateReader();
  const pattern = reader.path(template);
  if (reader.error === undefined) return { pattern, names: reader.names };
  faults.error(at, `${quote(template)} is no path template: ${reader.error}`);
  return undefined;
}

/** @returns undefined for what cannot be filled in; a fault says why. */
export function convertTemplateRewrite(
  rewrite: string,
  template: PathTemplate,
  at: string,
  faults: FaultSink,
): RegexSubstitution | undefined {
  let error = rewrite.startsWith('/') ? undefined : 'it does not begin with a slash';
  const substitution = rewrite.replace(/\{([^{}]*)\}|[{}\\*?#\s]/g, (found, name: string | undefined) => {
    if (name === undefined) error ??= `it holds ${quote(found)}`;
    else if (!template.names.includes(name)) error ??= `the template has no ${quote(name)}`;
    return `\\${template.names.indexOf(name ?? '') + 1}`;
  });
  if (error === undefined) return { pattern: `^${template.pattern}$`, substitution };
  faults.error(at, `${quote(rewrite)} cannot be filled in: ${error}`);
  return undefined;
}

class TemplateReader {
  readonly names: string[] = [];
  error: string | undefined;
  #hasRest = false;

  path(template: string): string {
    let pattern = '';
    SEGMENT.lastIndex = 0;
    for (let at = 0; at < template.length; at = SEGMENT.lastIndex) {
      const found = SEGMENT.exec(template);
      if (found === null) {
        this.error ??= at === 0 ? 'it does not begin with a slash' : 'a brace has no partner';
        return '';
      }
      pattern += `/${this.#segment(found[1]!)}`;
    }
    if (template === '') this.error ??= 'it is empty';
    return pattern;
  }

  #segment(text: string): string {
    let pattern = '';
    let end = 0;
    let count = 0;
    for (const found of text.matchAll(OPERATOR)) {
      pattern += this.#literal(text.slice(end, found.index));
      end = found.index + found[0].length;
      count += 1;
      pattern += found[1] === undefined ? this.#operator(found[0]) : this.#named(found[1], found[2] ?? '*');
    }
    if (count > 1) this.error ??= `${quote(text)} has more than one operator`;
    return pattern + this.#literal(text.slice(end));
  }

  #named(name: string, value: string): string {
    if (!NAME.test(name) || name.length > MAX_NAME_LENGTH) {
      this.error ??= `${quote(name)} is no name of at most ${MAX_NAME_LENGTH} letters, digits and underscores`;
    }
    if (this.names.includes(name)) this.error ??= `${quote(name)} is there twice`;
    this.names.push(name);
    if (this.names.length > MAX_NAMES) this.error ??= `it has more than ${MAX_NAMES} names`;
    if (value === '') this.error ??= `${quote(name)} stands for nothing`;
    const parts = value.split('/').map((part) => {
      if (part === '*' || part === '**') return this.#operator(part);
      if (part === '') this.error ??= `${quote(value)} has an empty segment`;
      return this.#literal(part);
    });
    return `(${parts.join('/')})`;
  }

  #operator(text: string): string {
    if (this.#hasRest) this.error ??= 'an operator stands behind **, which takes all there is';
    if (text === '*') return ONE_SEGMENT;
    this.#hasRest = true;
    return ANY_SEGMENTS;
  }

  #literal(text: string): string {
    if (text !== '' && !LITERAL.test(text)) this.error ??= `${quote(text)} cannot stand in a path`;
    return text.replace(SPECIAL, '\\$&');
  }
}
