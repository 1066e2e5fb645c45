// The copy of a request: sent to a cluster of its own, counted there, and answered to nobody. Owned by nobody either: it
// lives until its response is complete, it fails, or its time is over.

import { CLUSTER_STATS } from '../../stats/index.ts';
import { ClusterPriority } from '../../wasm/shared-records.ts';
import type { Trailers } from '../http/trailers.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { PickContext } from '../upstream/load-balancer/pick-context.ts';
import type { WorkerContext } from '../worker-context.ts';
import { type AttemptClient, Verdict } from './attempt-client.ts';
import { UpstreamAttempt } from './upstream-attempt.ts';

const { upstream_rq_max_duration_reached, upstream_rq_timeout } = CLUSTER_STATS.index;

/** For copies of requests that have any time: somebody has to end them. */
const DEFAULT_TIMEOUT_MS = 15_000;
/** Nobody holds up a response that nobody reads. */
const BUFFER_LIMIT_BYTES = 64 * 1024;

export interface ShadowOptions {
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
  /** 0 for the time of copies that have none. */
  readonly timeoutMs: number;
}

export class Shadow implements AttemptClient, TimeoutOwner {
  readonly methodId: number;
  readonly isGrpc: boolean;
  readonly isInternal: boolean;
  readonly timeoutMs: number;
  readonly downstream = null;
  readonly perTryTimeoutMs = 0;
  readonly bufferLimitBytes = BUFFER_LIMIT_BYTES;
  readonly awaitsTunnel = false;
  readonly awaitsUpgrade = false;
  readonly isRequestComplete = true;
  readonly requestCompleteMs: number;
  readonly requestFraming: number;
  readonly requestTrailers: Trailers | null;
  responseTrailers: Trailers | null = null;
  readonly #context: WorkerContext;
  readonly #cluster: Cluster;
  readonly #attempt: UpstreamAttempt;
  readonly #timer: TimerEntry;
  /** The cluster ends it before its own time is over. */
  readonly #isShortened: boolean;
  #body: Buffer;

  constructor(context: WorkerContext, cluster: Cluster, options: ShadowOptions) {
    this.#context = context;
    this.#cluster = cluster;
    cluster.acquire();
    this.methodId = options.methodId;
    this.isGrpc = options.isGrpc;
    this.isInternal = options.isInternal;
    this.timeoutMs = options.timeoutMs || DEFAULT_TIMEOUT_MS;
    const { maxStreamDurationMs } = cluster;
    this.#isShortened = maxStreamDurationMs > 0 && maxStreamDurationMs < this.timeoutMs;
    this.requestCompleteMs = context.clock.monotonicMs();
    this.#body = options.body;
    this.requestFraming = options.framing;
    this.requestTrailers = options.trailers;
    const { head, pickContext } = options;
    this.#attempt = new UpstreamAttempt(context, this, cluster, ClusterPriority.default, head, null, pickContext);
    this.#timer = new TimerEntry(this);
    context.wheel.arm(this.#timer, this.requestCompleteMs + (this.#isShortened ? maxStreamDurationMs : this.timeoutMs));
  }

  start(): void {
    const body = this.#body;
    this.#body = NO_BYTES;
    this.#attempt.start(body, 0, body.length, true);
  }

  onTimeout(): void {
    this.#attempt.timeOut(this.#isShortened ? upstream_rq_max_duration_reached : upstream_rq_timeout);
    this.#end();
  }

  onUpstreamHost(): void {}

  onUpstreamConnection(): void {}

  onUpstreamWritable(): void {}

  onInterimHead(): boolean {
    return false;
  }

  judgeResponse(): Verdict {
    return Verdict.pass;
  }

  onResponseHead(_bytes: Buffer, _start: number, _end: number, isEnd: boolean): boolean {
    if (isEnd) this.#end();
    return true;
  }

  onResponseBody(_bytes: Buffer, _start: number, _end: number, isEnd: boolean): boolean {
    if (isEnd) this.#end();
    return true;
  }

  onNoHealthyUpstream(): void {
    this.#end();
  }

  onUpstreamFailure(): void {
    this.#end();
  }

  /** Once: the attempt tells of one end, and of none behind its time. */
  #end(): void {
    this.#context.wheel.remove(this.#timer);
    this.#cluster.release();
  }
}

const NO_BYTES = Buffer.alloc(0);
