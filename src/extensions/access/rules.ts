// Rules of access, ready to be asked about a request or a connection. Made once per snapshot.

import { IpNumber, parseIp, parsePrefix } from '../../base/ip-number.ts';
import { compileMetadataMatch } from '../../base/metadata-match.ts';
import { compileStringMatch, type StringTest } from '../../base/string-match.ts';
import { compileByteMatch, type DownstreamFacts, type HeadTest } from '../../data-plane/index.ts';
import type { CidrRange, HeaderMatch, Metadata, MetadataSource } from '../../snapshot/index.ts';
import type { RequestHead } from '../../wasm/http1.ts';
import type { AccessPolicy, AccessRule, AccessRules, AddressOf, MetadataRule } from './settings.ts';

/** Who asks: a request by its filter's callbacks, or a connection. */
export interface AccessSubject {
  readonly connection: DownstreamFacts;
  /** By the trusted hops. */
  readonly clientAddress: string;
  facts(response: null): { metadata(source: MetadataSource): Metadata | undefined };
}

/** What rules about headers need; connections have none, and no such rules. */
export interface HeaderContext {
  compileHeaders(matches: readonly HeaderMatch[]): HeadTest;
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
  /** The first policy that fits; empty for none. */
  readonly policy: string;
}

export class Access {
  readonly action: AccessRules['action'];
  readonly #policies: readonly CompiledPolicy[];
  readonly #otherwise: Decision;

  constructor({ action, policies }: AccessRules, context: HeaderContext) {
    this.action = action;
    // What is only logged is always allowed.
    this.#policies = policies.map((policy) => ({
      fits: compilePolicy(policy, context),
      decision: { isAllowed: action !== 'deny', policy: policy.name },
    }));
    this.#otherwise = { isAllowed: action !== 'allow', policy: '' };
  }

  /** All that `decide` may say. */
  get decisions(): readonly Decision[] {
    return [...this.#policies.map(({ decision }) => decision), this.#otherwise];
  }

  decide(head: RequestHead, callbacks: AccessSubject): Decision {
    for (const { fits, decision } of this.#policies) if (fits(head, callbacks)) return decision;
    return this.#otherwise;
  }
}

function compilePolicy({ permissions, principals }: AccessPolicy, context: HeaderContext): AccessTest {
  const asked = anyOf(permissions.map((rule) => compileRule(rule, context)));
  const asking = anyOf(principals.map((rule) => compileRule(rule, context)));
  return (head, callbacks) => asked(head, callbacks) && asking(head, callbacks);
}

function anyOf(tests: readonly AccessTest[]): AccessTest {
  return (head, callbacks) => tests.some((test) => test(head, callbacks));
}

export function compileRule(rule: AccessRule, context: HeaderContext): AccessTest {
  switch (rule.kind) {
    case 'any':
      return () => true;
    case 'all-of': {
      const tests = rule.rules.map((one) => compileRule(one, context));
      return (head, callbacks) => tests.every((test) => test(head, callbacks));
    }
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
