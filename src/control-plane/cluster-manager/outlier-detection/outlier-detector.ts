// Finds the hosts of one cluster that fail more than they should, and takes them out of service for a while. Main thread.
// Owns the timer of the interval.
//
// Workers count, and tell when a host has failed often enough in a row. Hosts are compared here, once an interval; there
// ejections end, too. An ejection is a flag of the host: its listener makes new host lists.

import type { Clock } from '../../../base/clock.ts';
import type { Random } from '../../../base/random.ts';
import type { RuntimeDerived, RuntimeValues } from '../../../base/runtime.ts';
import { OUTLIER_DETECTION, OUTLIER_KEYS, OUTLIER_SHARE_KEYS } from '../../../base/runtime-values.ts';
import type { ConsecutiveKind, OutlierKind, OutlierLimits, OutlierSettings } from '../../../snapshot/index.ts';
import { OUTLIER_STATS, type StatsStore } from '../../../stats/index.ts';
import { FailureRow, HealthFlag } from '../../../wasm/shared-memory.ts';
import type { ActiveHost } from '../active-host.ts';
import { EjectionState, type Origin } from './ejection-state.ts';
import type { OutlierEvent, OutlierEventLog } from './event-log.ts';
import {
  compareRates,
  type HostRate,
  NO_RATES,
  type OutlierRates,
  type RateLimits,
  type Rates,
  rateOf,
} from './success-rate.ts';

const { failedOutlierCheck: EJECTED, failedActiveHealthCheck: FAILED_CHECK } = HealthFlag;
const ALL = 100;
/** The stdev factor counts thousandths. */
const FACTOR_SCALE = 1000;

const ROWS: Readonly<Record<ConsecutiveKind, FailureRow>> = {
  'consecutive-5xx': FailureRow.serverErrors,
  'consecutive-gateway-failure': FailureRow.gatewayFailures,
  'consecutive-local-origin-failure': FailureRow.localFailures,
};
const KINDS = {
  external: { successRate: 'success-rate', failurePercentage: 'failure-percentage' },
  local: { successRate: 'local-origin-success-rate', failurePercentage: 'local-origin-failure-percentage' },
} as const;

/** What was found out, and what had consequences. */
const COUNTERS = {
  'consecutive-5xx': {
    detected: 'ejections_detected_consecutive_5xx',
    enforced: 'ejections_enforced_consecutive_5xx',
  },
  'consecutive-gateway-failure': {
    detected: 'ejections_detected_consecutive_gateway_failure',
    enforced: 'ejections_enforced_consecutive_gateway_failure',
  },
  'consecutive-local-origin-failure': {
    detected: 'ejections_detected_consecutive_local_origin_failure',
    enforced: 'ejections_enforced_consecutive_local_origin_failure',
  },
  'success-rate': {
    detected: 'ejections_detected_success_rate',
    enforced: 'ejections_enforced_success_rate',
  },
  'local-origin-success-rate': {
    detected: 'ejections_detected_local_origin_success_rate',
    enforced: 'ejections_enforced_local_origin_success_rate',
  },
  'failure-percentage': {
    detected: 'ejections_detected_failure_percentage',
    enforced: 'ejections_enforced_failure_percentage',
  },
  'local-origin-failure-percentage': {
    detected: 'ejections_detected_local_origin_failure_percentage',
    enforced: 'ejections_enforced_local_origin_failure_percentage',
  },
} as const satisfies Readonly<Record<OutlierKind, object>>;

/** The same for all clusters. */
export interface OutlierTools {
  readonly clock: Clock;
  readonly random: Random;
  readonly runtime: RuntimeValues;
  readonly stats: Pick<StatsStore, 'scope'>;
  readonly events: OutlierEventLog;
}

/** The cluster whose hosts are watched. */
export interface WatchedCluster {
  readonly name: string;
  readonly statName: string;
  /** A host has been ejected, or is back. */
  onHealthChange(host: ActiveHost): void;
}

export class OutlierDetector implements OutlierRates {
  readonly #settings: OutlierSettings;
  readonly #limits: RuntimeDerived<OutlierLimits>;
  readonly #cluster: WatchedCluster;
  readonly #tools: OutlierTools;
  readonly #stats;
  /** By the address of the host's record, which is how workers name it. */
  #hosts = new Map<number, EjectionState>();
  #ejected = 0;
  readonly #rates: Record<Origin, Rates> = { external: NO_RATES, local: NO_RATES };
  #cancelTimer: (() => void) | undefined;

