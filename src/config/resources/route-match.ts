// RouteMatch message → how the path is compared, and what must hold beside it. Older forms become newer ones here.

import type {
  ClientCertificateMatch,
  CookieMatch,
  FilterStateMatch,
  HeaderMatch,
  PathMatch,
  QueryParameterMatch,
  RouteConditions,
  StringMatch,
} from '../../snapshot/index.ts';
import { int64ToNumber } from '../proto/int64.ts';
import { isCredentialHeader } from '../proto/json-text/redaction.ts';
import { convertCidrRanges } from './cidr.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import type {
  CookieMatcher,
  FilterStateMatcher,
  HeaderMatcher,
  QueryParameterMatcher,
  RouteMatch,
  UriTemplateMatch,
} from './messages.ts';
import { convertMetadataMatch } from './metadata-match.ts';
import { convertPathTemplate, type PathTemplate } from './path-template.ts';
import { runtimeFractionOf, runtimePercentOf } from './runtime-settings.ts';
import { convertRegexMatcher, convertStringMatcher, regexMatch } from './string-match.ts';
import { valueOr } from './units.ts';

const TEMPLATE_MATCH = 'proxy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig';

/** What tells a gRPC request from others; application/grpc-web is none. */
const IS_GRPC: HeaderMatch = {
  name: 'content-type',
  test: { kind: 'regex', pattern: '(?s)application/grpc(\\+.*)?' },
  isInverted: false,
  treatMissingAsEmpty: false,
};

/** @returns undefined when the path's test is missing or not supported; a fault exists for it. */
export function convertPathMatch(match: RouteMatch, at: string, faults: FaultSink): PathMatch | undefined {
  const caseSensitive = valueOr(match.case_sensitive, true);
  switch (match.path_specifier) {
    case 'prefix':
      return { kind: 'prefix', value: match.prefix, caseSensitive };
    case 'path':
      return { kind: 'path', value: match.path, caseSensitive };
    case 'path_separated_prefix':
      return { kind: 'path-separated-prefix', value: match.path_separated_prefix, caseSensitive };
    case 'regex':
      return pathRegex(regexMatch(match.regex, `${at}.regex`, faults));
    case 'connect_matcher':
      return { kind: 'connect', value: '', caseSensitive };
    case 'safe_regex':
      return pathRegex(convertRegexMatcher(match.safe_regex, `${at}.safe_regex`, faults));
    case 'path_match_policy':
      return pathRegex(convertMatchTemplate(match.path_match_policy, `${at}.path_match_policy`, faults));
    default:
      return undefined;
  }
}

function pathRegex(match: { readonly pattern: string } | undefined): PathMatch | undefined {
  return match && { kind: 'regex', value: match.pattern, caseSensitive: true };
}

/** @returns undefined where the path is matched by no template, or by one that a fault tells of. */
export function convertMatchTemplate(
  policy: RouteMatch['path_match_policy'],
  at: string,
  faults: FaultSink,
): PathTemplate | undefined {
  const opened = openExtension(policy?.typed_config ?? null);
  // Any other type the support table has refused.
  if (opened?.typeName !== TEMPLATE_MATCH) return undefined;
  const { path_template } = opened.message as UriTemplateMatch;
  return convertPathTemplate(path_template, `${at}.typed_config.path_template`, faults);
}

/** @returns null when the path alone decides. */
export function convertConditions(match: RouteMatch, at: string, faults: FaultSink): RouteConditions | null {
  const headers = [...convertHeaderMatchers(match.headers, `${at}.headers`, faults), ...(match.grpc ? [IS_GRPC] : [])];
  const queryParameters = convertQueryMatchers(match.query_parameters, `${at}.query_parameters`, faults);
  const fraction = runtimeFractionOf(match.runtime_fraction) ?? (match.runtime && runtimePercentOf(match.runtime));
  const cookies = convertEach(match.cookies, `${at}.cookies`, faults, convertCookieMatcher);
  const metadata = convertEach(match.dynamic_metadata, `${at}.dynamic_metadata`, faults, convertMetadataMatch);
  const filterState = convertEach(match.filter_state, `${at}.filter_state`, faults, convertStateMatch);
  const certificate = convertCertificateMatch(match.tls_context);
  const lists = [headers, queryParameters, cookies, metadata, filterState];
  const isPlain = lists.every(({ length }) => length === 0);
  if (isPlain && certificate === undefined && fraction === null) return null;
  return {
    headers,
    queryParameters,
    ...(cookies.length === 0 ? {} : { cookies }),
    ...(certificate === undefined ? {} : { clientCertificate: certificate }),
    ...(metadata.length === 0 ? {} : { metadata }),
    ...(filterState.length === 0 ? {} : { filterState }),
    fraction,
  };
}

function convertCookieMatcher(message: CookieMatcher, at: string, faults: FaultSink): CookieMatch | undefined {
  // Cookies prove who somebody is: no fault may quote what they are held against.
  const test = message.string_match && convertStringMatcher(message.string_match, `${at}.string_match`, faults, true);
  return test ? { name: message.name, test, isInverted: message.invert_match } : undefined;
}

