// Answers the health checks that clients and other proxies make of this one, or lets them through to the upstream and
// remembers its answer. Worker thread; step 3 of the request flow. While the operator has checks fail, all of them
// get a 503 in whatever mode, and every response tells other proxies to stop sending requests here at once.

import {
  type EditableHead,
  type FilterCallbacks,
  type FilterContext,
  type FilterStatus,
  type HeadTest,
  type HttpFilter,
  type HttpFilterKind,
  type LocalReply,
  replaceField,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import type { HealthCheckFilterSettings } from './settings.ts';

const PASSED: LocalReply = { status: 200, body: '', flag: '-', details: 'health_check_ok' };
const FAILED: LocalReply = { status: 503, body: '', flag: 'LH', details: 'health_check_failed' };
const CLUSTER_UNKNOWN: LocalReply = { ...FAILED, details: 'health_check_failed_no_cluster_found' };
const CLUSTER_EMPTY: LocalReply = { ...FAILED, details: 'health_check_failed_cluster_empty' };
const CLUSTER_UNHEALTHY: LocalReply = { ...FAILED, details: 'health_check_failed_cluster_unhealthy' };

/** An upstream's answer, for a while also that of this worker. */
interface CachedAnswer {
  readonly reply: LocalReply;
  readonly isDegraded: boolean;
  /** Monotonic. */
  readonly untilMs: number;
}

/** What all requests of a connection manager share. */
class HealthCheck {
  readonly context: FilterContext;
  readonly settings: HealthCheckFilterSettings;
  readonly isCheck: HeadTest;
  #cached: CachedAnswer | null = null;

  constructor(settings: HealthCheckFilterSettings, context: FilterContext) {
    this.settings = settings;
    this.context = context;
    this.isCheck = context.compileHeaders(settings.headers);
  }

  get isForcedToFail(): boolean {
    return this.context.serverHealth.isFailing;
  }

  /** The answer of this proxy's own; it judges by the members of clusters as they are now. */
  judge(): LocalReply {
    for (const { name, minHealthyPercent } of this.settings.clusters) {
      const counts = this.context.countHosts(name);
      if (counts === undefined) return CLUSTER_UNKNOWN;
      if (minHealthyPercent === 0) continue;
      const { total, healthy, degraded } = counts;
      if (total === 0) return CLUSTER_EMPTY;
      // A degraded host serves, if need be.
      if (100 * (healthy + degraded) < total * minHealthyPercent) return CLUSTER_UNHEALTHY;
    }
    return PASSED;
  }

  cached(): CachedAnswer | null {
    const answer = this.#cached;
    return answer !== null && this.context.clock.monotonicMs() < answer.untilMs ? answer : null;
  }

  remember(status: number, isDegraded: boolean): void {
    const { cacheTimeMs } = this.settings;
    if (cacheTimeMs === 0) return;
    const flag = status === 503 ? 'LH' : '-';
    const reply: LocalReply = { status, body: '', flag, details: 'health_check_cached' };
    this.#cached = { reply, isDegraded, untilMs: this.context.clock.monotonicMs() + cacheTimeMs };
  }
}

class HealthCheckFilter implements HttpFilter {
  readonly #check: HealthCheck;
  readonly #callbacks: FilterCallbacks;
  #isCheck = false;
  #isOwnAnswer = false;
  #isDegraded = false;

  constructor(check: HealthCheck, callbacks: FilterCallbacks) {
    this.#check = check;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    const check = this.#check;
    if (!check.isCheck(head)) return 'continue';
    this.#isCheck = true;
    this.#callbacks.markHealthCheck();
    if (check.isForcedToFail) return this.#answer(FAILED);
    if (!check.settings.isPassThrough) return this.#answer(check.judge());
    const cached = check.cached();
    if (cached === null) return 'continue';
    this.#isDegraded = cached.isDegraded;
    return this.#answer(cached.reply);
  }

  encodeHeaders(head: EditableHead, status: number): FilterStatus {
    const { settings, context, isForcedToFail } = this.#check;
    const { headerNames } = context;
    if (isForcedToFail) replaceField(head, headerNames.immediateHealthCheckFail, 'true');
    if (!this.#isCheck) return 'continue';
    if (!this.#isOwnAnswer) this.#check.remember(status, head.hasField(headerNames.degraded));
    else if (this.#isDegraded) replaceField(head, headerNames.degraded, 'true');
    if (settings.localCluster !== '') replaceField(head, headerNames.healthCheckedCluster, settings.localCluster);
    return 'continue';
  }

  #answer(reply: LocalReply): FilterStatus {
    this.#isOwnAnswer = true;
    this.#callbacks.reply(reply);
    return 'stop';
  }
}

export const HEALTH_CHECK_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: true,
  responseBody: 'none',
  compile(settings, context) {
    const check = new HealthCheck(settings as HealthCheckFilterSettings, context);
    return (callbacks) => new HealthCheckFilter(check, callbacks);
  },
};
