// Hosts compared with one another by the share of their requests that went well. Pure.

/** What a host did in one interval. */
export interface Volume {
  readonly total: number;
  readonly success: number;
}

export interface RateLimits {
  readonly minimumHosts: number;
  readonly requestVolume: number;
}

/** 0 to 100. */
export interface HostRate<Host> {
  readonly host: Host;
  readonly rate: number;
}

export interface Rates {
  /** Of all that were compared; -1 without. */
  readonly average: number;
  /** Below it a host is an outlier; -1 without. */
  readonly threshold: number;
}

/** Of all hosts together in the last interval, 0 to 100; -1 where there was too little to compare. */
export interface OutlierRates {
  readonly successRateAverage: number;
  readonly successRateEjectionThreshold: number;
  readonly localOriginSuccessRateAverage: number;
  readonly localOriginSuccessRateEjectionThreshold: number;
}

export const NO_RATES: Rates = { average: -1, threshold: -1 };

/** Percent; of no request, undefined. */
export function rateOf({ total, success }: Volume): number | undefined {
  return total === 0 ? undefined : (100 * success) / total;
}

/** @param stdevFactor standard deviations that a host may be below the average. */
export function compareRates(rates: readonly number[], stdevFactor: number): Rates {
  const average = mean(rates);
  const deviation = Math.sqrt(mean(rates.map((rate) => (average - rate) ** 2)));
  return { average, threshold: average - deviation * stdevFactor };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
