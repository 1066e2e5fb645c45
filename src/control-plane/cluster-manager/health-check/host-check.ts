// The checks of one host, one after the other. Main thread.
//
//   start ──initial jitter──► CHECKING ──result or timeout──► WAITING ──interval──► CHECKING …
//                                 └────────────stop──────────────┴──────► STOPPED

import type { Clock } from '../../../base/clock.ts';
import type { Random } from '../../../base/random.ts';
import type { HealthCheckSettings } from '../../../snapshot/index.ts';
import { checkIntervalMs, type IntervalBounds } from './check-interval.ts';
import { CheckState, type FailureType, type FlaggedHost, type Verdict } from './check-state.ts';
import type { Probe, ProbeResult, ProbeTarget } from './probe.ts';

/** Timers are never quite on time; from here on the thread was busy with something else. */
const LATE_MS = 5;

/** How a check ended, for those who ask why a host is in the state that it is in. */
export interface CheckRecord {
  /** `request`: what the host has answered to a client. */
  readonly kind: 'http' | 'tcp' | 'grpc' | 'redis' | 'request';
  /** Milliseconds since the Unix epoch. */
  readonly endedMs: number;
  readonly hasPassed: boolean;
  /** `HTTP 503`, `ECONNREFUSED`, `no answer within 1000 ms`. */
  readonly detail: string;
}

/** A host as its checks see it. */
export interface CheckableHost extends FlaggedHost {
  /** Where to ask now. */
  target(settings: HealthCheckSettings): ProbeTarget;
  /** @param isDeciding the host is in another state since. */
  noteCheck(record: CheckRecord, isDeciding: boolean): void;
}

export interface HostCheckTools {
  readonly clock: Clock;
  readonly random: Random;
  readonly bounds: () => IntervalBounds;
  readonly hasTraffic: () => boolean;
}

export interface HostCheckListener {
  onAttempt(): void;
  onVerdict(check: HostCheck, verdict: Verdict, failureType: FailureType | undefined): void;
}

export class HostCheck {
  readonly host: CheckableHost;
  /** What the owner's counts know of the host; undefined before and after. */
  countedFlags: number | undefined;
  readonly #settings: HealthCheckSettings;
  readonly #tools: HostCheckTools;
  readonly #probe: Probe;
  readonly #listener: HostCheckListener;
  readonly #state: CheckState;
  #cancelTimer: () => void = () => {};
  /** When the answer is due; what is left until then while the check is on hold. */
  #dueMs = 0;

  constructor(
    host: CheckableHost,
    settings: HealthCheckSettings,
    tools: HostCheckTools,
    probe: Probe,
    listener: HostCheckListener,
  ) {
    this.host = host;
    this.#settings = settings;
    this.#tools = tools;
    this.#probe = probe;
    this.#listener = listener;
    this.#state = new CheckState(settings, host);
  }

  /** True until a check has ended. */
  get isUnchecked(): boolean {
    return this.#state.isFirstCheck;
  }

  start(): void {
    const { initialJitterMs } = this.#settings.intervals;
    const delayMs = initialJitterMs > 0 ? this.#tools.random.u32() % initialJitterMs : 0;
    if (delayMs === 0) this.#check();
    else this.#cancelTimer = this.#tools.clock.after(delayMs, () => this.#check());
  }

  stop(): void {
    // First: what it has on hold goes on.
    this.#probe.abort();
    this.#cancelTimer();
  }

  /** The check under way waits for something of this process, not for the host: its time stands still. */
  hold(): void {
    this.#cancelTimer();
    this.#dueMs -= this.#tools.clock.monotonicMs();
  }

  /** The host's time goes on; after `hold`. */
  goOn(): void {
    this.#awaitAnswer(this.#dueMs, true);
  }

  /** The host has asked in an answer to a client to be left out. The next check comes when it would have come anyway. */
  failPassively(): void {
    const verdict = this.#state.fail('passive', false, true);
    this.#note('request', false, 'asked to be left out', verdict);
    this.#listener.onVerdict(this, verdict, 'passive');
  }

  #check(): void {
    this.#listener.onAttempt();
    this.#awaitAnswer(this.#settings.timeoutMs, true);
    this.#probe.check(this.host.target(this.#settings), (result) => {
      this.#cancelTimer();
      this.#conclude(result);
    });
  }

  /**
   * A timer that fires late has waited for this thread, and so has what the host may have answered: the host gets that
   * time back, once, or it would be unhealthy for our own work.
   */
  #awaitAnswer(forMs: number, mayBeLate: boolean): void {
    const { clock } = this.#tools;
    this.#dueMs = clock.monotonicMs() + forMs;
    this.#cancelTimer = clock.after(forMs, () => {
      const lateMs = clock.monotonicMs() - this.#dueMs;
      if (mayBeLate && lateMs >= LATE_MS) this.#awaitAnswer(lateMs, false);
      else this.#timeOut();
    });
  }

  #timeOut(): void {
    this.#probe.abort();
    const detail = `no answer within ${this.#settings.timeoutMs} ms`;
    this.#end(this.#state.fail('network-timeout'), 'network-timeout', detail);
  }

  #conclude(result: ProbeResult): void {
    const { kind, detail } = result;
    if (kind === 'broken') this.#end(this.#state.fail('network'), 'network', detail);
    else if (kind === 'passed') this.#end(this.#state.pass(result.isDegraded), undefined, detail);
    else this.#end(this.#state.fail('active', result.isRetriable, result.isImmediate), 'active', detail);
  }

  #end(verdict: Verdict, failureType: FailureType | undefined, detail: string): void {
    const { clock, random, bounds, hasTraffic } = this.#tools;
    const hasPassed = failureType === undefined;
    this.#note(this.#settings.probe.kind, hasPassed, detail, verdict);
    const { intervals } = this.#settings;
    const waitMs = checkIntervalMs(intervals, hasPassed, verdict.transition, hasTraffic(), bounds(), random);
    this.#cancelTimer = clock.after(waitMs, () => this.#check());
    // Last: who hears of it may stop the check.
    this.#listener.onVerdict(this, verdict, failureType);
  }

  #note(kind: CheckRecord['kind'], hasPassed: boolean, detail: string, { transition }: Verdict): void {
    const record = { kind, endedMs: this.#tools.clock.wallMs(), hasPassed, detail };
    this.host.noteCheck(record, transition === 'changed');
  }
}
