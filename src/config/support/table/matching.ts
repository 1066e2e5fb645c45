// Support rows of decision trees, wherever they stand, and of all that they look at and test by. What actions there are says
// the place of a tree.

import { MATCH_INPUT_TYPES } from '../../resources/matching/match-inputs.ts';
import { MATCH_TEST_TYPES } from '../../resources/matching/match-tests.ts';
import { IP_MATCHER, SERVER_NAME_MATCHER } from '../../resources/matching/match-tree.ts';
import {
  extensions,
  extensionsElseLeft,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
  supportedWhole,
  warned,
} from '../verdict.ts';

const MATCHER = 'xds.type.matcher.v3.Matcher';
const EXTENSION = 'xds.core.v3.TypedExtensionConfig';
const STRING = 'xds.type.matcher.v3.StringMatcher';
const REGEX = 'xds.type.matcher.v3.RegexMatcher';
const TESTS = 'proxy.extensions.matching.input_matchers';

/** @param actions message types of all actions, of all places. */
export function matchingSupport(actions: readonly string[]): SupportTable {
  return {
    [MATCHER]: {
      otherwise: rejected(),
      fields: { matcher_list: supported(), matcher_tree: supported(), on_no_match: supported() },
    },
    [`${MATCHER}.OnMatch`]: {
      otherwise: rejected(),
      fields: {
        matcher: supported(),
        action: supportedAs('matcher action'),
        keep_matching: supported('what it leads to decides nothing'),
      },
    },
    [`${MATCHER}.MatcherList`]: { otherwise: rejected(), fields: { matchers: supported() } },
    [`${MATCHER}.MatcherList.FieldMatcher`]: {
      otherwise: rejected(),
      fields: { predicate: supported(), on_match: supported() },
    },
    [`${MATCHER}.MatcherList.Predicate`]: {
      otherwise: rejected(),
      fields: {
        single_predicate: supported(),
        or_matcher: supported(),
        and_matcher: supported(),
        not_matcher: supported(),
      },
    },
    [`${MATCHER}.MatcherList.Predicate.PredicateList`]: { otherwise: rejected(), fields: { predicate: supported() } },
    [`${MATCHER}.MatcherList.Predicate.SinglePredicate`]: {
      otherwise: rejected(),
      fields: {
        input: supportedAs('matcher input'),
        value_match: supported(),
        custom_match: supportedAs('matcher test'),
      },
    },
    [`${MATCHER}.MatcherTree`]: {
      otherwise: rejected(),
      fields: {
        input: supportedAs('matcher input'),
        exact_match_map: supported(),
        prefix_match_map: supported('the longest prefix that leads to something'),
        custom_match: supportedAs('matcher tree'),
      },
    },
    [`${MATCHER}.MatcherTree.MatchMap`]: { otherwise: rejected(), fields: { map: supported() } },
    [`${EXTENSION} (matcher action)`]: extensionRow(
      extensionsElseLeft(actions, 'those of the place where the matcher stands'),
    ),
    [`${EXTENSION} (matcher input)`]: extensionRow(extensions(MATCH_INPUT_TYPES)),
    [`${EXTENSION} (matcher test)`]: extensionRow(extensions(MATCH_TEST_TYPES)),
    [`${EXTENSION} (matcher tree)`]: extensionRow(extensions([IP_MATCHER, SERVER_NAME_MATCHER])),
    [STRING]: {
      otherwise: rejected(),
      fields: {
        custom: rejected('use exact, prefix, suffix, contains or safe_regex'),
        exact: supported(),
        prefix: supported(),
        suffix: supported(),
        contains: supported(),
        safe_regex: supported(),
        ignore_case: supported('not with a regular expression'),
      },
    },
    [REGEX]: { otherwise: rejected(), fields: { google_re2: supportedWhole(), regex: supported() } },
    [IP_MATCHER]: { otherwise: rejected(), fields: { range_matchers: supported() } },
    [`${IP_MATCHER}.IPRangeMatcher`]: {
      otherwise: rejected(),
      fields: { ranges: supportedWhole(), on_match: supported(), exclusive: supported() },
    },
    [SERVER_NAME_MATCHER]: { otherwise: rejected(), fields: { domain_matchers: supported() } },
    [`${SERVER_NAME_MATCHER}.DomainMatcher`]: {
      otherwise: rejected(),
      fields: { domains: supported(), on_match: supported() },
    },
    ...Object.fromEntries(MATCH_INPUT_TYPES.map((type) => [type, { otherwise: supportedWhole(), fields: {} }])),
    [`${TESTS}.ip.v3.Ip`]: {
      otherwise: rejected(),
      fields: { cidr_ranges: supportedWhole(), stat_prefix: warned('whoever acts on it counts') },
    },
    [`${TESTS}.consistent_hashing.v3.ConsistentHashing`]: { otherwise: supported(), fields: {} },
    [`${TESTS}.runtime_fraction.v3.RuntimeFraction`]: { otherwise: supported(), fields: {} },
    [`${TESTS}.metadata.v3.Metadata`]: {
      otherwise: rejected(),
      fields: { value: supportedWhole(), invert: supported() },
    },
  };
}

function extensionRow(typed_config: ReturnType<typeof extensions>): SupportTable[string] {
  return { otherwise: rejected(), fields: { name: supported(), typed_config } };
}
