// A request of the proxy's own: one attempt, made for no client. Owned by nobody either: it lives until its response is
// complete, it fails, or its time is over. Its body is whole from the beginning, or goes on (open-request.ts).

import { CLUSTER_STATS } from '../../stats/index.ts';
import { ClusterPriority } from '../../wasm/shared-records.ts';
import type { TextHead } from '../http/text-head.ts';
import type { Trailers } from '../http/trailers.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import type { RetryPolicy } from '../route/retry-policy.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { PickContext } from '../upstream/load-balancer/pick-context.ts';
import type { UpstreamFailure } from '../upstream/pool/failure.ts';
import type { WorkerContext } from '../worker-context.ts';
import { type RequestClient, Verdict } from './attempt-client.ts';
import type { ForwardedRequest } from './forwarded-request.ts';
import { RequestTries, type TriesPlan } from './request-tries.ts';
import { UpstreamAttempt } from './upstream-attempt.ts';

const { upstream_rq_max_duration_reached, upstream_rq_timeout } = CLUSTER_STATS.index;

/** For those that have any time: somebody has to end them. */
const DEFAULT_TIMEOUT_MS = 15_000;
/** Nobody holds up a response of theirs. */
const BUFFER_LIMIT_BYTES = 64 * 1024;
const NO_BYTES = Buffer.alloc(0);
const FORWARDED_FOR = 'x-forwarded-for';

export interface OwnRequestOptions {
  readonly methodId: number;
  readonly isGrpc: boolean;
  readonly isInternal: boolean;
  readonly head: string;
  /** What the choice of a host may go by. */
  readonly pickContext: PickContext | null;
  /** Given away. */
  readonly body: Buffer;
  /** One of Framing. */
  readonly framing: number;
  readonly trailers: Trailers | null;
  /** 0 for the time of those that have none. Ignored where the body goes on. */
  readonly timeoutMs: number;
  /** More of the body follows: the request has no time of its own before its end. */
  readonly isOpen?: boolean;
  /** What it is tried again for, within its time; absent for nothing. */
  readonly retry?: OwnRetries | undefined;
}

/** Retries of requests of the proxy's own. */
export interface OwnRetries {
  readonly policy: RetryPolicy;
  /** A cluster may be replaced before the last of them. */
  readonly clusters: ClusterMap;
}

export abstract class OwnRequest implements RequestClient, TimeoutOwner {
  readonly methodId: number;
  readonly isGrpc: boolean;
  readonly isInternal: boolean;
  readonly timeoutMs: number;
  readonly downstream = null;
  readonly tally = null;
  readonly overrideHost = null;
  readonly perTryTimeoutMs = 0;
  readonly bufferLimitBytes = BUFFER_LIMIT_BYTES;
  readonly awaitsTunnel = false;
  readonly awaitsUpgrade = false;
  readonly matchesUpstreamScheme = false;
  readonly upstreamWire = null;
  isRequestComplete: boolean;
  requestCompleteMs: number;
  readonly requestFraming: number;
  readonly requestTrailers: Trailers | null;
  responseTrailers: Trailers | null = null;
  protected readonly context: WorkerContext;
  readonly #cluster: Cluster;
  /** Clusters that have taken its place, and that retries go to; null for none. */
  #successors: Cluster[] | null = null;
  /** Nobody reads them. */
  flags = 0;
  protected readonly attempt: ForwardedRequest;
  readonly #timer: TimerEntry;
  /** The cluster ends it before its own time is over. */
  #isShortened: boolean;
  #body: Buffer;

