// A request that one attempt may not be enough for: makes the attempts, keeps the body for them, and lets a response
// pass when the policy does. Stands between the stream and its attempts; to each it looks like the other. Step 4 of the
// request flow. Requests of routes without a policy never meet it.
//
//   TRYING ──nothing to try again──► ANSWERED or failed          TRYING ◄──wait over── WAITING
//      └──the policy wants a retry─────────────────────────────────────────────────────►┘
//
// Where a slow attempt goes on beside its retry, or companions go out with the first attempt, there are several: the
// first response that the policy lets pass ends the others. What an upstream answers after that is not tried again, so the
// body is not kept any longer. Companions start when the request has arrived in full, which most have with their head:
// there is one attempt to take a body that still comes, at the speed of one upstream
// (docs/decisions/0029-requests-that-go-out-together.md).

import { CLUSTER_STATS } from '../../stats/index.ts';
import type { ClusterPriority } from '../../wasm/shared-records.ts';
import { DURATION_LIMIT, type UpstreamLimit } from '../http/stream-limits.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import { ResponseFlag } from '../response-flags.ts';
import type { AttemptEdits } from '../route/attempt-edits.ts';
import type { RetryPolicy, RetryTerms } from '../route/retry-policy.ts';
import type { CircuitBreaker } from '../upstream/circuit-breaker.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { Host } from '../upstream/host.ts';
import type { PickContext } from '../upstream/load-balancer/pick-context.ts';
import type { UpstreamFailure } from '../upstream/pool/failure.ts';
import type { ConnectionEnds } from '../upstream/upstream-facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import { type RequestClient, Verdict } from './attempt-client.ts';
import type { ForwardedRequest } from './forwarded-request.ts';
import { ReplayBuffer } from './replay-buffer.ts';
import { Decision, RetryDecisions, triesRefusedAgain, wantsAnother } from './retry-decisions.ts';
import { RetryHead, type RetryHeadOptions } from './retry-head.ts';
import { TimedTry, type TryKind, type TryOwner, type TryTimeouts } from './timed-try.ts';
import type { TriedHosts } from './tried-hosts.ts';
import { UpstreamAttempt } from './upstream-attempt.ts';

const { retry_or_shadow_abandoned, upstream_rq_retry_overflow } = CLUSTER_STATS.index;

const NO_BYTES = Buffer.alloc(0);
const NO_TRIES: readonly TimedTry[] = [];

/** What the route and the request ask for, worked out before the first attempt. */
export interface TriesPlan extends TryTimeouts, RetryHeadOptions {
  readonly priority: ClusterPriority;
  readonly attemptEdits: AttemptEdits | null;
  readonly pickContext: PickContext | null;
  readonly clusters: ClusterMap;
  readonly policy: RetryPolicy;
  /** Null when nothing is tried again. */
  readonly terms: RetryTerms | null;
  /** Null when every host will do for a retry. */
  readonly triedHosts: TriedHosts | null;
  /** A slow attempt goes on beside its retry. */
  readonly hedges: boolean;
  /** Attempts that go out with the first one. */
  readonly companions: number;
  /** What they ask of their hosts; null where there are none. */
  readonly otherHosts: TriedHosts | null;
  readonly replayLimitBytes: number;
}

export class RequestTries implements ForwardedRequest, TryOwner, TimeoutOwner {
  readonly head: string;
  readonly client: RequestClient;
  readonly #context: WorkerContext;
  readonly #plan: TriesPlan;
  #cluster: Cluster;
  /** Of the cluster that it goes to now; what goes out has its place under it. */
  #breaker: CircuitBreaker;
  // Most requests are answered by their first try, and need none of what comes after it before it comes.
  /** Null when there are no retries any more. */
  #terms: RetryTerms | null;
  /** Null before the first decision. */
  #decided: RetryDecisions | null = null;
  #backOff: TimerEntry | null = null;
  /** Null as long as no body has come. */
  #replay: ReplayBuffer | null = null;
  /** Those that have no answer, and the one that has. Mostly there is one: a new list for each change costs less than growing. */
  #running: readonly TimedTry[] = NO_TRIES;
  #answered: TimedTry | null = null;
  /** A retry has been decided on, has its place here, and has not begun; null when there is none. */
  #waitsUnder: CircuitBreaker | null = null;
  #followsTimeout = false;
  #isRequestDone = false;
  /** Still to go out, and those that have. */
  #companions: number;
  #sentCompanions = 0;
  #attempts = 0;
  /** What the client knows: those of the last try that had one. */
  #host: Host | null = null;
  #connection: ConnectionEnds | null = null;

