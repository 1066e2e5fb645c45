// Requests to one cluster, `web`, without a client and without a route: upstreams do what a test says when it says so, by
// a clock turned by hand, and what the request's client is told is noted.

import assert from 'node:assert/strict';
import type { StreamLimit } from '../../src/data-plane/http/stream-limits.ts';
import type { Trailers } from '../../src/data-plane/http/trailers.ts';
import type { DownstreamConnection } from '../../src/data-plane/network/downstream-connection.ts';
import type { AttemptEdits } from '../../src/data-plane/route/attempt-edits.ts';
import type { RequestTally } from '../../src/data-plane/route/request-tally.ts';
import { type RequestClient, Verdict } from '../../src/data-plane/router/attempt-client.ts';
import type { ForwardedRequest } from '../../src/data-plane/router/forwarded-request.ts';
import { UpstreamAttempt } from '../../src/data-plane/router/upstream-attempt.ts';
import type { Cluster } from '../../src/data-plane/upstream/cluster.ts';
import { ClusterMap } from '../../src/data-plane/upstream/cluster-map.ts';
import type { Host } from '../../src/data-plane/upstream/host.ts';
import type { HostSelection } from '../../src/data-plane/upstream/host-selection.ts';
import { contextFor } from '../../src/data-plane/upstream/load-balancer/pick-context.ts';
import type { OverrideHost } from '../../src/data-plane/upstream/override-hosts.ts';
import { type ClusterSnapshot, packClusters } from '../../src/snapshot/index.ts';
import {
  type CLUSTER_STATS,
  type HOST_STATS,
  MESSAGE_SIZE_STATS,
  OUTLIER_HOST_STATS,
  TIMEOUT_BUDGET_STATS,
} from '../../src/stats/index.ts';
import { Framing, Method } from '../../src/wasm/http1.ts';
import { ClusterCount, ClusterPriority } from '../../src/wasm/shared-memory.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from './upstream-workers.ts';

export const HEAD = 'GET / HTTP/1.1\r\nhost: h\r\n\r\n';
export const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
export const EMPTY = Buffer.alloc(0);

/** Whom a request is sent for. */
export class NotingClient implements RequestClient {
  methodId: number = Method.GET;
  isGrpc = false;
  isInternal = false;
  tally: RequestTally | null = null;
  overrideHost: OverrideHost | null = null;
  isSecured = false;
  downstream: DownstreamConnection | null = null;
  timeoutMs = 0;
  perTryTimeoutMs = 0;
  bufferLimitBytes = 1024 * 1024;
  awaitsTunnel = false;
  awaitsUpgrade = false;
  readonly matchesUpstreamScheme = false;
  readonly upstreamWire = null;
  isRequestComplete = true;
  requestCompleteMs = 0;
  requestFraming: number = Framing.NONE;
  requestTrailers: Trailers | null = null;
  responseTrailers: Trailers | null = null;
  flags = 0;
  verdict: Verdict = Verdict.pass;
  /** Takes what comes of the response. */
  isFast = true;
  /** What it was told, in order. */
  readonly told: string[] = [];
  /** Heads that went out. */
  readonly heads: string[] = [];
  /** Done when the response is judged. */
  onJudge: () => void = () => {};
  readonly #status: () => number;

  constructor(status: () => number) {
    this.#status = status;
  }

  /** What it was told since it was asked last. */
  news(): string[] {
    return this.told.splice(0);
  }

  onUpstreamHost({ label }: Host, attempts: number): void {
    this.told.push(`host ${label} #${attempts}`);
  }

  onUpstreamConnection(_connection: unknown, head: string): void {
    this.told.push('connection');
    this.heads.push(head);
  }

  traceAttempt(): null {
    return null;
  }

  logAttempt(): null {
    return null;
  }

  onUpstreamWritable(): void {
    this.told.push('writable');
  }

  judgeResponse(): Verdict {
    this.told.push(`judge ${this.#status()}`);
    this.onJudge();
    return this.verdict;
  }

  onInterimHead(): boolean {
    return false;
  }

  onResponseHead(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean {
    this.told.push(`head ${bytes.toString('latin1', start, end)}${isEnd ? '|' : ''} @${nowMs}`);
    return this.isFast;
  }

  onResponseBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean {
    this.told.push(`body ${bytes.toString('latin1', start, end)}${isEnd ? '|' : ''}${isSlab ? ' slab' : ''} @${nowMs}`);
    return this.isFast;
  }

  onNoHealthyUpstream(): void {
    this.told.push('no host');
  }

  onUpstreamFailure(failure: string, transport: string, wasRetried: boolean): void {
    this.told.push(`failure ${failure}${transport === '' ? '' : ` (${transport})`}${wasRetried ? ', retried' : ''}`);
  }

  useCluster({ name }: Cluster): void {
    this.told.push(`cluster ${name}`);
  }

  onTryLimit({ reply }: StreamLimit): void {
    this.told.push(`limit ${reply.details}`);
  }

  onReplayAbandoned(): void {
    this.told.push('abandoned');
  }
}

export interface AttemptBenchOptions {
  readonly cluster?: Partial<ClusterSnapshot['settings']>;
  readonly hosts?: number;
  readonly isHealthChecked?: boolean;
  readonly hostFields?: Partial<ClusterSnapshot['hosts'][number]>;
  /** By host; 0 without. */
  readonly priorities?: readonly number[];
}

export class AttemptBench {
  readonly sockets: FakeUpstreamSocket[] = [];
  readonly workers = new UpstreamWorkers(1, (socket) => void this.sockets.push(socket));
  readonly context = this.workers.contexts[0]!;
  readonly client = new NotingClient(() => this.context.codec.response.status);
  readonly clusters = new ClusterMap(this.context);
  readonly snapshot: ClusterSnapshot;

