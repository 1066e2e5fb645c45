// Headers by which a client inside may steer the router for its own request. They are obeyed from inside only: from
// outside they go before routes and filters see the request. No upstream sees them.

import { HEADER_ID, type IdSet, idSet, type RequestHead } from '../../wasm/http1.ts';

const TIMEOUT = HEADER_ID['x-proxy-upstream-rq-timeout-ms'];
const PER_TRY_TIMEOUT = HEADER_ID['x-proxy-upstream-rq-per-try-timeout-ms'];
const STREAM_DURATION = HEADER_ID['x-proxy-upstream-stream-duration-ms'];
const HEDGE = HEADER_ID['x-proxy-hedge-on-per-try-timeout'];
const ALT_RESPONSE = HEADER_ID['x-proxy-upstream-rq-timeout-alt-response'];

const FORCE_TRACE = HEADER_ID['x-proxy-force-trace'];
const EXPECTED_TIMEOUT = HEADER_ID['x-proxy-expected-rq-timeout-ms'];

/** What the router of a request from inside goes by, or says anew to the upstream. */
const ROUTER_HEADERS: readonly number[] = [
  TIMEOUT,
  PER_TRY_TIMEOUT,
  STREAM_DURATION,
  ALT_RESPONSE,
  HEADER_ID['x-proxy-max-retries'],
  HEADER_ID['x-proxy-retry-on'],
  HEADER_ID['x-proxy-retry-grpc-on'],
  HEADER_ID['x-proxy-retriable-status-codes'],
  HEADER_ID['x-proxy-retriable-header-names'],
  HEDGE,
  HEADER_ID['x-proxy-is-timeout-retry'],
  HEADER_ID['x-proxy-upstream-alt-stat-name'],
  EXPECTED_TIMEOUT,
  HEADER_ID['x-proxy-original-path'],
  HEADER_ID['x-proxy-attempt-count'],
];
/** What only a connection manager says of a request. */
const MANAGER_HEADERS: readonly number[] = [
  HEADER_ID['x-proxy-original-url'],
  HEADER_ID['x-proxy-internal'],
  HEADER_ID['x-proxy-ip-tags'],
];
/** Said of a client by the proxy that it came to; from outside nobody may say it. */
const EDGE_HEADERS: readonly number[] = [
  HEADER_ID['x-proxy-decorator-operation'],
  HEADER_ID['x-proxy-downstream-service-cluster'],
  HEADER_ID['x-proxy-downstream-service-node'],
];

const ROUTER_SET = idSet(ROUTER_HEADERS);
const MANAGER_SET = idSet(MANAGER_HEADERS);
const EDGE_SET = idSet(EDGE_HEADERS);
const LIMIT_SET = idSet([TIMEOUT, PER_TRY_TIMEOUT, STREAM_DURATION, ALT_RESPONSE, HEDGE, EXPECTED_TIMEOUT]);

/** A count of milliseconds as headers write it; anything else is ignored. */
const MILLISECONDS = /^\d{1,9}$/;

/** Limits of one request. 0 for none. */
export interface RequestLimits {
  timeoutMs: number;
  perTryTimeoutMs: number;
  maxStreamDurationMs: number;
  /** An attempt whose time is over goes on beside its retry. */
  hedgesOnPerTryTimeout: boolean;
  /** Instead of an error the client wants an empty answer when the time is over. */
  wantsAltResponse: boolean;
}

/**
 * Lets an internal request change its limits.
 * @param respectsExpected what the proxy before this one expects counts more than anything.
 */
export function obeyControlHeaders(head: RequestHead, limits: RequestLimits, respectsExpected: boolean): void {
  if (!head.hasAny(LIMIT_SET)) return;
  const expected = respectsExpected ? milliseconds(head, EXPECTED_TIMEOUT) : undefined;
  limits.timeoutMs = expected ?? milliseconds(head, TIMEOUT) ?? limits.timeoutMs;
  limits.perTryTimeoutMs = milliseconds(head, PER_TRY_TIMEOUT) ?? limits.perTryTimeoutMs;
  limits.maxStreamDurationMs = milliseconds(head, STREAM_DURATION) ?? limits.maxStreamDurationMs;
  limits.wantsAltResponse = head.has(ALT_RESPONSE);
  const hedge = head.header(HEDGE)?.trim().toLowerCase();
  if (hedge === 'true' || hedge === 'false') limits.hedgesOnPerTryTimeout = hedge === 'true';
}

/** The request names how long upstreams may take for it, in place of what their cluster says. */
export function namesStreamDuration(head: RequestHead): boolean {
  return milliseconds(head, STREAM_DURATION) !== undefined;
}

/** How long an upstream may take, as it is told; 0 for any time. */
export function expectedMs({ timeoutMs, perTryTimeoutMs, hedgesOnPerTryTimeout }: RequestLimits): number {
  return perTryTimeoutMs > 0 && !hedgesOnPerTryTimeout ? perTryTimeoutMs : timeoutMs;
}

/**
 * Takes from a request what its client may not say.
 * @param isEdge the request comes from outside, straight to this proxy.
 */
export function dropForeignHeaders(head: RequestHead, isInternal: boolean, isEdge: boolean): void {
  dropAll(head, MANAGER_SET, MANAGER_HEADERS);
  if (!isInternal) {
    dropRouterHeaders(head);
    if (head.has(FORCE_TRACE)) head.dropKnown(FORCE_TRACE);
  }
  if (isEdge) dropAll(head, EDGE_SET, EDGE_HEADERS);
}

/** What the router has gone by ends with it. */
export function dropRouterHeaders(head: RequestHead): void {
  dropAll(head, ROUTER_SET, ROUTER_HEADERS);
}

function dropAll(head: RequestHead, set: IdSet, ids: readonly number[]): void {
  if (head.hasAny(set)) for (const id of ids) head.dropKnown(id);
}

function milliseconds(head: RequestHead, id: number): number | undefined {
  const text = head.header(id);
  return text !== undefined && MILLISECONDS.test(text) ? Number(text) : undefined;
}