  constructor(context: WorkerContext, client: RequestClient, cluster: Cluster, head: string, plan: TriesPlan) {
    this.#context = context;
    this.client = client;
    this.#cluster = cluster;
    this.head = head;
    this.#plan = plan;
    this.#breaker = cluster.breakerFor(plan.priority);
    this.#terms = plan.terms;
    this.#companions = plan.companions;
  }

  // ---- From the stream ----

  get cluster(): Cluster {
    return this.#cluster;
  }

  get host(): Host | null {
    return this.#host;
  }

  get attempts(): number {
    return this.#attempts;
  }

  get isSending(): boolean {
    return this.#current?.attempt.isSending ?? false;
  }

  get canSend(): boolean {
    return this.#current?.attempt.canSend ?? false;
  }

  get heldBytes(): number {
    const answered = this.#answered?.attempt.heldBytes ?? 0;
    return this.#running.reduce((sum, { attempt }) => sum + attempt.heldBytes, (this.#replay?.length ?? 0) + answered);
  }

  start(bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    this.#isRequestDone = isEnd;
    this.#keep(bytes, start, end);
    this.#try(bytes, start, end, 'first');
    if (isEnd) this.#startCompanions();
  }

  send(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    this.#isRequestDone = isEnd;
    const goesOn = this.#send(bytes, start, end);
    if (isEnd) this.#startCompanions();
    return goesOn;
  }

  resumeResponse(): void {
    this.#answered?.attempt.resumeResponse();
  }

