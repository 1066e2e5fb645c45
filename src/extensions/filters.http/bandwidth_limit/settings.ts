// What the bandwidth_limit filter and its configuration share.

import type { TokenBucketSettings } from '../../../base/token-bucket.ts';
import type { RuntimeSetting } from '../../../snapshot/index.ts';

/** What is counted of the bodies of one direction; whole names. */
export interface BandwidthStatNames {
  readonly enabled: string;
  readonly enforced: string;
  readonly incomingTotal: string;
  readonly allowedTotal: string;
  // Gauges.
  readonly pending: string;
  readonly incoming: string;
  readonly allowed: string;
  /** A histogram of milliseconds. */
  readonly duration: string;
}

/** Names of the trailers that tell of milliseconds. */
export interface BandwidthTrailers {
  readonly requestMs: string;
  readonly responseMs: string;
  readonly requestHeldMs: string;
  readonly responseHeldMs: string;
}

/** Bytes, for bodies of both directions and all workers together. */
export interface ByteBucketSettings {
  readonly tokens: TokenBucketSettings;
  /** An i32: bodies that wait, in all workers. */
  readonly waiting: ArrayBufferLike;
}

/** Of the filter itself, or what one level of a route says instead. */
export interface BandwidthLimitSettings {
  readonly request: BandwidthStatNames;
  readonly response: BandwidthStatNames;
  readonly limitsRequests: boolean;
  readonly limitsResponses: boolean;
  /** Null where nothing is limited. */
  readonly bucket: ByteBucketSettings | null;
  readonly enabled: RuntimeSetting<boolean>;
  /** Null for none. */
  readonly trailers: BandwidthTrailers | null;
}
