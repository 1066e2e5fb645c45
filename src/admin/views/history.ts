// The last five minutes, as the home page shows them: History of src/control-plane.

/** Points `from` to `to`, both included: by series, oldest first; NaN where nothing is known. */
export type ReadPoints = (from: number, to: number) => readonly ArrayLike<number>[];

export interface HistoryView {
  /** Number of the newest point, one a second; -1 before the first. */
  readonly tick: number;
  /** The first point behind `tick` that is still known, and will be for some seconds. */
  firstAfter(tick: number): number;
  /** Of points `from` to the newest, in milliseconds since the Unix epoch. */
  times(from: number): readonly number[];
  /** By name: rates of responses by class (1xx to 5xx) and of connections, open connections, p50, p90, p99, p99.9 in ms. */
  listeners(): Iterable<readonly [name: string, read: ReadPoints]>;
  /**
   * By name, those that something is wanted of: rates of answers, 5xx and retries, active requests, p99 in ms, rates of
   * connections that were made and that could not be.
   */
  clusters(): Iterable<readonly [name: string, read: ReadPoints]>;
}