  constructor(context: WorkerContext, cluster: Cluster, options: OwnRequestOptions) {
    this.context = context;
    this.#cluster = cluster;
    cluster.acquire();
    this.methodId = options.methodId;
    this.isGrpc = options.isGrpc;
    this.isInternal = options.isInternal;
    const { isOpen = false } = options;
    this.timeoutMs = isOpen ? 0 : options.timeoutMs || DEFAULT_TIMEOUT_MS;
    const { maxStreamDurationMs } = cluster;
    this.#isShortened = maxStreamDurationMs > 0 && (isOpen || maxStreamDurationMs < this.timeoutMs);
    this.isRequestComplete = !isOpen;
    this.requestCompleteMs = context.clock.monotonicMs();
    this.#body = options.body;
    this.requestFraming = options.framing;
    this.requestTrailers = options.trailers;
    const { head, pickContext, retry } = options;
    this.attempt =
      retry === undefined
        ? new UpstreamAttempt(context, this, cluster, ClusterPriority.default, head, null, pickContext)
        : new RequestTries(context, this, cluster, head, planOf(retry, this.timeoutMs, pickContext));
    this.#timer = new TimerEntry(this);
    const limitMs = this.#isShortened ? maxStreamDurationMs : this.timeoutMs || Number.POSITIVE_INFINITY;
    context.wheel.arm(this.#timer, this.requestCompleteMs + limitMs);
  }

  /** May end it before it returns. */
  start(): void {
    const body = this.#body;
    this.#body = NO_BYTES;
    this.attempt.start(body, 0, body.length, this.isRequestComplete);
  }

  onTimeout(): void {
    this.attempt.timeOut(this.#isShortened ? upstream_rq_max_duration_reached : upstream_rq_timeout);
    this.#end();
    this.onFailure('timeout');
  }

  onUpstreamHost(): void {}

  useCluster(cluster: Cluster): void {
    cluster.acquire();
    this.#successors ??= [];
    this.#successors.push(cluster);
  }

  /** There is none but the request's own. */
  onTryLimit(): void {}

  onReplayAbandoned(): void {}

  onUpstreamConnection(): void {}

  traceAttempt(): null {
    return null;
  }

  logAttempt(): null {
    return null;
  }

  onUpstreamWritable(): void {}

  onInterimHead(): boolean {
    return false;
  }

  judgeResponse(): Verdict {
    return Verdict.pass;
  }

  onResponseHead(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    this.onHead();
    return this.onResponseBody(bytes, start, end, isEnd);
  }

  onResponseBody(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    if (isEnd) this.#end();
    this.onBody(bytes, start, end, isEnd);
    return true;
  }

  onNoHealthyUpstream(isUnresolved: boolean): void {
    this.#end();
    this.onFailure(isUnresolved ? 'DNS resolution failure' : 'no healthy upstream');
  }

  onUpstreamFailure(failure: UpstreamFailure): void {
    if (failure === 'overflow') this.#cluster.noteDropped(false);
    this.#end();
    this.onFailure(failure);
  }

  /** The response's head lies in the codec. */
  protected abstract onHead(): void;

  /** The bytes are borrowed. */
  protected abstract onBody(bytes: Buffer, start: number, end: number, isEnd: boolean): void;

  /** It has ended without a whole response. */
  protected abstract onFailure(
    failure: UpstreamFailure | 'no healthy upstream' | 'DNS resolution failure' | 'timeout',
  ): void;

  /** The body is over, and the response has this time from now on, unless the cluster gives it less. */
  protected complete(timeoutMs: number): void {
    const nowMs = this.context.clock.monotonicMs();
    this.isRequestComplete = true;
    this.requestCompleteMs = nowMs;
    const dueMs = nowMs + timeoutMs;
    if (dueMs < this.#timer.deadlineMs) {
      this.#isShortened = false;
      this.context.wheel.arm(this.#timer, dueMs);
    }
    this.attempt.send(NO_BYTES, 0, 0, true);
  }

  /** Ends it from outside, once, before it has ended; nothing more is told. */
  protected abandon(): void {
    this.attempt.cancel(true);
    this.#end();
  }

  /** Once: the attempt tells of one end, and of none behind its time. */
  #end(): void {
    this.context.wheel.remove(this.#timer);
    this.#cluster.release();
    if (this.#successors !== null) for (const cluster of this.#successors) cluster.release();
    this.#successors = null;
  }
}

function planOf({ policy, clusters }: OwnRetries, timeoutMs: number, pickContext: PickContext | null): TriesPlan {
  return {
    priority: ClusterPriority.default,
    attemptEdits: null,
    pickContext,
    clusters,
    policy,
    terms: policy,
    triedHosts: null,
    companions: 0,
    otherHosts: null,
    hedges: false,
    perTryTimeoutMs: 0,
    perTryIdleTimeoutMs: 0,
    maxTryDurationMs: 0,
    // Its body lies here anyway.
    replayLimitBytes: Number.POSITIVE_INFINITY,
    timeoutMs,
    expectedMs: timeoutMs,
    grpcExpectedMs: 0,
    tellsTimeoutRetry: false,
  };
}

/** Says in a head that it is this machine that asks, behind all whom the head names already. */
export function addSender({ localAddress, proxyHeaders }: WorkerContext, head: TextHead): void {
  head.removeField(proxyHeaders.internalName);
  head.appendPrepared(proxyHeaders.internal);
  if (localAddress === '') return;
  const before = head.headerByName(FORWARDED_FOR);
  head.removeField(FORWARDED_FOR);
  head.append(FORWARDED_FOR, before === undefined ? localAddress : `${before},${localAddress}`);
}
