import type { RetrySettings } from '../../../snapshot/index.ts';

/** How a service is reached. */
export interface GrpcTarget {
  readonly cluster: string;
  readonly authority: string;
  /** 0 for none. */
  readonly timeoutMs: number;
  /** Of calls; absent for none. */
  readonly retry?: RetrySettings;
  /** Goes with each call; names are in lower case. */
  readonly metadata: readonly (readonly [name: string, value: string])[];
}

/** One of a service that speaks its messages of v2 or v3. */
export interface VersionedTarget extends GrpcTarget {
  readonly generation: 'v2' | 'v3';
}
