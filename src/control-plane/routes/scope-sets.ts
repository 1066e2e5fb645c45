// The sets of scopes of all connection managers that have some: one for those that say the same of theirs. Main thread.

import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { PublishedScopes, ScopedRoutesSettings } from '../../snapshot/index.ts';
import type { ReferringDependencies } from '../discovery/feed.ts';
import { leaseOf, type PublishedLease, type ResourceLease } from '../discovery/resource-lease.ts';
import { type DemandAnswer, OpenDemands } from '../open-demands.ts';
import { settingsText } from '../same-settings.ts';
import { SharedByKey } from '../shared-by-key.ts';
import { DiscoveredScopes, type DumpedScopes } from './discovered-scopes.ts';
import type { RouteLeases } from './route-tables.ts';
import { ScopeSet, type ScopeSetDependencies } from './scope-set.ts';

export interface ScopeSetsDependencies extends ScopeSetDependencies, ReferringDependencies {}

class SharedSet {
  readonly set: ScopeSet;
  /** Undefined where its scopes stand in the configuration. */
  readonly discovered: DiscoveredScopes | undefined;
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
    return this.discovered?.isReady !== false && this.set.isReady;
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
    let lease: ResourceLease | undefined;
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

  /** Nothing is asked for any more. */
  stop(): void {
    this.demands.close();
    this.discovered?.stop();
  }

  /** Nobody wants it any more. Once. */
  close(): void {
    this.demands.close();
    this.discovered?.close();
    this.set.close();
  }
}

export class ScopeSets implements Pick<RouteLeases, 'leaseScopes'> {
  readonly #deps: ScopeSetsDependencies;
  readonly #sets = new SharedByKey<SharedSet>((shared) => shared.close());
  #lastId = 0;

  constructor(deps: ScopeSetsDependencies) {
    this.#deps = deps;
  }

  leaseScopes(settings: ScopedRoutesSettings, managerPrefix: string): PublishedLease {
    const make = (): SharedSet => new SharedSet(++this.#lastId, settings, managerPrefix, this.#deps);
    const { thing: shared, isNew, release } = this.#sets.lease(settingsText(settings)!, make);
    if (isNew) shared.discovered?.start();
    const { name } = settings;
    return leaseOf({ id: shared.set.id, name, target: `ScopedRdsConfigSubscription init ${name}` }, shared, release);
  }

  /** A request wants the table of a scope that has one on demand. @param id of the set. */
  demand(id: number, key: readonly string[], answer: DemandAnswer): void {
    const shared = [...this.#sets].find(({ set }) => set.id === id);
    // It may have gone meanwhile.
    if (shared === undefined) answer(false);
    else shared.demand(key, answer);
  }

  /** What workers are to know that start now; of their tables they know before. */
  *published(): Iterable<PublishedScopes> {
    for (const { set } of this.#sets) yield set.published;
  }

  /** Those that come by discovery. */
  dump(): DumpedScopes[] {
    return [...this.#sets].flatMap(({ discovered }) => discovered?.dump() ?? []);
  }

  /** What could not be had, and why. */
  failures(): Iterable<{ readonly name: string; readonly error: string }> {
    return this.dump().flatMap(({ name, refused }) => (refused === undefined ? [] : { name, error: refused.error }));
  }

  /** Nothing is asked for any more. */
  close(): void {
    for (const shared of this.#sets) shared.stop();
  }
}
