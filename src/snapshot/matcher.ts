// Decision trees over what is known of a request or connection, as routes and others choose by them: what is looked at, how
// it is tested, and what follows.

import type { ValueMatch } from '../base/metadata-match.ts';
import type { Fraction, RuntimeSetting } from '../base/runtime.ts';
import type { StringMatch } from '../base/string-match.ts';
import type { CidrRange } from './cidr-range.ts';

/** What is looked at; it may be missing. */
export type MatchInput =
  /** Name in lower case; several fields are joined by commas. */
  | { readonly kind: 'request-header'; readonly name: string }
  /** The first of this name, decoded. */
  | { readonly kind: 'query-parameter'; readonly name: string }
  /** The same of the response. */
  | { readonly kind: 'response-header'; readonly name: string }
  /** `503`, `5xx`. */
  | { readonly kind: 'response-status' | 'response-status-class' }
  | { readonly kind: ConnectionInputKind }
  | { readonly kind: 'filter-state'; readonly key: string }
  | { readonly kind: 'dynamic-metadata'; readonly namespace: string; readonly path: readonly string[] }
  /** The same for everything; null for nothing. */
  | { readonly kind: 'constant'; readonly value: string | null };

export type ConnectionInputKind =
  | 'destination-ip'
  | 'destination-port'
  /** Of a request by the trusted hops. */
  | 'source-ip'
  | 'source-port'
  | 'direct-source-ip'
  | 'source-type'
  | 'server-name'
  | 'transport-protocol'
  | 'application-protocol'
  | 'uri-san'
  | 'dns-san'
  | 'subject';

/** How it is tested; what is missing passes none. */
export type InputTest =
  | { readonly kind: 'text'; readonly match: StringMatch }
  | { readonly kind: 'ip'; readonly ranges: readonly CidrRange[] }
  // Seeds have 64 bits, in decimal digits: snapshots are compared as JSON.
  /** Values whose hash modulo `modulo` is `threshold` or more. */
  | { readonly kind: 'hash'; readonly threshold: number; readonly modulo: number; readonly seed: string }
  | { readonly kind: 'share'; readonly share: RuntimeSetting<Fraction>; readonly seed: string }
  | { readonly kind: 'value'; readonly match: ValueMatch; readonly isInverted: boolean };

export type MatchPredicate =
  | { readonly kind: 'input'; readonly input: MatchInput; readonly test: InputTest }
  | { readonly kind: 'and' | 'or'; readonly of: readonly MatchPredicate[] }
  | { readonly kind: 'not'; readonly of: MatchPredicate };

/** What follows: an action, or another tree, which may lead to none. */
export interface MatchOutcome<Action> {
  readonly next:
    | { readonly kind: 'action'; readonly action: Action }
    | { readonly kind: 'tree'; readonly tree: MatchTree<Action> };
  /** What it leads to is noted, and the search goes on. */
  readonly keepsMatching: boolean;
}

interface TreeEnd<Action> {
  /** What follows where nothing else does; absent for nothing. */
  readonly otherwise?: MatchOutcome<Action>;
}

/** The first entry that holds, and leads somewhere. */
export interface MatchList<Action> extends TreeEnd<Action> {
  readonly kind: 'list';
  readonly entries: readonly { readonly predicate: MatchPredicate; readonly outcome: MatchOutcome<Action> }[];
}

/** The entry of that very value; or of the longest prefix of it that leads somewhere. */
export interface MatchMap<Action> extends TreeEnd<Action> {
  readonly kind: 'exact' | 'prefix';
  readonly input: MatchInput;
  readonly entries: readonly (readonly [value: string, outcome: MatchOutcome<Action>])[];
}

/** The longest range that holds the address and leads somewhere, then the order. */
export interface MatchRanges<Action> extends TreeEnd<Action> {
  readonly kind: 'ranges';
  readonly input: MatchInput;
  readonly entries: readonly {
    readonly ranges: readonly CidrRange[];
    readonly outcome: MatchOutcome<Action>;
    /** Not asked where a longer range holds the address. */
    readonly isExclusive: boolean;
  }[];
}

/** The longest domain that holds the name and leads somewhere, then the order. */
export interface MatchDomains<Action> extends TreeEnd<Action> {
  readonly kind: 'domains';
  readonly input: MatchInput;
  /** Domains in lower case: a name, `*.suffix` or `*`. */
  readonly entries: readonly { readonly domains: readonly string[]; readonly outcome: MatchOutcome<Action> }[];
}

/** Nothing is looked at. */
export interface MatchAnything<Action> extends TreeEnd<Action> {
  readonly kind: 'anything';
}

export type MatchTree<Action> =
  | MatchList<Action>
  | MatchMap<Action>
  | MatchRanges<Action>
  | MatchDomains<Action>
  | MatchAnything<Action>;
