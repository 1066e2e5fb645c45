// What the requests of a route are hashed by, ready to run: headers, a cookie, a query parameter, the client's address.
// Made once per snapshot; asked only for clusters whose balancer goes by hashes. Each input is hashed by XXH64.

import { formatAddress } from '../../base/address.ts';
import type { HashCookie, HashInput, HashPolicy, RegexSubstitution } from '../../snapshot/index.ts';
import type { LbKernel } from '../../wasm/lb.ts';
import type { DownstreamFacts } from '../format/facts.ts';
import { type Criteria, RequestHash } from '../upstream/load-balancer/pick-context.ts';
import { headerValuesReader } from './header-matcher.ts';
import { substituteOf } from './path-matcher.ts';
import { firstValue } from './query-matcher.ts';
import { requestCookie, setCookieText } from './request-cookie.ts';
import type { RouteRequest } from './route-request.ts';

/** Who sent the request that is hashed. */
export interface HashedClient {
  /** As far as trusted hops tell; empty when nobody knows. */
  readonly clientAddress: string;
  /** Both ends of the connection that the request came by. */
  readonly connectionEnds: Pick<DownstreamFacts, 'remote' | 'local'>;
  /** What filters have said of it in filter state. */
  state(key: string): string | undefined;
  /** The response gives the client this cookie. */
  setCookie(text: string): void;
}

/** Leaves the hash of an input in the kernel. @returns false when the request lacks the input. */
type HashOne = (kernel: LbKernel, request: RouteRequest, client: HashedClient) => boolean;

interface Step {
  readonly hash: HashOne;
  readonly isTerminal: boolean;
}

export class RequestHasher {
  readonly #steps: readonly Step[];

  /** @param policies one or more. */
  constructor(policies: readonly HashPolicy[]) {
    this.#steps = policies.map((policy) => ({ hash: compileInput(policy), isTerminal: policy.isTerminal }));
  }

  /** Hashes one request; may make a cookie for its client. Hot, where balancers go by hashes. */
  hash(kernel: LbKernel, request: RouteRequest, client: HashedClient, criteria: Criteria | null): RequestHash {
    const result = new RequestHash(criteria);
    for (const { hash, isTerminal } of this.#steps) {
      if (hash(kernel, request, client)) result.add(kernel.hashHi | 0, kernel.hashLo | 0);
      if (isTerminal && result.hasHash) break;
    }
    return result;
  }
}

function compileInput(input: HashInput): HashOne {
  switch (input.kind) {
    case 'header':
      return hashHeader(input.name, input.rewrite);
    case 'cookie':
      return hashCookie(input);
    case 'source-ip':
      return (kernel, _request, { clientAddress }) => hashText(kernel, clientAddress);
    case 'filter-state':
      return (kernel, _request, client) => hashState(kernel, client.state(input.key));
    case 'query-parameter':
      return (kernel, { query }) => {
        const value = firstValue(query, input.name);
        if (value === undefined) return false;
        kernel.hashLatin1(value);
        return true;
      };
  }
}

function hashText(kernel: LbKernel, text: string): boolean {
  if (text === '') return false;
  kernel.hashLatin1(text);
  return true;
}

/** As its filter has set it, which is no byte text. */
function hashState(kernel: LbKernel, text: string | undefined): boolean {
  if (text === undefined || text === '') return false;
  kernel.hash(text);
  return true;
}

function hashHeader(name: string, rewrite: RegexSubstitution | null): HashOne {
  const read = headerValuesReader(name);
  const substitute = rewrite === null ? (text: string): string => text : substituteOf(rewrite);
  return (kernel, request) => {
    const value = read(request);
    if (value === undefined) return false;
    if (typeof value === 'string') kernel.hashLatin1(substitute(value));
    else hashList(kernel, value.map(substitute));
    return true;
  };
}

/** Whatever the order in which they came; the hash of each is the seed of the next. */
function hashList(kernel: LbKernel, values: string[]): void {
  let seedHi = 0;
  let seedLo = 0;
  for (const value of values.sort()) {
    kernel.hashLatin1(value, seedHi, seedLo);
    seedHi = kernel.hashHi;
    seedLo = kernel.hashLo;
  }
}

function hashCookie(cookie: HashCookie): HashOne {
  return (kernel, { head }, client) => {
    const value = requestCookie(head, cookie.name);
    if (value !== '' || cookie.ttlSeconds === null) return hashText(kernel, value);
    const made = cookieValue(kernel, client);
    client.setCookie(setCookieText(cookie, made));
    kernel.hashLatin1(made);
    return true;
  };
}

/** The same for all requests of a connection. */
function cookieValue(kernel: LbKernel, { connectionEnds: { remote, local } }: HashedClient): string {
  kernel.hashLatin1(formatAddress({ kind: 'ip', ...remote }) + formatAddress({ kind: 'ip', ...local }));
  const digits = (half: number): string => half.toString(16).padStart(8, '0');
  return digits(kernel.hashHi) + digits(kernel.hashLo);
}