  constructor(settings: OutlierSettings, cluster: WatchedCluster, tools: OutlierTools) {
    this.#settings = settings;
    this.#cluster = cluster;
    this.#tools = tools;
    this.#limits = tools.runtime.derived((values) => values.overriding(OUTLIER_DETECTION, OUTLIER_KEYS, settings));
    this.#stats = tools.stats.scope(`cluster.${cluster.statName}.outlier_detection.`).allocate(OUTLIER_STATS);
  }

  get successRateAverage(): number {
    return this.#rates.external.average;
  }

  get successRateEjectionThreshold(): number {
    return this.#rates.external.threshold;
  }

  get localOriginSuccessRateAverage(): number {
    return this.#rates.local.average;
  }

  get localOriginSuccessRateEjectionThreshold(): number {
    return this.#rates.local.threshold;
  }

  /** Idempotent. */
  start(): void {
    this.#cancelTimer ??= this.#arm();
  }

  /** Idempotent. */
  stop(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  /** From now on these hosts are watched; those that were before go on as they are. */
  setHosts(hosts: readonly ActiveHost[]): void {
    const former = this.#hosts;
    this.#hosts = new Map(
      hosts.map((host) => {
        const known = former.get(host.recordAddress);
        return [host.recordAddress, known?.host === host ? known : new EjectionState(host)];
      }),
    );
    for (const [record, { host }] of former) {
      if (this.#hosts.get(record)?.host !== host && host.isEjected) this.#countEjected(-1);
    }
  }

  /** These are watched, too; none of them was before. */
  addHosts(hosts: readonly ActiveHost[]): void {
    for (const host of hosts) this.#hosts.set(host.recordAddress, new EjectionState(host));
  }

  /** A worker has seen a host fail as often in a row as it may. @param recordAddress of the host, which may have gone. */
  failedInRow(recordAddress: number, kind: ConsecutiveKind): void {
    const state = this.#hosts.get(recordAddress);
    if (state === undefined || state.host.isEjected) return;
    if (kind === 'consecutive-5xx') this.#stats.add('ejections_consecutive_5xx');
    this.#detected(state, kind, 0);
    // What comes next begins anew, also when nothing came of this.
    state.host.endFailures(ROWS[kind]);
  }

  /** An active health check has passed. */
  checkPassed(host: ActiveHost): void {
    const state = this.#hosts.get(host.recordAddress);
    if (!this.#settings.endsWithPassedCheck || state === undefined || !host.isEjected) return;
    if ((host.healthFlags & FAILED_CHECK) === 0) this.#uneject(state, this.#tools.clock.monotonicMs());
  }

  #arm(): () => void {
    return this.#tools.clock.after(this.#limits.value.intervalMs, () => {
      this.#cancelTimer = this.#arm();
      this.#endInterval();
    });
  }

  #endInterval(): void {
    const nowMs = this.#tools.clock.monotonicMs();
    const limits = this.#limits.value;
    for (const state of this.#hosts.values()) {
      if (state.host.isEjected && state.isOver(nowMs, limits)) this.#uneject(state, nowMs);
      state.endInterval();
      state.host.successRate = NO_RATES.average;
      state.host.localOriginSuccessRate = NO_RATES.average;
    }
    this.#compareHosts('external', limits);
    this.#compareHosts('local', limits);
    for (const state of this.#hosts.values()) if (!state.host.isEjected) state.forgive(nowMs, limits);
  }

  #compareHosts(origin: Origin, limits: OutlierLimits): void {
    this.#rates[origin] = NO_RATES;
    const forRate: RateLimits = {
      minimumHosts: limits.successRateMinimumHosts,
      requestVolume: limits.successRateRequestVolume,
    };
    const forPercentage: RateLimits = {
      minimumHosts: limits.failurePercentageMinimumHosts,
      requestVolume: limits.failurePercentageRequestVolume,
    };
    if (this.#hosts.size < Math.min(forRate.minimumHosts, forPercentage.minimumHosts)) return;
    const shownFrom = Math.min(forRate.requestVolume, forPercentage.requestVolume);
    // Both lists are made before anyone is ejected: an ejection changes neither.
    const comparable = this.#ratesOf(origin, forRate.requestVolume);
    const judged = this.#ratesOf(origin, forPercentage.requestVolume);
    for (const { host, rate } of this.#ratesOf(origin, shownFrom)) {
      if (origin === 'external') host.host.successRate = rate;
      else host.host.localOriginSuccessRate = rate;
    }
    if (comparable.length > 0 && comparable.length >= forRate.minimumHosts) {
      const factor = limits.successRateStdevFactor / FACTOR_SCALE;
      const rates = compareRates(
        comparable.map(({ rate }) => rate),
        factor,
      );
      this.#rates[origin] = rates;
      for (const { host, rate } of comparable) {
        if (rate >= rates.threshold) continue;
        this.#stats.add('ejections_success_rate');
        this.#detected(host, KINDS[origin].successRate, rate);
      }
    }
    if (judged.length >= forPercentage.minimumHosts) {
      for (const { host, rate } of judged) {
        if (ALL - rate >= limits.failurePercentageThreshold) {
          this.#detected(host, KINDS[origin].failurePercentage, rate);
        }
      }
    }
  }

  /** Of the hosts in service that have had enough requests. */
  #ratesOf(origin: Origin, requestVolume: number): HostRate<EjectionState>[] {
    const rates: HostRate<EjectionState>[] = [];
    for (const host of this.#hosts.values()) {
      const volume = host.lastInterval(origin);
      const rate = rateOf(volume);
      if (rate !== undefined && volume.total >= requestVolume && !host.host.isEjected) rates.push({ host, rate });
    }
    return rates;
  }

  /** @param rate of the host, where hosts were compared. */
  #detected(state: EjectionState, kind: OutlierKind, rate: number): void {
    this.#stats.add(COUNTERS[kind].detected);
    // Two detectors may find the same host in one interval.
    if (state.host.isEjected) return;
    if (!this.#mayEject()) {
      this.#stats.add('ejections_overflow');
      return;
    }
    this.#stats.add('ejections_total');
    const isEnforced = this.#isEnforced(kind);
    const nowMs = this.#tools.clock.monotonicMs();
    if (isEnforced) this.#eject(state, kind, rate, nowMs);
    const rates = this.#rates[kind.startsWith('local') ? 'local' : 'external'];
    this.#log(state, { kind: 'eject', type: kind, isEnforced, rate, rates }, state.unejectedAtMs, nowMs);
    if (isEnforced) this.#cluster.onHealthChange(state.host);
  }

  #mayEject(): boolean {
    const percent = Math.min(ALL, this.#limits.value.maxEjectionPercent);
    const { alwaysEjectsOneHost = percent > 0 } = this.#settings;
    if (this.#ejected === 0 && alwaysEjectsOneHost) return true;
    return (ALL * (this.#ejected + 1)) / this.#hosts.size <= percent;
  }

  #isEnforced(kind: OutlierKind): boolean {
    const { runtime, random } = this.#tools;
    const percent = this.#settings.enforcing[kind];
    return runtime.happens(OUTLIER_DETECTION + OUTLIER_SHARE_KEYS[kind], percent, random.u32());
  }

  #eject(state: EjectionState, kind: OutlierKind, rate: number, nowMs: number): void {
    const limits = this.#limits.value;
    const { maxEjectionTimeJitterMs: jitterMs } = limits;
    this.#stats.add('ejections_enforced_total');
    this.#stats.add(COUNTERS[kind].enforced);
    state.host.setHealthFlags(EJECTED, true);
    state.eject(nowMs, limits, this.#tools.random.u32() % (jitterMs + 1));
    state.host.lastEjection = {
      kind,
      successRate: kind in ROWS ? undefined : rate,
      count: state.ejections,
      beganMs: this.#tools.clock.wallMs(),
      endedMs: undefined,
    };
    this.#countEjected(1);
  }

  #uneject(state: EjectionState, nowMs: number): void {
    const { host } = state;
    host.setHealthFlags(EJECTED, false);
    for (const row of Object.values(FailureRow)) host.endFailures(row);
    state.uneject(nowMs);
    host.lastEjection = { ...host.lastEjection!, endedMs: this.#tools.clock.wallMs() };
    this.#countEjected(-1);
    this.#log(state, { kind: 'uneject' }, state.ejectedAtMs, nowMs);
    this.#cluster.onHealthChange(host);
  }

  #log({ host, ejections }: EjectionState, event: OutlierEvent, lastMs: number | undefined, nowMs: number): void {
    const sinceLastMs = lastMs === undefined ? undefined : nowMs - lastMs;
    const { name: clusterName } = this.#cluster;
    this.#tools.events.write({ clusterName, address: host.address, ejections, sinceLastMs }, event);
  }

  #countEjected(change: 1 | -1): void {
    this.#ejected += change;
    this.#stats.set('ejections_active', this.#ejected);
  }
}
