// Asks a service of rate limits about each connection, which waits for the answer; nothing behind knows of it before. Worker thread.
//
//   new connection ──► asked ──OK──► goes on
//                        ├──OVER_LIMIT──► closed, where that is enforced
//                        └──no answer──► goes on, or is closed (failure_mode_deny)

import {
  type CallAnswer,
  type CallReceiver,
  type NetworkFilter,
  type NetworkFilterCallbacks,
  type NetworkFilterContext,
  type NetworkFilterKind,
  type NetworkFilterStatus,
  TextFormatter,
} from '../../../data-plane/index.ts';
import { unaryAnswer, unaryCall } from '../../filters.http/grpc/unary-call.ts';
import {
  type Asked,
  decodeLimitResponse,
  encodeLimitRequest,
  type LimitAnswer,
} from '../../filters.http/ratelimit/service.ts';
import type { NetworkRateLimitSettings } from './settings.ts';

const NAMESPACE = 'envoy.filters.network.ratelimit';
const MAX_ANSWER_BYTES = 64 * 1024;
const ALL = { numerator: 100, denominator: 100 };

/** What all connections of a chain share. */
class RateLimits {
  readonly settings: NetworkRateLimitSettings;
  readonly path: string;
  readonly isEnabled: () => boolean;
  readonly isEnforced: () => boolean;
  readonly total;
  readonly ok;
  readonly overLimit;
  readonly error;
  readonly failureModeAllowed;
  readonly closed;
  readonly active;
  readonly #descriptors;

  constructor(settings: NetworkRateLimitSettings, context: NetworkFilterContext) {
    this.settings = settings;
    this.path = `/envoy.service.ratelimit.${settings.service.generation}.RateLimitService/ShouldRateLimit`;
    this.isEnabled = context.share({ key: 'ratelimit.tcp_filter_enabled', default: ALL });
    this.isEnforced = context.share({ key: 'ratelimit.tcp_filter_enforcing', default: ALL });
    this.total = context.counter('total');
    this.ok = context.counter('ok');
    this.overLimit = context.counter('over_limit');
    this.error = context.counter('error');
    this.failureModeAllowed = context.counter('failure_mode_allowed');
    this.closed = context.counter('cx_closed');
    this.active = context.gauge('active');
    this.#descriptors = settings.descriptors.map(({ entries, limit, hits }) => ({
      entries: entries.map(({ key, value }) => ({ key, format: new TextFormatter(value, { missing: '' }) })),
      limit,
      hits,
    }));
  }

  asked(callbacks: NetworkFilterCallbacks): readonly Asked[] {
    const facts = callbacks.formatFacts();
    return this.#descriptors.map(({ entries, limit, hits }) => ({
      entries: entries.map(({ key, format }) => [key, format.render(facts)] as const),
      limit,
      hits,
    }));
  }
}

class RateLimitFilter implements NetworkFilter, CallReceiver {
  readonly #limits: RateLimits;
  readonly #callbacks: NetworkFilterCallbacks;
  #isAsking = false;

  constructor(limits: RateLimits, callbacks: NetworkFilterCallbacks) {
    this.#limits = limits;
    this.#callbacks = callbacks;
  }

  onNewConnection(): NetworkFilterStatus {
    const { settings, path, isEnabled, total, active } = this.#limits;
    if (!isEnabled()) return 'continue';
    this.#isAsking = true;
    total.add(1);
    active.add(1);
    const message = encodeLimitRequest(settings.domain, this.#limits.asked(this.#callbacks));
    this.#callbacks.call(unaryCall(settings.service, path, message, MAX_ANSWER_BYTES), this);
    return 'stop';
  }

  onAnswer(answer: CallAnswer): void {
    this.#act(readAnswer(answer));
  }

  onCallFailure(): void {
    this.#act(null);
  }

  onClosed(): void {
    this.#settle();
  }

  #act(answer: LimitAnswer | null): void {
    const { ok, overLimit, error, failureModeAllowed, settings, isEnforced } = this.#limits;
    this.#settle();
    if (answer === null) {
      error.add(1);
      if (settings.deniesFailure) {
        this.#close('ratelimit_error');
        return;
      }
      failureModeAllowed.add(1);
      this.#callbacks.continueReading();
      return;
    }
    if (answer.metadata !== null) this.#callbacks.addMetadata(NAMESPACE, answer.metadata);
    (answer.isOverLimit ? overLimit : ok).add(1);
    if (answer.isOverLimit && isEnforced()) this.#close('ratelimit_close_over_limit');
    else this.#callbacks.continueReading();
  }

  #close(details: string): void {
    this.#limits.closed.add(1);
    this.#callbacks.close({ details, flag: 'RL' });
  }

  /** The question is over, by an answer or with its connection. */
  #settle(): void {
    if (!this.#isAsking) return;
    this.#isAsking = false;
    this.#limits.active.add(-1);
  }
}

/** Null where the service has failed, or says anything else. */
function readAnswer(answer: CallAnswer): LimitAnswer | null {
  const message = unaryAnswer(answer);
  if (message === null) return null;
  try {
    return decodeLimitResponse(message);
  } catch {
    return null;
  }
}

export const NETWORK_RATE_LIMIT_FILTER: NetworkFilterKind = {
  isTerminal: false,
  readsData: false,
  compile(settings, context) {
    const limits = new RateLimits(settings as NetworkRateLimitSettings, context);
    return { create: (callbacks) => new RateLimitFilter(limits, callbacks) };
  },
};
