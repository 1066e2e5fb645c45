// What one check after the other makes of a host: thresholds, flags, events. Knows no time and no sockets. Main thread.
//
//   UNHEALTHY (failed flag set, as every host begins) ──healthy threshold, or the first check──► HEALTHY
//   HEALTHY ──unhealthy threshold of network failures, or one answer that is wrong──► UNHEALTHY

import { HealthFlag } from '../../../wasm/shared-memory.ts';

const {
  failedActiveHealthCheck: FAILED,
  degradedActiveHealthCheck: DEGRADED,
  pendingActiveHealthCheck: PENDING,
  excludedViaImmediateHealthCheckFail: IMMEDIATE_FAIL,
  activeHealthCheckTimeout: TIMED_OUT,
} = HealthFlag;

/**
 * `active`: an answer to a check that is wrong. `passive`: an answer to a request of a client that asks to be left out.
 * The network failures say nothing about the service itself.
 */
export type FailureType = 'active' | 'passive' | 'network' | 'network-timeout';

/** `pending`: on its way to a change, the threshold has not been reached. */
export type Transition = 'unchanged' | 'pending' | 'changed';

export type CheckEvent =
  | { readonly kind: 'eject-unhealthy'; readonly failureType: FailureType }
  | { readonly kind: 'add-healthy'; readonly isFirstCheck: boolean }
  | { readonly kind: 'failure'; readonly failureType: FailureType; readonly isFirstCheck: boolean }
  | { readonly kind: 'degraded' }
  | { readonly kind: 'no-longer-degraded' }
  | { readonly kind: 'success' };

export interface Verdict {
  readonly transition: Transition;
  readonly events: readonly CheckEvent[];
}

/** The flags of a host, where workers see them. */
export interface FlaggedHost {
  readonly healthFlags: number;
  setHealthFlags(flags: number, isSet: boolean): void;
}

export interface CheckStateSettings {
  readonly unhealthyThreshold: number;
  readonly healthyThreshold: number;
  readonly alwaysLogsFailures: boolean;
  readonly alwaysLogsSuccess: boolean;
}

export class CheckState {
  readonly #settings: CheckStateSettings;
  readonly #host: FlaggedHost;
  /** Checks in a row of one kind. */
  #passes = 0;
  #failures = 0;
  #isFirstCheck = true;

  constructor(settings: CheckStateSettings, host: FlaggedHost) {
    this.#settings = settings;
    this.#host = host;
  }

  /** True until a check has ended. */
  get isFirstCheck(): boolean {
    return this.#isFirstCheck;
  }

  pass(isDegraded: boolean): Verdict {
    const events: CheckEvent[] = [];
    let transition: Transition = 'unchanged';
    this.#failures = 0;
    if (this.#has(FAILED)) {
      transition = 'pending';
      if (this.#isFirstCheck || ++this.#passes >= this.#settings.healthyThreshold) {
        this.#host.setHealthFlags(FAILED | IMMEDIATE_FAIL | TIMED_OUT, false);
        transition = 'changed';
        events.push({ kind: 'add-healthy', isFirstCheck: this.#isFirstCheck });
      }
    }
    transition = this.#clearPending(transition);
    if (isDegraded !== this.#has(DEGRADED)) {
      this.#host.setHealthFlags(DEGRADED, isDegraded);
      transition = 'changed';
      events.push({ kind: isDegraded ? 'degraded' : 'no-longer-degraded' });
    }
    if (this.#settings.alwaysLogsSuccess) events.push({ kind: 'success' });
    this.#isFirstCheck = false;
    return { transition, events };
  }

  /**
   * @param isRetriable a wrong answer that counts toward the threshold all the same.
   * @param isImmediate the host has asked to be left out for good.
   */
  fail(failureType: FailureType, isRetriable = false, isImmediate = false): Verdict {
    const events: CheckEvent[] = [];
    let transition: Transition = 'unchanged';
    this.#passes = 0;
    if (!this.#has(FAILED)) {
      transition = 'pending';
      const isNetwork = failureType === 'network' || failureType === 'network-timeout';
      const isFinal = !isNetwork && !isRetriable;
      if (isFinal || ++this.#failures >= this.#settings.unhealthyThreshold) {
        this.#host.setHealthFlags(FAILED, true);
        transition = 'changed';
        events.push({ kind: 'eject-unhealthy', failureType });
      }
    }
    if (isImmediate && !this.#has(IMMEDIATE_FAIL)) {
      this.#host.setHealthFlags(IMMEDIATE_FAIL, true);
      transition = 'changed';
    }
    this.#host.setHealthFlags(TIMED_OUT, failureType === 'network-timeout' && this.#has(FAILED));
    transition = this.#clearPending(transition);
    if (this.#isFirstCheck || this.#settings.alwaysLogsFailures) {
      events.push({ kind: 'failure', failureType, isFirstCheck: this.#isFirstCheck });
    }
    this.#isFirstCheck = false;
    return { transition, events };
  }

  #has(flag: number): boolean {
    return (this.#host.healthFlags & flag) !== 0;
  }

  /** A host that counted for nothing until now counts from its first check on. */
  #clearPending(transition: Transition): Transition {
    if (!this.#has(PENDING)) return transition;
    this.#host.setHealthFlags(PENDING, false);
    return 'changed';
  }
}
