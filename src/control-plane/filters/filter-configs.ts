// The configurations of HTTP filters that come by discovery: one for each name and source, whoever wants it, for as long as anybody
// does. Main thread.

import type { DiscoveredFilter, PublishedFilter } from '../../snapshot/index.ts';
import { settingsText } from '../same-settings.ts';
import { DiscoveredFilterConfig, type DiscoveredFilterDependencies, type DumpedFilter } from './discovered-filter.ts';

/** A configuration that somebody wants. */
export interface FilterLease {
  /** By which workers know it. */
  readonly id: number;
  readonly name: string;
  /** As listings name what a listener waits for. */
  readonly target: string;
  /** There is one, or none is waited for any longer. */
  readonly isReady: boolean;
  /** Resolves with that; perhaps never when it has been given back. */
  readonly whenReady: Promise<void>;
  /** Idempotent. */
  release(): void;
}

export interface FilterLeases {
  /** @param name of the filter in its chain. @param statPrefix of the connection manager, under which the filter counts. */
  lease(name: string, wanted: DiscoveredFilter, statPrefix: string): FilterLease;
}

export class FilterConfigs implements FilterLeases {
  readonly #deps: DiscoveredFilterDependencies;
  readonly #configs = new Map<string, DiscoveredFilterConfig>();
  #lastId = 0;

  constructor(deps: DiscoveredFilterDependencies) {
    this.#deps = deps;
  }

  lease(name: string, wanted: DiscoveredFilter, statPrefix: string): FilterLease {
    const key = settingsText([name, wanted.source])!;
    const known = this.#configs.get(key);
    const config = known ?? this.#open(key, name, wanted);
    const { id, release } = config.lease(wanted, statPrefix);
    if (known === undefined) config.start();
    const { beginsWithDefault } = wanted;
    return {
      id,
      name,
      target: `FilterConfigSubscription init ${name}`,
      get isReady() {
        return beginsWithDefault || config.isReady;
      },
      whenReady: beginsWithDefault ? Promise.resolve() : config.whenReady,
      release,
    };
  }

  #open(key: string, name: string, { source }: DiscoveredFilter): DiscoveredFilterConfig {
    const nextId = (): number => ++this.#lastId;
    const config = new DiscoveredFilterConfig(name, source, this.#deps, nextId, () => this.#configs.delete(key));
    this.#configs.set(key, config);
    return config;
  }

  /** What workers are to know that start now. */
  *published(): Iterable<PublishedFilter> {
    for (const config of this.#configs.values()) yield* config.published();
  }

  /** All that there are, and those that could not be had. */
  dump(): DumpedFilter[] {
    const dumped = [...this.#configs.values()].map((config) => config.dump());
    return dumped.filter(({ accepted, refused }) => accepted !== undefined || refused !== undefined);
  }

  /** Those that could not be had, and why. */
  failures(): Iterable<{ readonly name: string; readonly error: string }> {
    return this.dump().flatMap(({ refused }) => refused ?? []);
  }

  /** Nothing is asked for any more. */
  close(): void {
    for (const config of this.#configs.values()) config.close();
  }
}
