// What main tells the workers of a network ratelimit filter.

import type { FormatSegments } from '../../../snapshot/index.ts';
import type { VersionedTarget } from '../../filters.http/grpc/target.ts';
import type { OwnLimit } from '../../filters.http/rate-limit-descriptors.ts';

export interface ConnectionDescriptor {
  /** Keys are byte text, values formats. */
  readonly entries: readonly { readonly key: string; readonly value: FormatSegments }[];
  /** Null for that of the service. */
  readonly limit: OwnLimit | null;
  /** Null: nothing is said. */
  readonly hits: number | null;
}

export interface NetworkRateLimitSettings {
  readonly service: VersionedTarget;
  readonly domain: string;
  readonly descriptors: readonly ConnectionDescriptor[];
  readonly deniesFailure: boolean;
}
