// Regular expressions that come from operators or clients. They run on RE2, whose time is linear in the input:
// no pattern can stop a thread. Look-around and back-references are not part of its syntax.

import { isBeyondAscii } from './byte-text.ts';
import { errorMessage } from './errors.ts';
import { re2 } from './re2.ts';

export interface Regex {
  /** True when the pattern matches anywhere in the text. */
  search(text: string): boolean;
  /** True when the pattern matches the whole text. */
  matches(text: string): boolean;
  /** The same for byte text, which the pattern takes for UTF-8: a byte that is part of no character matches nothing. */
  matchesBytes(text: string): boolean;
  /** The first match with its groups; null when the pattern matches nowhere. */
  exec(text: string): RegExpExecArray | null;
}

export type CompiledRegex =
  | { readonly regex: Regex; readonly error?: undefined }
  | { readonly regex?: undefined; readonly error: string };

/** @returns the byte text with every match replaced. */
export type Substitute = (text: string) => string;

export type CompiledSubstitution =
  | { readonly substitute: Substitute; readonly error?: undefined }
  | { readonly substitute?: undefined; readonly error: string };

export function compileRegex(pattern: string): CompiledRegex {
  try {
    const RE2 = re2();
    const anywhere = new RE2(pattern);
    let whole: typeof anywhere | undefined;
    const matches = (text: string | Buffer): boolean => {
      whole ??= new RE2(`^(?:${pattern})$`);
      return whole.test(text);
    };
    return {
      regex: {
        search: (text) => anywhere.test(text),
        matches,
        matchesBytes: (text) => matches(isBeyondAscii(text) ? Buffer.from(text, 'latin1') : text),
        exec: (text) => anywhere.exec(text),
      },
    };
  } catch (error) {
    return { error: errorMessage(error) };
  }
}

/** What every text begins with in which the pattern can be found, as far as that is plain to see; often nothing. */
export function literalPrefix(pattern: string): string {
  if (!pattern.startsWith('^') || pattern.includes('|')) return '';
  let prefix = '';
  const literal = /(?:[A-Za-z0-9_:-]|\\[.:-])(?![?*{])/y;
  for (literal.lastIndex = 1; ; ) {
    const found = literal.exec(pattern);
    if (found === null) return prefix;
    prefix += found[0].at(-1);
  }
}

/** Of byte text. @param template RE2's own notation: `\0` for the whole match, `\1` to `\9` for groups, `\\` for a backslash. */
export function compileSubstitution(pattern: string, template: string): CompiledSubstitution {
  try {
    const RE2 = re2();
    const regex = new RE2(pattern, 'g');
    // Matches the empty text by its last branch; the result has one entry more than there are groups.
    const groupCount = new RE2(`${pattern}|`).exec('')!.length - 1;
    const translated = translate(template, groupCount);
    if (translated.error !== undefined) return translated;
    const isBytes = isBeyondAscii(translated.text);
    const replacedBytes = (text: string): string =>
      regex.replace(Buffer.from(text, 'latin1'), translated.text).toString('latin1');
    return {
      substitute: (text) =>
        isBytes || isBeyondAscii(text) ? replacedBytes(text) : regex.replace(text, translated.text),
    };
  } catch (error) {
    return { error: errorMessage(error) };
  }
}

/** RE2's notation of a replacement in that of String.replace. */
function translate(template: string, groupCount: number): { text: string; error?: undefined } | { error: string } {
  let error: string | undefined;
  const text = template.replace(/\\([\s\S]?)|\$/g, (found, escaped: string | undefined) => {
    if (found === '$') return '$$';
    if (escaped === '\\') return '\\';
    if (escaped === '0') return '$&';
    if (!/^[1-9]$/.test(escaped ?? '')) error ??= `'\\' must be followed by a digit or '\\'`;
    else if (Number(escaped) > groupCount) error ??= `there is no group ${escaped} in the pattern`;
    // Two digits: what follows in the template must not be taken for a part of the number.
    return `$0${escaped}`;
  });
  return error === undefined ? { text } : { error };
}
