// Rules of access, ready to be asked about a request or a connection. Made once per snapshot.

import { IpNumber, parseIp, parsePrefix } from '../../base/ip-number.ts';
import { compileMetadataMatch } from '../../base/metadata-match.ts';
import { compileStringMatch, type StringTest } from '../../base/string-match.ts';
import { compileByteMatch, compileStateMatch, type HeadTest, type TreeSubject } from '../../data-plane/index.ts';
import type { CidrRange, HeaderMatch, MatchTree } from '../../snapshot/index.ts';
import type { RequestHead } from '../../wasm/http1.ts';
import type {
  AccessAction,
  AccessPolicies,
  AccessPolicy,
  AccessRule,
  AccessRules,
  AccessTree,
  AddressOf,
  MetadataRule,
} from './settings.ts';

/** Who asks: a request by its filter's callbacks, or a connection. */
export type AccessSubject = TreeSubject;

/** What rules are made with; connections have no headers, and no rules about them. */
export interface AccessContext {
  compileHeaders(matches: readonly HeaderMatch[]): HeadTest;
  compileTree<Action, Result>(
    tree: MatchTree<Action>,
    resultOf: (action: Action) => Result,
  ): (head: RequestHead, subject: AccessSubject) => Result | undefined;
}

/** @param head of a request; of a connection nobody looks at it. */
export type AccessTest = (head: RequestHead, callbacks: AccessSubject) => boolean;

interface CompiledPolicy {
  readonly fits: AccessTest;
  readonly decision: Decision;
}

/** One of few for each set of rules: who makes something of them makes it once. */
export interface Decision {
  readonly isAllowed: boolean;
  /** The first policy that fits, or where a tree has led; empty for none. */
  readonly policy: string;
  /** What loggers are told that ask for a hint; null for nothing. */
  readonly logHint: boolean | null;
}

export interface Access {
  /** All that `decide` may say. */
  readonly decisions: readonly Decision[];
  decide(head: RequestHead, subject: AccessSubject): Decision;
}

export function compileAccess(rules: AccessRules, context: AccessContext): Access {
  return rules.kind === 'policies' ? new PolicyAccess(rules, context) : new TreeAccess(rules, context);
}

class PolicyAccess implements Access {
  readonly #policies: readonly CompiledPolicy[];
  readonly #otherwise: Decision;

  constructor({ action, policies }: AccessPolicies, context: AccessContext) {
    this.#policies = policies.map((policy) => ({
      fits: compilePolicy(policy, context),
      decision: decisionOf(policy.name, action),
    }));
    this.#otherwise = { isAllowed: action !== 'allow', policy: '', logHint: action === 'log' ? false : null };
  }

  get decisions(): readonly Decision[] {
    return [...this.#policies.map(({ decision }) => decision), this.#otherwise];
  }

  decide(head: RequestHead, subject: AccessSubject): Decision {
    for (const { fits, decision } of this.#policies) if (fits(head, subject)) return decision;
    return this.#otherwise;
  }
}

const DENIED: Decision = { isAllowed: false, policy: '', logHint: null };

class TreeAccess implements Access {
  readonly decisions: readonly Decision[];
  readonly #find: (head: RequestHead, subject: AccessSubject) => Decision | undefined;

  constructor({ tree }: AccessTree, context: AccessContext) {
    const decisions = [DENIED];
    this.decisions = decisions;
    this.#find = context.compileTree(tree, ({ name, action }) => {
      const decision = decisionOf(name, action);
      decisions.push(decision);
      return decision;
    });
  }

  decide(head: RequestHead, subject: AccessSubject): Decision {
    return this.#find(head, subject) ?? DENIED;
  }
}

/** What is only logged is always allowed. */
function decisionOf(policy: string, action: AccessAction): Decision {
  return { isAllowed: action !== 'deny', policy, logHint: action === 'log' ? true : null };
}

function compilePolicy({ permissions, principals }: AccessPolicy, context: AccessContext): AccessTest {
  const asked = anyOf(permissions.map((rule) => compileRule(rule, context)));
  const asking = anyOf(principals.map((rule) => compileRule(rule, context)));
  return (head, callbacks) => asked(head, callbacks) && asking(head, callbacks);
}

function anyOf(tests: readonly AccessTest[]): AccessTest {
  if (tests.length === 1) return tests[0]!;
  return (head, callbacks) => {
    for (const test of tests) if (test(head, callbacks)) return true;
    return false;
  };
}

function allOf(tests: readonly AccessTest[]): AccessTest {
  if (tests.length === 1) return tests[0]!;
  return (head, callbacks) => {
    for (const test of tests) if (!test(head, callbacks)) return false;
    return true;
  };
}

export function compileRule(rule: AccessRule, context: AccessContext): AccessTest {
  switch (rule.kind) {
    case 'any':
      return () => true;
    case 'all-of':
      return allOf(rule.rules.map((one) => compileRule(one, context)));
    case 'any-of':
      return anyOf(rule.rules.map((one) => compileRule(one, context)));
    case 'not': {
      const test = compileRule(rule.rule, context);
      return (head, callbacks) => !test(head, callbacks);
    }
    case 'header':
      return context.compileHeaders([rule.match]);
    case 'path': {
      const test = compileByteMatch(rule.match);
      return (head) => {
        const path = head.path();
        // CONNECT has none.
        return path !== '' && test(path.split('?', 1)[0]!);
      };
    }
    case 'address': {
      const holds = compileRange(rule.range);
      return (_head, callbacks) => holds(addressOf(rule.of, callbacks));
    }
    case 'port':
      return (_head, { connection }) => connection.local.port >= rule.start && connection.local.port < rule.end;
    case 'server-name': {
      const test = compileStringMatch(rule.match);
      return (_head, { connection }) => test(connection.requestedServerName);
    }
    case 'authenticated':
      return compilePeer(rule.name === null ? null : compileStringMatch(rule.name));
    case 'filter-state': {
      const holds = compileStateMatch(rule.match);
      return (_head, callbacks) => holds(callbacks);
    }
    case 'metadata':
      return compileMetadata(rule);
  }
}

function addressOf(of: AddressOf, { connection, clientAddress }: AccessSubject): string {
  switch (of) {
    case 'direct-remote':
      return connection.directRemote.ip;
    case 'source':
      return connection.remote.ip;
    case 'remote':
      return clientAddress;
    case 'local':
      return connection.local.ip;
  }
}

/** A pipe has no address, and is in no range. */
function compileRange({ ip, prefixLength }: CidrRange): StringTest {
  const prefix = parsePrefix(ip, prefixLength);
  // The configuration has let no other through.
  if (prefix === undefined) return () => false;
  const network = new IpNumber(prefix.ip.words).masked(prefix.length);
  return (text) => {
    const address = parseIp(text);
    return address !== undefined && address.isIpv4 === prefix.ip.isIpv4 && address.masked(prefix.length) === network;
  };
}

/** Names of a certificate in the order in which they count: URIs, DNS names, the subject. */
function compilePeer(test: StringTest | null): AccessTest {
  return (_head, { connection: { tls } }) => {
    if (tls === null || tls.peer === null || !tls.isPeerVerified) return false;
    if (test === null) return true;
    const { names, subject } = tls.peer;
    return names.uri.some(test) || names.dns.some(test) || test(subject);
  };
}

function compileMetadata(rule: MetadataRule): AccessTest {
  const test = compileMetadataMatch(rule);
  return (_head, callbacks) => test(callbacks.facts(null).metadata(rule.source));
}
