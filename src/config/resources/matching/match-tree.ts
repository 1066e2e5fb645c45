// Matcher messages → decision trees. What may be looked at, and what actions mean, says whoever has the tree; all else is the
// same everywhere.

import type { MatchInput, MatchOutcome, MatchPredicate, MatchTree } from '../../../snapshot/index.ts';
import type { MessageTypes } from '../../proto/generated/messages.ts';
import { quote } from '../../source/node.ts';
import { convertCidrRanges } from '../cidr.ts';
import type { Conversion } from '../conversion.ts';
import { type OpenedExtension, openExtension } from '../extension.ts';
import { convertInput } from './match-inputs.ts';
import { convertCustomTest, convertTextTest } from './match-tests.ts';

export const IP_MATCHER = 'xds.type.matcher.v3.IPMatcher';
export const SERVER_NAME_MATCHER = 'xds.type.matcher.v3.ServerNameMatcher';

export type MatcherMessage = MessageTypes['xds.type.matcher.v3.Matcher'];
type OnMatch = MessageTypes['xds.type.matcher.v3.Matcher.OnMatch'];
type Predicate = MessageTypes['xds.type.matcher.v3.Matcher.MatcherList.Predicate'];
type TreeMessage = MessageTypes['xds.type.matcher.v3.Matcher.MatcherTree'];
type IpMatcher = MessageTypes[typeof IP_MATCHER];
type ServerNameMatcher = MessageTypes[typeof SERVER_NAME_MATCHER];

/** In place of what has a fault. */
const NEVER: MatchPredicate = { kind: 'or', of: [] };
const DOMAIN = /^(?:\*|(?:\*\.)?[^*]+)$/;

/** Where a tree stands. */
export interface TreePlace<Action> {
  /** Kinds of inputs that there are. */
  readonly inputs: ReadonlySet<MatchInput['kind']>;
  /** Why another kind is none; that there it is only of requests when absent. */
  readonly otherInputs?: string;
  /** @param at path of the extension. @returns undefined for what is no action here; reports it. */
  convertAction(action: OpenedExtension, at: string): Action | undefined;
}

/** @returns a tree that may lack what has faults. */
export function convertMatchTree<Action>(
  message: MatcherMessage,
  at: string,
  place: TreePlace<Action>,
  conversion: Conversion,
): MatchTree<Action> {
  return new TreeConversion(place, conversion).tree(message, at);
}

class TreeConversion<Action> {
  readonly #place: TreePlace<Action>;
  readonly #conversion: Conversion;

  constructor(place: TreePlace<Action>, conversion: Conversion) {
    this.#place = place;
    this.#conversion = conversion;
  }

