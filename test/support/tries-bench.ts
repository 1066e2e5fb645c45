// A request to `web` that may be tried several times, as a test's plan has it, and the shorthand of tests around it.

import { shortFlags } from '../../src/data-plane/response-flags.ts';
import { compileRetryPolicy } from '../../src/data-plane/route/retry-policy.ts';
import { RequestTries, type TriesPlan } from '../../src/data-plane/router/request-tries.ts';
import { TriedHosts } from '../../src/data-plane/router/tried-hosts.ts';
import type { Host } from '../../src/data-plane/upstream/host.ts';
import type { RetrySettings } from '../../src/snapshot/index.ts';
import { ClusterPriority } from '../../src/wasm/shared-memory.ts';
import { AttemptBench, type AttemptBenchOptions, HEAD } from './attempt-bench.ts';
import { NO_LIMITS } from './clusters.ts';
import { retrySettings } from './routes.ts';

export const UNAVAILABLE = 'HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n';
export const RESET = 'failure connection termination';
/** Timers fire up to one tick late; retries wait for the next one. */
export const TICK_MS = 8;
/** Of a try, where a test gives it one. */
export const LIMIT_MS = 100;

export interface BenchOptions extends AttemptBenchOptions {
  readonly retry?: Partial<RetrySettings>;
  readonly plan?: Partial<TriesPlan>;
  readonly head?: string;
}

export class TriesBench extends AttemptBench {
  readonly request: RequestTries;

  constructor({ retry = {}, plan = {}, head = HEAD, ...options }: BenchOptions = {}) {
    super(options);
    this.request = this.further(retry, plan, head);
  }

  /** Another request, whose client is told of both. */
  further(retry: Partial<RetrySettings>, plan: Partial<TriesPlan>, head = HEAD): RequestTries {
    const policy = compileRetryPolicy(retrySettings(retry));
    return new RequestTries(this.context, this.client, this.cluster, head, {
      priority: ClusterPriority.default,
      attemptEdits: null,
      pickContext: null,
      clusters: this.clusters,
      policy,
      terms: policy,
      triedHosts: policy.hostPredicates.length > 0 ? new TriedHosts(policy) : null,
      perTryTimeoutMs: policy.perTryTimeoutMs,
      perTryIdleTimeoutMs: policy.perTryIdleTimeoutMs,
      maxTryDurationMs: 0,
      hedges: false,
      companions: 0,
      otherHosts: null,
      replayLimitBytes: 1000,
      timeoutMs: 0,
      expectedMs: 0,
      grpcExpectedMs: 0,
      tellsTimeoutRetry: false,
      ...plan,
    });
  }

  get flags(): string {
    return shortFlags(this.client.flags);
  }

  /** The upstream that came so many connections ago takes this one, or has it; what the client is told is taken off. */
  answered(text: string): string[] {
    this.client.news();
    if (this.upstream.isConnecting) this.upstream.accept();
    this.client.news();
    this.upstream.send(text);
    return this.client.news();
  }

  /** Whole, and sent. */
  begun(body = ''): this {
    this.start(this.request, body);
    this.upstream.accept();
    this.client.news();
    return this;
  }

  /** The wait of a retry is over; its connection is accepted. @returns what it has sent. */
  retried(): string {
    const before = this.sockets.length;
    const received = this.upstream.received.length;
    this.wait(2 * TICK_MS);
    if (this.upstream.isConnecting) this.upstream.accept();
    return this.sockets.length === before ? this.upstream.received.slice(received) : this.upstream.received;
  }
}

/** Turns down all hosts but the last of three. */
export class LastOfThree extends TriedHosts {
  override readonly maxDraws = 5;

  override accepts({ label }: Host): boolean {
    return label.endsWith(':3');
  }
}

/** So many retries at a time. */
export function limited(maxRetries: number): AttemptBenchOptions {
  const limits = { ...NO_LIMITS, maxRetries };
  return { cluster: { circuitBreakers: { default: limits, high: NO_LIMITS } } };
}
