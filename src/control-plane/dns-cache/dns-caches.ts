// The DNS caches of the process: clusters that say the same of a cache share it, and with it the limits of what clients may
// have looked up. It goes with the last of them. Main thread.

import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { Random } from '../../base/random.ts';
import type { Loggers } from '../../log/index.ts';
import type { DnsCacheSettings, LookupLimit } from '../../snapshot/index.ts';
import { DNS_CACHE_GAUGES, DNS_CACHE_STATS, type LookupUse } from '../../stats/index.ts';
import type { DnsResolvers } from '../dns/resolvers.ts';
import { Holdings, type HoldingsSource } from '../holdings.ts';
import { DnsCache } from './dns-cache.ts';

/** Beyond the time of a lookup, before a worker takes main for silent. */
const GRACE_MS = 1000;
/** The same where lookups may take any time. */
const LONGEST_LOOKUP_MS = 120_000;

export interface DnsCacheSources extends HoldingsSource {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly random: Random;
  readonly loggers: Loggers;
  readonly resolvers: Pick<DnsResolvers, 'hold'>;
}

export interface HeldDnsCache {
  readonly cache: DnsCache;
  /** What workers are to know of it. */
  readonly lookups: LookupLimit;
  /** Once, when no worker uses its limits any more. */
  readonly release: () => void;
}

interface SharedCache extends Omit<HeldDnsCache, 'release'> {
  readonly close: () => void;
  holders: number;
}

export class DnsCaches {
  readonly #sources: DnsCacheSources;
  readonly #bySettings = new Map<string, SharedCache>();

  constructor(sources: DnsCacheSources) {
    this.#sources = sources;
  }

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  hold(settings: DnsCacheSettings): HeldDnsCache {
    // Of other settings under the same name: a cluster is about to be replaced.
    const key = JSON.stringify(settings);
    const shared = this.#bySettings.get(key) ?? this.#make(settings);
    this.#bySettings.set(key, shared);
    shared.holders += 1;
    const release = (): void => {
      shared.holders -= 1;
      if (shared.holders > 0) return;
      this.#bySettings.delete(key);
      shared.close();
    };
    return { cache: shared.cache, lookups: shared.lookups, release };
  }

  #make(settings: DnsCacheSettings): SharedCache {
    const { resolvers, loggers, memory } = this.#sources;
    const holdings = new Holdings(this.#sources);
    try {
      const scope = holdings.scope(`dns_cache.${settings.name.replaceAll(':', '_')}.`);
      const stats = scope.allocate(DNS_CACHE_STATS);
      const record = holdings.countRecord();
      const { maxPending: max, queryTimeoutMs } = settings;
      scope.derive<LookupUse>(DNS_CACHE_GAUGES, { waiting: () => memory.shared.records.count(record), max });
      const resolver = resolvers.hold(settings.resolver);
      const cache = new DnsCache(settings, resolver, stats, {
        ...this.#sources,
        log: loggers.get('forward_proxy'),
      });
      const waitMs = queryTimeoutMs === 0 ? LONGEST_LOOKUP_MS : queryTimeoutMs + GRACE_MS;
      const close = (): void => {
        cache.close();
        resolver.release();
        holdings.close();
      };
      return { cache, lookups: { record, max, statBlock: stats.cell, waitMs }, close, holders: 0 };
    } catch (error) {
      holdings.close();
      throw error;
    }
  }
}