export function convertStateMatch(
  message: FilterStateMatcher,
  at: string,
  faults: FaultSink,
): FilterStateMatch | undefined {
  const { key, string_match, address_match } = message;
  if (address_match !== null) {
    const ranges = convertCidrRanges(address_match.ranges, `${at}.address_match.ranges`, faults);
    return { key, test: { kind: 'ranges', ranges } };
  }
  const test = string_match && convertStringMatcher(string_match, `${at}.string_match`, faults);
  return test ? { key, test } : undefined;
}

/** @returns undefined where no certificate matters. */
function convertCertificateMatch(message: RouteMatch['tls_context']): ClientCertificateMatch | undefined {
  const presented = message?.presented ?? null;
  const validated = message?.validated ?? null;
  if (presented === null && validated === null) return undefined;
  return {
    ...(presented === null ? {} : { isPresented: presented.value }),
    ...(validated === null ? {} : { isValidated: validated.value }),
  };
}

export function convertHeaderMatchers(
  messages: readonly HeaderMatcher[],
  at: string,
  faults: FaultSink,
): readonly HeaderMatch[] {
  return convertEach(messages, at, faults, convertHeaderMatcher);
}

export function convertQueryMatchers(
  messages: readonly QueryParameterMatcher[],
  at: string,
  faults: FaultSink,
): readonly QueryParameterMatch[] {
  return convertEach(messages, at, faults, convertQueryMatcher);
}

export function convertHeaderMatcher(message: HeaderMatcher, at: string, faults: FaultSink): HeaderMatch | undefined {
  const test = headerTest(message, at, faults);
  if (test === undefined) return undefined;
  return {
    name: message.name.toLowerCase(),
    test,
    isInverted: message.invert_match,
    treatMissingAsEmpty: message.treat_missing_header_as_empty,
  };
}

function headerTest(message: HeaderMatcher, at: string, faults: FaultSink): HeaderMatch['test'] | undefined {
  const isSecret = isCredentialHeader(message.name);
  switch (message.header_match_specifier) {
    case 'exact_match':
      return { kind: 'exact', value: message.exact_match, ignoresCase: false };
    case 'prefix_match':
      return { kind: 'prefix', value: message.prefix_match, ignoresCase: false };
    case 'suffix_match':
      return { kind: 'suffix', value: message.suffix_match, ignoresCase: false };
    case 'contains_match':
      return { kind: 'contains', value: message.contains_match, ignoresCase: false };
    case 'present_match':
      return { kind: 'present', isPresent: message.present_match };
    case 'regex_match':
      return regexMatch(message.regex_match, `${at}.regex_match`, faults, isSecret);
    case 'safe_regex_match':
      return convertRegexMatcher(message.safe_regex_match, `${at}.safe_regex_match`, faults, isSecret);
    case 'string_match':
      return message.string_match
        ? convertStringMatcher(message.string_match, `${at}.string_match`, faults, isSecret)
        : undefined;
    case 'range_match': {
      const { range_match: range } = message;
      return range === null
        ? undefined
        : { kind: 'range', start: int64ToNumber(range.start), end: int64ToNumber(range.end) };
    }
    default:
      return valueTest(message, at, faults, isSecret);
  }
}

function convertQueryMatcher(
  message: QueryParameterMatcher,
  at: string,
  faults: FaultSink,
): QueryParameterMatch | undefined {
  const test = queryTest(message, at, faults);
  return test && { name: message.name, test };
}

function queryTest(
  message: QueryParameterMatcher,
  at: string,
  faults: FaultSink,
): QueryParameterMatch['test'] | undefined {
  if (message.query_parameter_match_specifier === 'present_match') {
    return { kind: 'present', isPresent: message.present_match };
  }
  if (message.string_match !== null) return convertStringMatcher(message.string_match, `${at}.string_match`, faults);
  return valueTest(message, at, faults);
}

/** The oldest form: a value, perhaps a regular expression, or else only the name. */
function valueTest(
  message: Pick<QueryParameterMatcher, 'value' | 'regex'>,
  at: string,
  faults: FaultSink,
  isSecret = false,
): StringMatch | { readonly kind: 'present'; readonly isPresent: boolean } | undefined {
  if (message.value === '') return { kind: 'present', isPresent: true };
  if (valueOr(message.regex, false)) return regexMatch(message.value, `${at}.value`, faults, isSecret);
  return { kind: 'exact', value: message.value, ignoresCase: false };
}

/** What cannot be converted has a fault, so that the configuration is refused as a whole. */
function convertEach<Message, Result>(
  messages: readonly Message[],
  at: string,
  faults: FaultSink,
  convert: (message: Message, at: string, faults: FaultSink) => Result | undefined,
): readonly Result[] {
  const results: Result[] = [];
  for (const [index, message] of messages.entries()) {
    const result = convert(message, `${at}[${index}]`, faults);
    if (result !== undefined) results.push(result);
  }
  return results;
}
