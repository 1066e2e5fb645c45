// StringMatcher, RegexMatcher and RegexMatchAndSubstitute messages → the tests and rewrites of snapshots. Every regular
// expression is compiled here once, so that a worker never meets one that does not.

import { compileRegex, compileSubstitution } from '../../base/regex.ts';
import type { RegexSubstitution, StringMatch } from '../../snapshot/index.ts';
import { quote } from '../source/node.ts';
import type { FaultSink } from './fault-sink.ts';
import type { RegexMatchAndSubstitute, RegexMatcher, StringMatcher } from './messages.ts';

/** @returns undefined when nothing can be tested; a fault exists for it. */
export function convertStringMatcher(
  message: StringMatcher,
  at: string,
  faults: FaultSink,
  isSecret = false,
): StringMatch | undefined {
  const kind = message.match_pattern;
  switch (kind) {
    case 'exact':
    case 'prefix':
    case 'suffix':
    case 'contains':
      return { kind, value: message[kind], ignoresCase: message.ignore_case };
    case 'regex':
      return regexMatch(message.regex, `${at}.regex`, faults, isSecret);
    case 'safe_regex':
      return convertRegexMatcher(message.safe_regex, `${at}.safe_regex`, faults, isSecret);
    default:
      return undefined;
  }
}

export function convertRegexMatcher(
  message: RegexMatcher | null,
  at: string,
  faults: FaultSink,
  isSecret = false,
): (StringMatch & { readonly kind: 'regex' }) | undefined {
  return message === null ? undefined : regexMatch(message.regex, `${at}.regex`, faults, isSecret);
}

/** @param isSecret what it matches proves who somebody is, so that no fault may quote it. */
export function regexMatch(
  pattern: string,
  at: string,
  faults: FaultSink,
  isSecret = false,
): (StringMatch & { readonly kind: 'regex' }) | undefined {
  const { error } = compileRegex(pattern);
  if (error === undefined) return { kind: 'regex', pattern };
  faults.error(
    at,
    isSecret ? 'is not a regular expression' : `${quote(pattern)} is not a regular expression: ${error}`,
  );
  return undefined;
}

export function convertSubstitution(
  message: RegexMatchAndSubstitute,
  at: string,
  faults: FaultSink,
): RegexSubstitution | undefined {
  const match = convertRegexMatcher(message.pattern, `${at}.pattern`, faults);
  if (match === undefined) return undefined;
  const { error } = compileSubstitution(match.pattern, message.substitution);
  if (error === undefined) return { pattern: match.pattern, substitution: message.substitution };
  faults.error(`${at}.substitution`, `${quote(message.substitution)} cannot be filled in: ${error}`);
  return undefined;
}
