// All resources of one type that come by discovery, in the state of the world: each response says which there are. What is new or
// other is put, what is not among them is taken away, and what may not be is refused for itself, with the one before it kept (all of
// them, where nobody can tell which one it is). Main thread; rests between two resources, so that others get their turns.

import { errorMessage } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import type { DiscoveredResource, DiscoveredResponse, OfferedResource } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { RefusedResource } from '../resource-record.ts';
import { logWarnings } from '../subscription/resource-warnings.ts';
import type { SubscriptionOwner } from '../subscription/subscription.ts';

/** Who has the resources. */
export interface ResourceManager<Settings> {
  /** Those that discovery has brought, and those that it could not; some more than once. Others may come and go on the way. */
  discoveredNames(): Iterable<string>;
  /**
   * @returns false where there is one of this name that discovery has not brought, which stays; or where none are taken any more.
   * @throws when it cannot be had; the one before it stays.
   */
  put(settings: Settings, version: string, message: Uint8Array): boolean | Promise<boolean>;
  /**
   * The one that was put last has come again, as it was. All are read and put each time where this is absent.
   * @returns false where it is not there any more.
   */
  keep?(name: string, version: string): boolean;
  remove(name: string): unknown;
  /** One that may not be; nothing is noted of it where one stays that discovery has not brought. */
  refuse(refused: RefusedResource, version: string): void;
  /** The last of which nothing was refused. */
  accept(version: string): void;
}

export interface DiscoveredSetDependencies<Settings> {
  /** As messages name one of them: `cluster`. */
  readonly kind: string;
  readonly manager: ResourceManager<Settings>;
  /** What is not among the resources any more goes before the others are put, which may need its place; or behind that. */
  readonly removes: 'first' | 'last';
  /** Of another source that its manager takes from: it does not go because this one does not tell of it. */
  readonly isForeign?: (name: string) => boolean;
  readonly log: Logger;
  readonly onDeprecatedFields: (fields: ReadonlyMap<string, number>) => void;
  /** Told with each response that has been gone through, and with each that there is none. */
  readonly onAnswered: () => void;
}

export class DiscoveredSet<Settings> implements SubscriptionOwner<Settings> {
  readonly #deps: DiscoveredSetDependencies<Settings>;
  /** Of those that have been put, and may be kept when they come again. */
  readonly #fingerprints = new Map<string, string>();
  #isClosed = false;

  constructor(deps: DiscoveredSetDependencies<Settings>) {
    this.#deps = deps;
  }

  /** Nothing is put or removed any more. */
  close(): void {
    this.#isClosed = true;
  }

  onFailed(): void {
    this.#deps.onAnswered();
  }

  async onResponse(response: DiscoveredResponse<Settings>): Promise<readonly string[]> {
    const { manager, removes, isForeign = () => false } = this.#deps;
    const slice = new TimeSlice();
    const gone =
      response.extent === 'all'
        ? await this.#goneBy(response.names, slice)
        : response.removed.filter((name) => !isForeign(name));
    if (removes === 'first') await this.#remove(gone, slice);
    const refusals = await this.#put(response, slice);
    if (removes === 'last') await this.#remove(gone, slice);
    if (this.#isClosed) return refusals;
    if (refusals.length === 0) manager.accept(response.version);
    this.#deps.onAnswered();
    return refusals;
  }

  /** One that could not be opened may be any of those that seem to be missing: then none goes. */
  async #goneBy(names: readonly string[], slice: TimeSlice): Promise<readonly string[]> {
    const named = new Set<string>();
    for (const name of names) {
      if (name === '') return [];
      named.add(name);
      if (slice.isOver()) await slice.rest();
    }
    const { manager, isForeign = () => false } = this.#deps;
    const gone = new Set<string>();
    for (const name of manager.discoveredNames()) {
      if (!named.has(name) && !isForeign(name)) gone.add(name);
      if (slice.isOver()) await slice.rest();
    }
    return [...gone];
  }

  async #remove(names: readonly string[], slice: TimeSlice): Promise<void> {
    for (const name of names) {
      if (this.#isClosed) return;
      this.#fingerprints.delete(name);
      await this.#deps.manager.remove(name);
      if (slice.isOverNow()) await slice.rest();
    }
  }

  async #put({ version, offered }: DiscoveredResponse<Settings>, slice: TimeSlice): Promise<readonly string[]> {
    const refusals: string[] = [];
    const taken = new Set<string>();
    for (const resource of offered()) {
      if (this.#isClosed) break;
      const refusal = taken.has(resource.name)
        ? this.#refuseSecond(resource)
        : await this.#take(resource, resource.version ?? version);
      refusals.push(...refusal);
      // Those without a name are refused one by one.
      if (resource.name !== '') taken.add(resource.name);
      if (slice.isOverNow()) await slice.rest();
    }
    return refusals;
  }

  #refuseSecond({ name }: OfferedResource<Settings>): readonly string[] {
    return [`duplicate ${this.#deps.kind} ${name} found`];
  }

  /** @returns why it is refused. */
  async #take(offered: OfferedResource<Settings>, version: string): Promise<readonly string[]> {
    const { manager } = this.#deps;
    const { name } = offered;
    const fingerprint = manager.keep === undefined || name === '' ? undefined : offered.fingerprint();
    const isSame = fingerprint !== undefined && this.#fingerprints.get(name) === fingerprint;
    if (isSame && manager.keep?.(name, version)) return [];
    this.#fingerprints.delete(name);
    return await this.#read(offered.read(), version, fingerprint);
  }

  /** @returns why it is refused. */
  async #read(
    resource: DiscoveredResource<Settings>,
    version: string,
    fingerprint: string | undefined,
  ): Promise<readonly string[]> {
    const { kind, manager, log, onDeprecatedFields } = this.#deps;
    const { name, message } = resource;
    logWarnings(`${kind} ${name}`, resource, log);
    if (!resource.isGood) {
      if (name !== '') manager.refuse({ name, message, error: resource.errors.join('; ') }, version);
      return resource.errors.map((error) => (name === '' ? error : `${kind} ${name}: ${error}`));
    }
    onDeprecatedFields(resource.deprecatedFields);
    try {
      const isTaken = await manager.put(resource.resource, version, message);
      if (!isTaken)
        log.warning(`${kind} ${name} is left out: the bootstrap has one of this name, or none are taken any more`);
      else if (fingerprint !== undefined && resource.standsAlone) this.#fingerprints.set(name, fingerprint);
      return [];
    } catch (error) {
      return [`${kind} ${name}: ${errorMessage(error)}`];
    }
  }
}
