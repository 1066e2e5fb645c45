// What the local rate limit filter and its configuration share.

import type { RuntimeSetting } from '../../../base/runtime.ts';
import type { TokenBucketSettings } from '../../../base/token-bucket.ts';

export interface LocalRateLimitSettings {
  /** Each connection takes a token of it. */
  readonly bucket: TokenBucketSettings;
  /** While it is not, connections come in without. */
  readonly enabled: RuntimeSetting<boolean>;
}
