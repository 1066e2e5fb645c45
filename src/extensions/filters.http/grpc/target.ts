/** How a service is reached. */
export interface GrpcTarget {
  readonly cluster: string;
  readonly authority: string;
  /** 0 for none. */
  readonly timeoutMs: number;
  /** Goes with each call; names are in lower case. */
  readonly metadata: readonly (readonly [name: string, value: string])[];
}
