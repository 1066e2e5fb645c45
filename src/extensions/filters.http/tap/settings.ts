// What main tells the workers of a tap filter.

export interface TapFilterSettings {
  /** Under which POST /tap finds the filter. */
  readonly configId: string;
  /** Traces say when heads were there. */
  readonly recordsTimes: boolean;
  /** Name of the counter of recorded exchanges. */
  readonly counter: string;
}
