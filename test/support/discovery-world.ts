// What takes resources in by discovery, with a clock, stats, and a source that a test plays.

import { offerRawResource } from '../../src/config/exchange.ts';
import { type DiscoverableResources, type DiscoveredResponse, UnknownFieldPolicy } from '../../src/config/index.ts';
import type { ReferringDependencies } from '../../src/control-plane/discovery/feed.ts';
import type { SubscriptionRequest } from '../../src/control-plane/subscription/subscription.ts';
import { Loggers } from '../../src/log/index.ts';
import type { ConfigSourceSettings } from '../../src/snapshot/index.ts';
import { type JsonObject, mustLoad } from './bootstrap.ts';
import { bytesOf } from './control-plane.ts';
import { NO_FAULTS } from './faults.ts';
import { ManualClock } from './manual-clock.ts';
import { statsFixture } from './stats.ts';

export const FETCH_LIMIT_MS = 500;

export const ANY_SOURCE: ConfigSourceSettings = {
  origin: { kind: 'ads' },
  resourceGeneration: 'v3',
  initialFetchTimeoutMs: FETCH_LIMIT_MS,
};

export class DiscoveryWorld {
  readonly stats = statsFixture();
  readonly clock = new ManualClock();
  readonly log: string[] = [];
  /** What has been asked for, in its order. */
  readonly requests: SubscriptionRequest<unknown>[] = [];
  /** How many of them have ended. */
  ended = 0;

  get dependencies(): ReferringDependencies {
    const { discoverable } = mustLoad({ static_resources: { clusters: [] } });
    const sink = { write: ({ message }: { message: string }) => void this.log.push(message) };
    return {
      stats: this.stats.store,
      memory: this.stats.owner,
      subscriptions: {
        subscribe: (request) => {
          this.requests.push(request as unknown as SubscriptionRequest<unknown>);
          const close = (): void => {
            this.ended += 1;
          };
          return { start() {}, close };
        },
      },
      clock: this.clock,
      faults: NO_FAULTS,
      log: new Loggers({ levels: { default: 'debug' }, threadId: 0, sink }).get('config'),
      hash: () => 7n,
      discoverable: (): DiscoverableResources => discoverable,
      clusterNames: () => [],
      onDeprecatedFields: () => {},
    };
  }

  /** The source of the last request has these now. @returns why some are refused. */
  async answer(
    version: string,
    resources: readonly JsonObject[],
    response: Partial<DiscoveredResponse<unknown>> = {},
  ): Promise<readonly string[]> {
    const { type, owner } = this.requests.at(-1)!;
    const read = type();
    const typeUrl = `type.googleapis.com/${read.typeName}`;
    const offered = resources.map((json, at) => {
      const raw = {
        name: String(json.name),
        version: '',
        typeUrl,
        bytes: bytesOf(read.typeName, json),
        ttlMs: undefined,
      };
      return offerRawResource(raw, `resources[${at}]`, read, new UnknownFieldPolicy('reject'));
    });
    const names = offered.map(({ name }) => name);
    const whole = { version, extent: 'all' as const, removed: [], names, warnings: [], offered: () => offered };
    return await owner.onResponse({ ...whole, ...response });
  }
}
