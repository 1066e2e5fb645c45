// What main tells the workers of a log that goes to a gRPC service.

import type { CustomTag } from '../../../snapshot/index.ts';
import type { GrpcTarget } from '../../filters.http/grpc/target.ts';

export interface GrpcLogSettings {
  readonly target: GrpcTarget;
  readonly generation: 'v2' | 'v3';
  readonly logName: string;
  readonly node: { readonly id: string; readonly cluster: string; readonly zone: string };
  readonly flushIntervalMs: number;
  /** Entries that together are as long are sent at once. */
  readonly bufferBytes: number;
  readonly tags: readonly CustomTag[];
  /** Names in lower case; none for entries of connections. */
  readonly requestHeaders: readonly string[];
  readonly responseHeaders: readonly string[];
  readonly responseTrailers: readonly string[];
  readonly counters: { readonly written: string; readonly dropped: string };
}
