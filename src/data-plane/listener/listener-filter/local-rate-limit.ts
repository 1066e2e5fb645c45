// The local rate limit listener filter: each connection takes a token out of a bucket that all workers share, and whoever finds none is
// closed before anything has been read of it.

import { systemMonotonicMs } from '../../../base/clock.ts';
import type { RuntimeDerived } from '../../../base/runtime.ts';
import { TokenBucket } from '../../../base/token-bucket.ts';
import type { ListenerFilterSnapshot, ListenerRateLimitSettings } from '../../../snapshot/index.ts';
import { LISTENER_RATE_LIMIT_STATS } from '../../../stats/index.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { type ListenerFilter, REFUSED } from './filter.ts';

const { rate_limited } = LISTENER_RATE_LIMIT_STATS.index;

export class LocalRateLimitFilter implements ListenerFilter {
  readonly readsBytes = false;
  readonly #context: WorkerContext;
  readonly #limitedStat: number;
  readonly #bucket: TokenBucket;
  readonly #isEnabled: RuntimeDerived<boolean>;
  /** From the worker's own clock to that of the system. */
  readonly #clockOffsetMs: number;

  constructor(context: WorkerContext, { settings, statBlock }: ListenerFilterSnapshot<ListenerRateLimitSettings>) {
    const { bucket, enabled } = settings;
    this.#context = context;
    this.#limitedStat = context.stats.base(statBlock) + rate_limited;
    this.#bucket = new TokenBucket(bucket);
    this.#isEnabled = context.runtime.derived((values) => values.flag(enabled.key) ?? enabled.default);
    this.#clockOffsetMs = systemMonotonicMs() - context.clock.monotonicMs();
  }

  inspect(): number {
    const { clock, stats } = this.#context;
    if (!this.#isEnabled.value || this.#bucket.take(1, clock.monotonicMs() + this.#clockOffsetMs)) return 0;
    stats.values[this.#limitedStat]! += 1;
    return REFUSED;
  }
}
