// A service of HTTP that a worker calls.

export interface HttpTarget {
  readonly cluster: string;
  readonly host: string;
  readonly path: string;
  /** 0 where nothing is said. */
  readonly timeoutMs: number;
  /** Added to each call. Names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}
