// What filters count beyond the scope of their connection manager.

/** Stats that an HTTP filter writes under whole names of their own; none of a kind when it is absent. */
export interface WholeStats {
  readonly wholeCounters?: readonly string[];
  readonly wholeGauges?: readonly string[];
  /** Histograms of milliseconds. */
  readonly wholeTimes?: readonly string[];
}
