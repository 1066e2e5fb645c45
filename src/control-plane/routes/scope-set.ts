// The scopes of one connection manager, each with the table that it leads to: leases those, and tells the workers what changes. It
// knows nothing of where scopes come from. Main thread.

import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type {
  DiscoveredRoutes,
  PublishedScope,
  PublishedScopes,
  ScopedRoutesSettings,
  ScopeSettings,
} from '../../snapshot/index.ts';
import type { PublishedLease } from '../discovery/resource-lease.ts';
import { settingsText } from '../same-settings.ts';
import type { RouteTables } from './route-tables.ts';

/** Brings scopes to the workers; WorkerPool does. */
export interface ScopesPublisher {
  publishScopes(scopes: PublishedScopes): void;
  removeScopes(id: number): void;
}

export interface ScopeSetDependencies {
  readonly tables: Pick<RouteTables, 'lease' | 'own'>;
  readonly workers: ScopesPublisher;
  readonly faults: FaultBoundary;
}

interface ActiveScope {
  readonly settings: ScopeSettings;
  /** Of two scopes that are the same it is the same. */
  readonly text: string;
  /** Null while nobody has asked for its table. */
  lease: PublishedLease | null;
}

export class ScopeSet {
  readonly id: number;
  readonly #settings: ScopedRoutesSettings;
  readonly #statPrefix: string;
  readonly #deps: ScopeSetDependencies;
  readonly #onTableReady: () => void;
  #scopes: ReadonlyMap<string, ActiveScope> = new Map();

  /** @param onTableReady told when a table has come, or is waited for no longer. */
  constructor(
    id: number,
    settings: ScopedRoutesSettings,
    statPrefix: string,
    deps: ScopeSetDependencies,
    onTableReady: () => void,
  ) {
    this.id = id;
    this.#settings = settings;
    this.#statPrefix = statPrefix;
    this.#deps = deps;
    this.#onTableReady = onTableReady;
    deps.workers.publishScopes(this.published);
  }

  get size(): number {
    return this.#scopes.size;
  }

  /** All tables have come, or are waited for no longer. */
  get isReady(): boolean {
    for (const { lease } of this.#scopes.values()) if (lease?.isReady === false) return false;
    return true;
  }

  /** Those whose table is asked for when a request wants it, asked for or not. */
  get onDemandCount(): number {
    let count = 0;
    for (const { settings } of this.#scopes.values()) if (settings.isOnDemand) count += 1;
    return count;
  }

  /** Those whose table has been asked for. */
  get activeCount(): number {
    let count = 0;
    for (const { lease } of this.#scopes.values()) if (lease !== null) count += 1;
    return count;
  }

  names(): Iterable<string> {
    return this.#scopes.keys();
  }

  has(settings: ScopeSettings): boolean {
    return this.#scopes.get(settings.name)?.text === settingsText(settings);
  }

  settingsOf(name: string): ScopeSettings | undefined {
    return this.#scopes.get(name)?.settings;
  }

  /** What workers are to know that start now. */
  get published(): PublishedScopes {
    return { id: this.id, put: [...this.#scopes.values()].map(publishedScope), removed: [] };
  }

  /**
   * From now on there are these scopes, with names and keys of their own, and no others.
   * @returns whether anything is other. @throws WeirError WEIR_SHARED_MEMORY_FULL; all is as before then.
   */
  replace(scopes: Iterable<ScopeSettings>): boolean {
    const former = new Map(this.#scopes);
    const next = new Map<string, ActiveScope>();
    const made: ActiveScope[] = [];
    try {
      for (const settings of scopes) {
        const known = former.get(settings.name);
        const text = settingsText(settings)!;
        if (known?.text === text) {
          next.set(settings.name, known);
          former.delete(settings.name);
        } else {
          const scope = { settings, text, lease: settings.isOnDemand ? null : this.#lease(settings) };
          made.push(scope);
          next.set(settings.name, scope);
        }
      }
    } catch (error) {
      for (const { lease } of made) lease?.release();
      throw error;
    }
    if (made.length + former.size === 0) return false;
    this.#scopes = next;
    const removed = [...former.values()].map(({ settings }) => settings.key);
    this.#deps.workers.publishScopes({ id: this.id, put: made.map(publishedScope), removed });
    for (const { lease } of made) {
      if (lease?.isReady !== false) continue;
      this.#deps.faults.run('a table of a scope', () => lease.whenReady.then(this.#onTableReady));
    }
    // No request finds them any more.
    for (const { lease } of former.values()) lease?.release();
    return true;
  }

  /**
   * A request wants the table of an on-demand scope: it is asked for, unless it has been.
   * @returns undefined for a key that no scope has. @throws WeirError WEIR_SHARED_MEMORY_FULL.
   */
  activate(key: readonly string[]): PublishedLease | undefined {
    const scope = this.#scopeOf(key);
    if (scope === undefined) return undefined;
    scope.lease ??= this.#lease(scope.settings);
    return scope.lease;
  }

  /** The table of an on-demand scope has come: requests find it from now on. */
  show(key: readonly string[]): void {
    const scope = this.#scopeOf(key);
    if (scope !== undefined)
      this.#deps.workers.publishScopes({ id: this.id, put: [publishedScope(scope)], removed: [] });
  }

  #scopeOf(key: readonly string[]): ActiveScope | undefined {
    const text = settingsText(key);
    return [...this.#scopes.values()].find(({ settings }) => settingsText(settings.key) === text);
  }

  /** Nobody refers to it any more. Once. */
  close(): void {
    this.#deps.workers.removeScopes(this.id);
    for (const { lease } of this.#scopes.values()) lease?.release();
    this.#scopes = new Map();
  }

  #lease({ routes }: ScopeSettings): PublishedLease {
    if (!('tableName' in routes)) return this.#deps.tables.own(routes);
    const { filters, isOutbound, routeSource } = this.#settings;
    // A scope that names a table without it is refused when it is read.
    const wanted: DiscoveredRoutes = { name: routes.tableName, source: routeSource!, filters, isOutbound };
    return this.#deps.tables.lease(wanted, this.#statPrefix);
  }
}

/** Until its table has come a scope on demand is one that requests have to wait for. */
function publishedScope({ settings, lease }: ActiveScope): PublishedScope {
  const { key } = settings;
  if (lease === null || (settings.isOnDemand && !lease.isReady)) return { key, routeTableId: null };
  return { key, routeTableId: lease.id };
}
