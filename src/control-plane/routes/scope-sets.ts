// The sets of scopes of all connection managers that have some: one for those that say the same of theirs. Main thread.

import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { PublishedScopes, ScopedRoutesSettings } from '../../snapshot/index.ts';
import { type DemandAnswer, OpenDemands } from '../open-demands.ts';
import { settingsText } from '../same-settings.ts';
import { DiscoveredScopes, type DiscoveredScopesDependencies, type DumpedScopes } from './discovered-scopes.ts';
import type { RouteLease, RouteLeases } from './route-tables.ts';
import { ScopeSet, type ScopeSetDependencies } from './scope-set.ts';

export interface ScopeSetsDependencies extends ScopeSetDependencies, DiscoveredScopesDependencies {}

class SharedSet {
  readonly set: ScopeSet;
  /** Undefined where its scopes stand in the configuration. */
  readonly discovered: DiscoveredScopes | undefined;
  users = 0;
  /** Requests that wait for tables, by key as text. */
  readonly demands: OpenDemands;
  readonly #faults: FaultBoundary;
  readonly #ready = Promise.withResolvers<void>();

  constructor(id: number, settings: ScopedRoutesSettings, statPrefix: string, deps: ScopeSetsDependencies) {
    const check = (): void => this.#check();
    this.#faults = deps.faults;
    this.demands = new OpenDemands(deps.clock, () => {});
    this.set = new ScopeSet(id, settings, statPrefix, deps, check);
    const { scopes } = settings;
    if (scopes.kind === 'discovered') {
      this.discovered = new DiscoveredScopes(settings, scopes.source, statPrefix, this.set, deps, check);
      return;
    }
    try {
      this.set.replace(scopes.scopes);
    } catch (error) {
      this.set.close();
      throw error;
    }
    check();
  }

  get isReady(): boolean {
    return this.discovered?.isAnswered !== false && this.set.isReady;
  }

  get whenReady(): Promise<void> {
    return this.#ready.promise;
  }

  #check(): void {
    if (this.isReady) this.#ready.resolve();
  }

  /** A request wants the table of a scope. */
  demand(key: readonly string[], answer: DemandAnswer): void {
    const text = JSON.stringify(key);
    if (!this.demands.add(text, 0, answer)) return;
    let lease: RouteLease | undefined;
    try {
      lease = this.set.activate(key);
    } catch {
      // Without room for a table there is none.
    }
    this.discovered?.countScopes();
    if (lease === undefined) {
      this.demands.settle(text, false);
      return;
    }
    const { whenReady } = lease;
    this.#faults.run('a table of a scope', async () => {
      await whenReady;
      this.set.show(key);
      this.demands.settle(text, true);
    });
  }

  close(): void {
    this.demands.close();
    this.discovered?.close();
    this.set.close();
  }
}

export class ScopeSets implements Pick<RouteLeases, 'leaseScopes'> {
  readonly #deps: ScopeSetsDependencies;
  readonly #sets = new Map<string, SharedSet>();
  #lastId = 0;

  constructor(deps: ScopeSetsDependencies) {
    this.#deps = deps;
  }

  leaseScopes(settings: ScopedRoutesSettings, statPrefix: string): RouteLease {
    const key = settingsText(settings)!;
    const known = this.#sets.get(key);
    const shared = known ?? new SharedSet(++this.#lastId, settings, statPrefix, this.#deps);
    this.#sets.set(key, shared);
    shared.users += 1;
    if (known === undefined) shared.discovered?.start();
    let isReleased = false;
    const { name } = settings;
    return {
      id: shared.set.id,
      name,
      target: `ScopedRdsConfigSubscription init ${name}`,
      get isReady() {
        return shared.isReady;
      },
      whenReady: shared.whenReady,
      release: () => {
        if (isReleased) return;
        isReleased = true;
        shared.users -= 1;
        if (shared.users > 0) return;
        this.#sets.delete(key);
        shared.close();
      },
    };
  }

  /** A request wants the table of a scope that has one on demand. @param id of the set. */
  demand(id: number, key: readonly string[], answer: DemandAnswer): void {
    const shared = [...this.#sets.values()].find(({ set }) => set.id === id);
    // It may have gone meanwhile.
    if (shared === undefined) answer(false);
    else shared.demand(key, answer);
  }

  /** What workers are to know that start now; of their tables they know before. */
  *published(): Iterable<PublishedScopes> {
    for (const { set } of this.#sets.values()) yield set.published;
  }

  /** Those that come by discovery. */
  dump(): DumpedScopes[] {
    return [...this.#sets.values()].flatMap(({ discovered }) => discovered?.dump() ?? []);
  }

  /** What could not be had, and why. */
  failures(): Iterable<{ readonly name: string; readonly error: string }> {
    return this.dump().flatMap(({ name, refused }) => (refused === undefined ? [] : { name, error: refused.error }));
  }

  /** Nothing is asked for any more. */
  close(): void {
    for (const { demands, discovered } of this.#sets.values()) {
      demands.close();
      discovered?.stop();
    }
  }
}
