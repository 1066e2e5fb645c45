// How members that fail more than others are found out and left alone for a while.

import type { OUTLIER_SHARE_KEYS } from '../base/runtime-values.ts';

export type OutlierKind = keyof typeof OUTLIER_SHARE_KEYS;

/** What workers find out; main finds the others by comparing hosts. */
export type ConsecutiveKind = Extract<OutlierKind, `consecutive-${string}`>;

/** Each of these has a key of the runtime (OUTLIER_KEYS). */
export interface OutlierLimits {
  /** Between two looks at all hosts. */
  readonly intervalMs: number;
  /** Times the number of ejections that count, how long a host is left alone. */
  readonly baseEjectionTimeMs: number;
  readonly maxEjectionTimeMs: number;
  /** A random part of this is added to each time. */
  readonly maxEjectionTimeJitterMs: number;
  /** Of the hosts of the cluster. */
  readonly maxEjectionPercent: number;
  /** Failures in a row. */
  readonly consecutive5xx: number;
  readonly consecutiveGatewayFailure: number;
  readonly consecutiveLocalOriginFailure: number;
  /** Hosts with enough requests that it takes to compare them. */
  readonly successRateMinimumHosts: number;
  /** Requests within one interval that make a host comparable. */
  readonly successRateRequestVolume: number;
  /** Thousandths of a standard deviation that a host may be below the average. */
  readonly successRateStdevFactor: number;
  /** Percent of failed requests from which on a host is an outlier. */
  readonly failurePercentageThreshold: number;
  readonly failurePercentageMinimumHosts: number;
  readonly failurePercentageRequestVolume: number;
}

export interface OutlierSettings extends OutlierLimits {
  /** Percent of what is found out that has consequences. */
  readonly enforcing: Readonly<Record<OutlierKind, number>>;
  /** Connections are judged apart from answers, instead of as answers of 503 and 504. */
  readonly splitsLocalOrigin: boolean;
  /** One host may go whatever the percentage; undefined: unless that is 0. */
  readonly alwaysEjectsOneHost: boolean | undefined;
  /** A passed health check ends an ejection. */
  readonly endsWithPassedCheck: boolean;
}