  constructor({
    cluster = {},
    hosts = 1,
    isHealthChecked = false,
    hostFields = {},
    priorities = [],
  }: AttemptBenchOptions = {}) {
    const members = this.workers.cluster(hosts, cluster);
    const outlierBlock = cluster.outlierDetection ? this.workers.statBlock(OUTLIER_HOST_STATS) : 0;
    this.snapshot = this.workers.balanced({
      ...members,
      isHealthChecked,
      hosts: members.hosts.map((host, index) => {
        return { ...host, outlierBlock, priority: priorities[index] ?? 0, ...hostFields };
      }),
    });
    this.publish(this.snapshot);
    this.client.requestCompleteMs = this.nowMs;
  }

  /** Main's cluster reaches the worker. */
  publish(snapshot: ClusterSnapshot): void {
    this.clusters.update(packClusters([snapshot]), [], () => {});
  }

  get cluster(): Cluster {
    return this.clusters.get('web')!;
  }

  /** The connection that came last. */
  get upstream(): FakeUpstreamSocket {
    return this.sockets.at(-1)!;
  }

  get nowMs(): number {
    return this.workers.clock.monotonicMs();
  }

  wait(ms: number): void {
    this.workers.clock.turn(ms);
  }

  /** Starts a request that is complete. */
  start(request: ForwardedRequest, body = '', isEnd = true): void {
    const bytes = Buffer.from(`..${body}..`, 'latin1');
    request.start(bytes, 2, bytes.length - 2, isEnd);
  }

  /** More of the body. */
  send(request: ForwardedRequest, body: string, isEnd = false): boolean {
    const bytes = Buffer.from(`..${body}..`, 'latin1');
    return request.send(bytes, 2, bytes.length - 2, isEnd);
  }

  stat(name: keyof typeof CLUSTER_STATS.index): number {
    return this.workers.clusterStat(this.snapshot, name) + 0;
  }

  /** Those of the counters of a host that are not 0, without `rq_`. */
  hostCounts(host = 0): Record<string, number> {
    const names = ['rq_active', 'rq_error', 'rq_success', 'rq_timeout', 'rq_total'] as const;
    const counts = names.map(
      (name: keyof typeof HOST_STATS.index) =>
        [name.slice(3), this.workers.hostStat(this.snapshot, host, name)] as const,
    );
    return Object.fromEntries(counts.filter(([, count]) => count > 0));
  }

  /** Of a cluster with outlier detection. */
  outlierCount(name: keyof typeof OUTLIER_HOST_STATS.index): number {
    const { stats } = this.context;
    return stats.values[stats.base(this.snapshot.hosts[0]!.outlierBlock) + OUTLIER_HOST_STATS.index[name]]! + 0;
  }

  /** What a cluster that tracks timeout budgets has recorded. */
  budgets(name: keyof typeof TIMEOUT_BUDGET_STATS.index): readonly number[] {
    return this.workers.samples(this.snapshot.budgetBlock, TIMEOUT_BUDGET_STATS.index[name]);
  }

  /** What one that tracks the sizes of messages has. */
  sizes(name: keyof typeof MESSAGE_SIZE_STATS.index): readonly number[] {
    return this.workers.samples(this.snapshot.sizeBlock, MESSAGE_SIZE_STATS.index[name]);
  }

  /** Under the circuit breaker. */
  places(count: keyof typeof ClusterCount, priority: ClusterPriority = ClusterPriority.default): number {
    return this.workers.records.clusterCount(this.snapshot.recordAddress, priority, ClusterCount[count]);
  }

  /** Whatever the worker does by itself at once. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await null;
  }

  /** No request is under way, none holds a place, and nothing was thrown. */
  assertNothingLeft(): void {
    assert.ok(!this.workers.dynamicStats().includes('server.contained_faults'));
    for (const priority of [ClusterPriority.default, ClusterPriority.high]) {
      for (const count of ['pendingRequests', 'requests', 'retries'] as const) {
        assert.equal(this.places(count, priority), 0, count);
      }
    }
    assert.equal(this.stat('upstream_rq_active'), 0);
    assert.equal(this.stat('upstream_rq_pending_active'), 0);
  }
}

export interface AttemptOptions {
  readonly head?: string;
  readonly edits?: AttemptEdits;
  readonly selection?: HostSelection;
  readonly before?: number;
  readonly priority?: ClusterPriority;
  /** The port that the request names, of a cluster where no balancer chooses. */
  readonly port?: number;
}

export function attemptOf(bench: AttemptBench, options: AttemptOptions = {}): UpstreamAttempt {
  const { head = HEAD, edits = null, selection = null, before = 0, priority = ClusterPriority.default, port } = options;
  const pick = port === undefined ? null : contextFor({ kind: 'ip', ip: '127.0.0.1', port });
  return new UpstreamAttempt(
    bench.context,
    bench.client,
    bench.cluster,
    priority,
    head,
    edits,
    pick,
    selection,
    before,
  );
}

/** Whose request has a connection; what has been told so far is taken off. */
export function sending(
  bench: AttemptBench,
  options: AttemptOptions & { body?: string; isEnd?: boolean } = {},
): UpstreamAttempt {
  const attempt = attemptOf(bench, options);
  bench.start(attempt, options.body, options.isEnd);
  if (bench.upstream.isConnecting) bench.upstream.accept();
  bench.client.news();
  return attempt;
}