  tree(message: MatcherMessage, at: string): MatchTree<Action> {
    const last = this.#outcome(message.on_no_match, `${at}.on_no_match`);
    const otherwise = last === undefined ? {} : { otherwise: last };
    if (message.matcher_list !== null) {
      const entries = message.matcher_list.matchers.flatMap(({ predicate, on_match }, index) => {
        const here = `${at}.matcher_list.matchers[${index}]`;
        const outcome = this.#outcome(on_match, `${here}.on_match`);
        if (predicate === null || outcome === undefined) return [];
        return [{ predicate: this.#predicate(predicate, `${here}.predicate`), outcome }];
      });
      return { kind: 'list', entries, ...otherwise };
    }
    if (message.matcher_tree !== null) {
      const tree = this.#matcherTree(message.matcher_tree, `${at}.matcher_tree`);
      return { ...tree, ...otherwise };
    }
    if (message.on_no_match === null)
      this.#conversion.faults.error(at, 'needs a matcher_list, a matcher_tree or an on_no_match');
    return { kind: 'anything', ...otherwise };
  }

  /** @returns undefined for none, and for what has a fault. */
  #outcome(message: OnMatch | null, at: string): MatchOutcome<Action> | undefined {
    if (message === null) return undefined;
    const { keep_matching: keepsMatching } = message;
    if (message.matcher !== null) {
      const tree = this.tree(message.matcher, `${at}.matcher`);
      return { next: { kind: 'tree', tree }, keepsMatching };
    }
    const opened = openExtension(message.action?.typed_config ?? null);
    // An unknown one has been reported.
    if (opened === undefined) return undefined;
    const action = this.#place.convertAction(opened, `${at}.action.typed_config`);
    return action === undefined ? undefined : { next: { kind: 'action', action }, keepsMatching };
  }

  #predicate(message: Predicate, at: string): MatchPredicate {
    switch (message.match_type) {
      case 'single_predicate':
        return this.#single(message.single_predicate!, `${at}.single_predicate`);
      case 'or_matcher':
      case 'and_matcher': {
        const { predicate } = message[message.match_type]!;
        const here = `${at}.${message.match_type}.predicate`;
        const of = predicate.map((each, index) => this.#predicate(each, `${here}[${index}]`));
        return { kind: message.match_type === 'or_matcher' ? 'or' : 'and', of };
      }
      case 'not_matcher':
        return { kind: 'not', of: this.#predicate(message.not_matcher!, `${at}.not_matcher`) };
      default:
        return NEVER;
    }
  }

  #single(
    message: MessageTypes['xds.type.matcher.v3.Matcher.MatcherList.Predicate.SinglePredicate'],
    at: string,
  ): MatchPredicate {
    const { faults } = this.#conversion;
    const input = this.#input(message.input, `${at}.input`);
    const test =
      message.value_match === null
        ? convertCustomTest(message.custom_match, input, `${at}.custom_match`, faults)
        : convertTextTest(message.value_match, input, `${at}.value_match`, faults);
    return input === undefined || test === undefined ? NEVER : { kind: 'input', input, test };
  }

  #input(message: TreeMessage['input'], at: string): MatchInput | undefined {
    const { inputs, otherInputs } = this.#place;
    return convertInput(message, at, inputs, this.#conversion, otherInputs);
  }

  #matcherTree(message: TreeMessage, at: string): MatchTree<Action> {
    const input = this.#input(message.input, `${at}.input`);
    if (input === undefined) return { kind: 'anything' };
    if (message.custom_match !== null) {
      const here = `${at}.custom_match.typed_config`;
      const opened = openExtension(message.custom_match.typed_config);
      if (opened?.typeName === IP_MATCHER) return this.#ranges(opened.message as IpMatcher, input, here);
      if (opened?.typeName === SERVER_NAME_MATCHER) {
        return this.#domains(opened.message as ServerNameMatcher, input, here);
      }
      return { kind: 'anything' };
    }
    const kind = message.exact_match_map === null ? 'prefix' : 'exact';
    const { map } = (message.exact_match_map ?? message.prefix_match_map)!;
    const entries = Object.entries(map).flatMap(([value, onMatch]) => {
      const outcome = this.#outcome(onMatch, `${at}.${kind}_match_map.map["${value}"]`);
      return outcome === undefined ? [] : [[value, outcome] as const];
    });
    if (Object.keys(map).length === 0)
      this.#conversion.faults.error(`${at}.${kind}_match_map.map`, 'must not be empty');
    return { kind, input, entries };
  }

  #ranges({ range_matchers }: IpMatcher, input: MatchInput, at: string): MatchTree<Action> {
    const entries = range_matchers.flatMap(({ ranges, on_match, exclusive: isExclusive }, index) => {
      const here = `${at}.range_matchers[${index}]`;
      const outcome = this.#outcome(on_match, `${here}.on_match`);
      const converted = convertCidrRanges(ranges, `${here}.ranges`, this.#conversion.faults);
      return outcome === undefined ? [] : [{ ranges: converted, outcome, isExclusive }];
    });
    return { kind: 'ranges', input, entries };
  }

  #domains({ domain_matchers }: ServerNameMatcher, input: MatchInput, at: string): MatchTree<Action> {
    const entries = domain_matchers.flatMap(({ domains, on_match }, index) => {
      const here = `${at}.domain_matchers[${index}]`;
      for (const [number, domain] of domains.entries()) {
        if (DOMAIN.test(domain)) continue;
        const what = `${quote(domain)} is neither a name nor "*.<name>" nor "*"`;
        this.#conversion.faults.error(`${here}.domains[${number}]`, what);
      }
      const outcome = this.#outcome(on_match, `${here}.on_match`);
      return outcome === undefined ? [] : [{ domains: domains.map((each) => each.toLowerCase()), outcome }];
    });
    return { kind: 'domains', input, entries };
  }
}
