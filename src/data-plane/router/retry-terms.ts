// What a request may be tried again for: the policy of its route, and what a request from inside adds or says otherwise
// by its own headers.

import { HEADER_ID, idSet, type RequestHead } from '../../wasm/http1.ts';
import { NO_POLICY, type ResponseTest, RetryOn, type RetryPolicy, type RetryTerms } from '../route/retry-policy.ts';
import type { RouteRequest } from '../route/route-request.ts';

const RETRY_ON = HEADER_ID['x-proxy-retry-on'];
const RETRY_GRPC_ON = HEADER_ID['x-proxy-retry-grpc-on'];
const MAX_RETRIES = HEADER_ID['x-proxy-max-retries'];
const STATUS_CODES = HEADER_ID['x-proxy-retriable-status-codes'];
const HEADER_NAMES = HEADER_ID['x-proxy-retriable-header-names'];
const OWN_TERMS = idSet([RETRY_ON, RETRY_GRPC_ON, MAX_RETRIES, STATUS_CODES, HEADER_NAMES]);

/** As headers name them. */
const HTTP_CONDITIONS: ReadonlyMap<string, number> = new Map([
  ['5xx', RetryOn['5xx']],
  ['gateway-error', RetryOn['gateway-error']],
  ['reset', RetryOn.reset],
  ['reset-before-request', RetryOn['reset-before-request']],
  ['connect-failure', RetryOn['connect-failure']],
  ['retriable-4xx', RetryOn['retriable-4xx']],
  ['refused-stream', RetryOn['refused-stream']],
  ['retriable-status-codes', RetryOn['retriable-status-codes']],
  ['retriable-headers', RetryOn['retriable-headers']],
  ['envoy-ratelimited', RetryOn.ratelimited],
  ['proxy-ratelimited', RetryOn.ratelimited],
]);
const GRPC_CONDITIONS: ReadonlyMap<string, number> = new Map([
  ['cancelled', RetryOn.cancelled],
  ['deadline-exceeded', RetryOn['deadline-exceeded']],
  ['internal', RetryOn.internal],
  ['resource-exhausted', RetryOn['resource-exhausted']],
  ['unavailable', RetryOn.unavailable],
]);

const COUNT = /^\d{1,9}$/;
const STATUS = /^\d{3}$/;

/**
 * @param policy of the route; null for none.
 * @returns null when nothing may be tried again.
 */
export function retryTerms(request: RouteRequest, policy: RetryPolicy | null): RetryTerms | null {
  const { head, isInternal } = request;
  const hasOwn = isInternal && head.hasAny(OWN_TERMS);
  const base = policy ?? NO_POLICY;
  const terms = hasOwn ? ownTerms(head, base) : base;
  if (terms.conditions === 0) return null;
  const { requestTests } = base;
  return requestTests.length === 0 || requestTests.some((holds) => holds(request)) ? terms : null;
}

function ownTerms(head: RequestHead, base: RetryTerms): RetryTerms {
  const maxRetries = head.header(MAX_RETRIES);
  const statusCodes = words(head.header(STATUS_CODES)).filter((word) => STATUS.test(word));
  const names = words(head.header(HEADER_NAMES)).map((name) => name.toLowerCase());
  return {
    conditions:
      base.conditions |
      conditionBits(head.header(RETRY_ON), HTTP_CONDITIONS) |
      conditionBits(head.header(RETRY_GRPC_ON), GRPC_CONDITIONS),
    maxRetries: maxRetries !== undefined && COUNT.test(maxRetries) ? Number(maxRetries) : base.maxRetries,
    statusCodes: [...base.statusCodes, ...statusCodes.map(Number)],
    responseTests: [...base.responseTests, ...names.map((name) => presenceTest(name))],
  };
}

/** Whether every word of a list of conditions is one. */
export function namesConditions(text: string, kind: 'http' | 'grpc'): boolean {
  const conditions = kind === 'http' ? HTTP_CONDITIONS : GRPC_CONDITIONS;
  return words(text).every((word) => conditions.has(word));
}

function presenceTest(name: string): ResponseTest {
  return (head) => head.findByName(name, 0) !== -1;
}

function conditionBits(text: string | undefined, conditions: ReadonlyMap<string, number>): number {
  return words(text).reduce((bits, word) => bits | (conditions.get(word) ?? 0), 0);
}

function words(text: string | undefined): string[] {
  if (text === undefined) return [];
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}