  cancel(isReset: boolean): void {
    for (const each of this.#takeAll()) each.attempt.cancel(isReset);
  }

  timeOut(stat: number): void {
    for (const each of this.#takeAll()) each.attempt.timeOut(stat);
  }

  /** The wait before a retry is over. */
  onTimeout(): void {
    const place = this.#waitsUnder!;
    this.#waitsUnder = null;
    if (!this.#findCluster()) {
      place.releaseRetry();
      if (this.#running.length === 0) this.client.onNoHealthyUpstream(false);
      return;
    }
    if (place !== this.#breaker) {
      // It counts where it goes. That it may go has been decided.
      this.#breaker.acquireRetry();
      place.releaseRetry();
    }
    const body = this.#replay?.copy() ?? NO_BYTES;
    this.#try(body, 0, body.length, 'retry');
  }

  /** The cluster may have been replaced meanwhile. @returns false when it has gone. */
  #findCluster(): boolean {
    const cluster = this.#plan.clusters.get(this.#cluster.name);
    if (cluster === undefined) return false;
    if (cluster !== this.#cluster) {
      this.#cluster = cluster;
      this.#breaker = cluster.breakerFor(this.#plan.priority);
      this.#decided?.moveTo(cluster, this.#breaker);
      this.client.useCluster(cluster);
    }
    return true;
  }

  // ---- From the tries ----

  onTryHost(host: Host, attempts: number): void {
    this.#host = host;
    this.#attempts = attempts;
    const { triedHosts, otherHosts } = this.#plan;
    if (triedHosts !== null) triedHosts.note(host, this.#cluster.priorityOf(host));
    if (otherHosts !== null) otherHosts.note(host, this.#cluster.priorityOf(host));
    this.client.onUpstreamHost(host, attempts);
  }

  onTryConnection(each: TimedTry, connection: ConnectionEnds, head: string): void {
    this.#connection = connection;
    this.client.onUpstreamConnection(connection, head);
    if (this.#isRequestDone) each.startTimes();
  }

  /** As long as somebody else may bring the answer, nobody is told of what comes before it. */
  onTryInterimHead(each: TimedTry): boolean {
    if (this.#hasOthers(each) || !this.client.onInterimHead()) return false;
    this.#giveUpRetries();
    return true;
  }

  judge(each: TimedTry): Verdict {
    const terms = this.#terms;
    if (terms === null) return this.#settle(each, 0);
    const { response } = this.#context.codec;
    let flag = 0;
    const isRetry = each.kind === 'retry';
    if (each.isHedged || this.#plan.companions > 0) {
      if (wantsAnother(terms, response) && this.#hasOthers(each)) return this.#drop(each);
    }
    if (!each.isHedged && (isRetry || wantsAnother(terms, response))) {
      const decision = this.#decisions(terms).onResponse(response, isRetry);
      if (decision === Decision.retry) {
        this.#leave(each);
        this.#wait(false);
        return Verdict.retried;
      }
      flag = flagOf(decision);
      if (flag !== 0 && this.#hasOthers(each)) return this.#drop(each);
    }
    return this.#settle(each, flag);
  }

  onTryFailure(each: TimedTry, failure: UpstreamFailure, transport: string): void {
    if (each === this.#answered) {
      each.endTimes();
      this.client.onUpstreamFailure(failure, transport, this.#wasRetried);
      return;
    }
    this.#leave(each);
    const decision = this.#decide(each, failure);
    if (decision === Decision.retry) this.#wait(false);
    if (this.#hasOthers(each)) return;
    this.client.flags |= flagOf(decision);
    this.client.onUpstreamFailure(failure, transport, this.#wasRetried);
  }

  onTryWithoutHost(each: TimedTry, isUnresolved: boolean): void {
    this.#leave(each);
    if (!this.#hasOthers(each)) this.client.onNoHealthyUpstream(isUnresolved);
  }

  onTryLimit(each: TimedTry, limit: UpstreamLimit): void {
    if (each === this.#answered) {
      each.attempt.timeOut(limit.stat);
      each.endTimes();
      this.client.onTryLimit(limit);
      return;
    }
    if (this.#plan.hedges && limit !== DURATION_LIMIT) {
      this.#hedge(each);
      return;
    }
    this.#leave(each);
    each.attempt.timeOut(limit.stat);
    const decision = this.#decide(each, 'timeout');
    if (decision === Decision.retry) this.#wait(true);
    if (this.#hasOthers(each)) return;
    this.client.flags |= flagOf(decision);
    this.client.onTryLimit(limit);
  }

  // ---- Inside ----

  /** The one that takes the request's body: while that still comes there is no other. */
  get #current(): TimedTry | null {
    return this.#answered ?? this.#running[0] ?? null;
  }

  get #wasRetried(): boolean {
    return this.#attempts > 1 + this.#sentCompanions;
  }

  #send(bytes: Buffer, start: number, end: number): boolean {
    this.#keep(bytes, start, end);
    const current = this.#current;
    if (current === null) {
      if (this.#waitsUnder !== null && this.#terms === null) {
        this.#endWait();
        this.client.onReplayAbandoned();
      }
      return false;
    }
    const goesOn = current.attempt.send(bytes, start, end, this.#isRequestDone);
    if (this.#isRequestDone) current.startTimes();
    return goesOn;
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    if (end === start || (this.#terms === null && this.#companions === 0)) return;
    this.#replay ??= new ReplayBuffer(this.#plan.replayLimitBytes);
    if (this.#replay.add(bytes, start, end)) return;
    this.#giveUpRetries();
    this.#context.stats.values[this.cluster.statBase + retry_or_shadow_abandoned]! += 1;
  }

  /** The request has arrived in full: what is to go out beside the first try does, if that is still on its way. */
  #startCompanions(): void {
    const count = this.#companions;
    this.#companions = 0;
    if (count === 0 || !this.#findCluster()) return;
    for (let i = 0; i < count && this.#running.length > 0; i += 1) {
      if (!this.#breaker.tryAcquireRetry()) {
        this.#context.stats.values[this.cluster.statBase + upstream_rq_retry_overflow]! += 1;
        break;
      }
      this.#sentCompanions += 1;
      const body = this.#replay?.copy() ?? NO_BYTES;
      this.#try(body, 0, body.length, 'companion');
    }
    if (this.#terms === null) this.#replay = null;
  }

  #try(bytes: Buffer, start: number, end: number, kind: TryKind): void {
    const { priority, attemptEdits, pickContext } = this.#plan;
    const head = kind === 'retry' ? this.#retryHead() : this.head;
    const each = new TimedTry(this.#context, this, this.#plan, kind);
    if (kind !== 'first') each.place = this.#breaker;
    each.attempt = new UpstreamAttempt(
      this.#context,
      each,
      this.cluster,
      priority,
      head,
      attemptEdits,
      pickContext,
      this.#selectionOf(kind),
      this.#attempts,
      this.#terms !== null && triesRefusedAgain(this.#terms),
    );
    this.#running = this.#running.length === 0 ? [each] : [...this.#running, each];
    each.attempt.start(bytes, start, end, this.#isRequestDone);
  }

  #selectionOf(kind: TryKind): TriedHosts | null {
    switch (kind) {
      case 'first':
        return null;
      case 'companion':
        return this.#plan.otherHosts;
      case 'retry':
        return this.#plan.triedHosts;
    }
  }

  #retryHead(): string {
    const { proxyHeaders, clock } = this.#context;
    return new RetryHead(proxyHeaders, clock, this.#plan).apply(this.head, this.client, this.#followsTimeout);
  }

  #decisions(terms: RetryTerms): RetryDecisions {
    const { policy } = this.#plan;
    this.#decided ??= new RetryDecisions(this.#context, {
      cluster: this.#cluster,
      breaker: this.#breaker,
      policy,
      terms,
      random: this.#context.random,
      tally: this.client.tally,
    });
    return this.#decided;
  }

  #decide(each: TimedTry, failure: UpstreamFailure | 'timeout'): Decision {
    if (this.#terms === null || each.isHedged) return Decision.no;
    // A companion may still answer.
    if (this.#plan.companions > 0 && this.#hasOthers(each)) return Decision.no;
    return this.#decisions(this.#terms).onFailure(failure, each.isConnected);
  }

  /** What is slow may still answer; a retry runs beside it. */
  #hedge(each: TimedTry): void {
    each.attempt.noteSlowness();
    if (this.#terms === null || each.isHedged || this.#waitsUnder !== null) return;
    const decision = this.#decisions(this.#terms).onSlowness();
    this.client.flags |= flagOf(decision);
    if (decision !== Decision.retry) return;
    each.isHedged = true;
    this.#wait(true);
  }

  /** The retry has its place under the circuit breaker. */
  #wait(followsTimeout: boolean): void {
    this.#waitsUnder = this.#breaker;
    this.#followsTimeout = followsTimeout;
    this.#backOff ??= new TimerEntry(this);
    const nowMs = this.#context.clock.monotonicMs();
    this.#context.wheel.arm(this.#backOff, nowMs + this.#decided!.nextDelayMs());
  }

  #endWait(): void {
    const place = this.#waitsUnder;
    if (place === null) return;
    this.#waitsUnder = null;
    this.#context.wheel.remove(this.#backOff!);
    place.releaseRetry();
  }

  /** Somebody else may still bring an answer. */
  #hasOthers(each: TimedTry): boolean {
    return this.#waitsUnder !== null || this.#running.some((other) => other !== each);
  }

  #drop(each: TimedTry): Verdict {
    this.#leave(each);
    return Verdict.dropped;
  }

  /** The response goes to the client: nothing else does. */
  #settle(each: TimedTry, flag: number): Verdict {
    if (this.#takeOut(each)) this.#freePlace(each);
    each.endHeadTime();
    this.#answered = each;
    this.#giveUpRetries();
    this.#endWait();
    this.#cancelRunning();
    if (each.attempt.host !== this.#host || each.connection !== this.#connection) {
      this.#host = each.attempt.host;
      this.#connection = each.connection;
      each.noteAgain(this.#attempts);
    }
    this.client.flags |= flag;
    const verdict = this.client.judgeResponse();
    if (verdict === Verdict.pass) return verdict;
    each.endTimes();
    this.#answered = null;
    return verdict;
  }

  #cancelRunning(): void {
    if (this.#running.length === 0) return;
    const others = this.#running;
    this.#running = NO_TRIES;
    for (const other of others) {
      this.#free(other);
      other.attempt.cancel(true);
    }
  }

  #giveUpRetries(): void {
    this.#terms = null;
    this.#companions = 0;
    this.#replay = null;
  }

  /** Every try there is; none of them is heard of any more. */
  #takeAll(): readonly TimedTry[] {
    const all = this.#running;
    this.#running = NO_TRIES;
    this.#endWait();
    this.#giveUpRetries();
    for (const each of all) this.#free(each);
    if (this.#answered === null) return all;
    this.#answered.endTimes();
    return [this.#answered, ...all];
  }

  /** It will have no answer, or none that goes on. */
  #leave(each: TimedTry): void {
    if (this.#takeOut(each)) this.#free(each);
  }

  /** @returns whether it was running. */
  #takeOut(each: TimedTry): boolean {
    const running = this.#running;
    if (!running.includes(each)) return false;
    this.#running = running.length === 1 ? NO_TRIES : running.filter((other) => other !== each);
    return true;
  }

  #free(each: TimedTry): void {
    each.endTimes();
    this.#freePlace(each);
  }

  #freePlace(each: TimedTry): void {
    each.place?.releaseRetry();
  }
}

function flagOf(decision: Decision): number {
  if (decision === Decision.limit) return ResponseFlag.URX;
  return decision === Decision.overflow ? ResponseFlag.UO : 0;
}
