// The resources of one kind that go to the workers: one for each name and source, whoever wants it, for as long as anybody does. Main
// thread.

import { settingsText } from '../same-settings.ts';
import { SharedByKey } from '../shared-by-key.ts';
import type { DiscoveryDependencies } from './feed.ts';
import type { DumpedResource } from './named-resource.ts';
import type { Companion, PublishedKind } from './published-kind.ts';
import { PublishedResource, type PublishedResourceRequest, type ViewIds } from './published-resource.ts';
import { leaseOf, NOT_AWAITED, type PublishedLease } from './resource-lease.ts';

export class PublishedResources<
  Wanted extends object,
  Content,
  Published,
  Beside extends Companion<Wanted, Content> = Companion<Wanted, Content>,
> {
  readonly #kind: PublishedKind<Wanted, Content, Published, Beside>;
  readonly #deps: DiscoveryDependencies;
  readonly #ids: ViewIds;
  /** By the ids of its views. */
  readonly #byView = new Map<number, PublishedResource<Wanted, Content, Published, Beside>>();
  readonly #resources = new SharedByKey<PublishedResource<Wanted, Content, Published, Beside>>((each) => each.close());

  /** @param nextId of what workers are told. */
  constructor(
    kind: PublishedKind<Wanted, Content, Published, Beside>,
    deps: DiscoveryDependencies,
    nextId: () => number,
  ) {
    this.#kind = kind;
    this.#deps = deps;
    this.#ids = {
      next: nextId,
      onGone: (id) => {
        this.#byView.delete(id);
      },
    };
  }

  /** @param request its `statPrefix` counts where nobody else has asked for the resource before. */
  leaseOne(request: PublishedResourceRequest, wanted: Wanted): PublishedLease {
    const { name, source } = request;
    const { target, defaults } = this.#kind;
    const make = () => new PublishedResource(request, this.#kind, this.#deps, this.#ids);
    const shared = this.#resources.lease(settingsText([name, source])!, make);
    const resource = shared.thing;
    const view = resource.lease(wanted);
    this.#byView.set(view.thing.id, resource);
    if (shared.isNew) resource.start();
    const release = (): void => {
      view.release();
      shared.release();
    };
    const awaited = defaults?.areFirst(wanted) === true ? NOT_AWAITED : resource;
    return leaseOf({ id: view.thing.id, name, target: `${target} ${name}` }, awaited, release);
  }

  /** @param id of a view. @returns undefined where it has gone. */
  besideOf(id: number): Beside | undefined {
    return this.#byView.get(id)?.beside;
  }

  /** As of PublishedResource; nothing is noted of a view that has gone, or is another kind's. */
  noteUnfit(id: number, isMeant: (published: Published) => boolean, reason: string): void {
    this.#byView.get(id)?.noteUnfit(id, isMeant, reason);
  }

  /** What workers are to know that start now. */
  published(): Iterable<Published> {
    return [...this.#resources].flatMap((resource) => resource.published());
  }

  /** All that there are, and those that could not be had. */
  dump(): DumpedResource[] {
    const dumped = [...this.#resources].map((resource) => resource.dump());
    return dumped.filter(({ accepted, refused }) => accepted !== undefined || refused !== undefined);
  }

  /** Those that could not be had, and why. */
  failures(): Iterable<{ readonly name: string; readonly error: string }> {
    return this.dump().flatMap(({ refused }) => refused ?? []);
  }

  /** Nothing is asked for any more. */
  close(): void {
    for (const resource of this.#resources) resource.stop();
  }
}
