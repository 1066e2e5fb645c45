// One resource by name and source that goes to the workers: once for each way in which it is wanted (a view), for as long as somebody
// wants it so. It is taken in for all of its views or for none; what a view was given in shared memory goes back when no worker uses it
// any more. What takes the place of one that is not there is the business of its kind. Main thread.

import { errorMessage } from '../../base/errors.ts';
import { rereadResource } from '../../config/index.ts';
import type { ConfigSourceSettings } from '../../snapshot/index.ts';
import { Holdings } from '../holdings.ts';
import { settingsText } from '../same-settings.ts';
import { type Share, SharedByKey } from '../shared-by-key.ts';
import type { DiscoveryDependencies } from './feed.ts';
import { type DumpedResource, isSameMessage, NamedResource, type ReceivedResource } from './named-resource.ts';
import type { Companion, MainResource, PublishedKind, ResourceEvent, Whole } from './published-kind.ts';
import type { Awaited } from './resource-lease.ts';

interface View<Wanted, Content, Published> {
  readonly id: number;
  readonly wanted: Wanted;
  /** Null before there is one. */
  inForce: InForce<Content, Published> | null;
}

interface InForce<Content, Published> {
  /** The resource alone. */
  readonly content: Content;
  readonly published: Published;
  readonly holdings: Holdings;
}

/** Gets ready before anything takes effect. */
type Prepared<Wanted, Content, Published> = readonly [View<Wanted, Content, Published>, InForce<Content, Published>];

/** What workers know views by, over all resources of a kind. */
export interface ViewIds {
  next(): number;
  /** Nobody wants the view any more. Once. */
  onGone(id: number): void;
}

export interface PublishedResourceRequest {
  readonly name: string;
  readonly source: ConfigSourceSettings;
  /** Of its stats, with its dot. */
  readonly statPrefix: string;
}

export class PublishedResource<
  Wanted extends object,
  Content,
  Published,
  Beside extends Companion<Wanted, Content> = Companion<Wanted, Content>,
> implements MainResource<Wanted, Content>, Awaited
{
  readonly name: string;
  readonly beside: Beside;
  readonly #kind: PublishedKind<Wanted, Content, Published, Beside>;
  readonly #deps: DiscoveryDependencies;
  readonly #ids: ViewIds;
  readonly #resource: NamedResource<ReadonlyMap<Wanted, Content>>;
  readonly #count: (event: ResourceEvent) => void;
  readonly #views = new SharedByKey<View<Wanted, Content, Published>>((view) => this.#forget(view));
  readonly #ready = Promise.withResolvers<void>();
  /** The last that a worker could do nothing with. */
  #unfit: { readonly resource: ReceivedResource; readonly reason: string } | undefined;

  constructor(
    { name, source, statPrefix }: PublishedResourceRequest,
    kind: PublishedKind<Wanted, Content, Published, Beside>,
    deps: DiscoveryDependencies,
    ids: ViewIds,
  ) {
    this.name = name;
    this.#kind = kind;
    this.#deps = deps;
    this.#ids = ids;
    this.#resource = new NamedResource(
      {
        name,
        kind: kind.name,
        source,
        statPrefix,
        type: () => kind.read(this.views()),
        accept: (contents, received, former) => this.#accept(contents, received, former),
        onRefused: () => this.#count('refused'),
        onAbsent: (isGone) => this.#noteAbsence(isGone),
        onAnswered: () => {
          this.#publishDefaults();
          this.checkReady();
        },
      },
      deps,
    );
    this.#count = kind.counter(this.#resource.feed.holdings.scope(statPrefix), deps.clock);
    this.beside = kind.beside(this, statPrefix);
  }

  /** Once, when the first lease has been given. */
  start(): void {
    this.#resource.feed.start();
  }

  get isReady(): boolean {
    return this.#resource.feed.isReady && this.beside.isReady;
  }

  get whenReady(): Promise<void> {
    return this.#ready.promise;
  }

  checkReady(): void {
    if (this.isReady) this.#ready.resolve();
  }

  get message(): Uint8Array {
    return this.#resource.accepted!.message;
  }

  views(): readonly Wanted[] {
    return [...this.#views].map(({ wanted }) => wanted);
  }

  contents(): ReadonlyMap<Wanted, Content> {
    return new Map(this.#inForce().map(([{ wanted }, { content }]) => [wanted, content]));
  }

  /** @returns the view, whose id workers know, and what gives it back. */
  lease(wanted: Wanted): Share<{ readonly id: number }> {
    const make = (): View<Wanted, Content, Published> => ({ id: this.#ids.next(), wanted, inForce: null });
    const share = this.#views.lease(settingsText(wanted)!, make);
    if (share.isNew) this.#fill(share.thing);
    return share;
  }

  /** What workers are to know that start now. */
  published(): readonly Published[] {
    return this.#inForce().map(([, { published }]) => published);
  }

  /**
   * A worker can do nothing with the one in force, which it is too late to refuse: it is listed and counted as one that may not be, once
   * for all workers and views, and refused when it comes again. Where a default is in force there is none.
   * @param id of a view. @param isMeant what the worker speaks of may be in force no longer.
   */
  noteUnfit(id: number, isMeant: (published: Published) => boolean, reason: string): void {
    const { accepted } = this.#resource;
    if (accepted === undefined || accepted === this.#unfit?.resource) return;
    const isInForce = this.#inForce().some(([view, { published }]) => view.id === id && isMeant(published));
    if (!isInForce) return;
    this.#unfit = { resource: accepted, reason };
    this.#resource.refuse(accepted, [reason]);
  }

  /** As it is, and as it could not be. */
  dump(): DumpedResource {
    const { accepted, ...others } = this.#resource.dump();
    return { ...others, accepted: accepted && { ...accepted, message: this.beside.wholeMessage(accepted.message) } };
  }

  publishAgain(): void {
    const whole: Whole<Wanted, Content> = (view, content) => this.beside.whole(view, content);
    this.#publish(this.#prepare(this.contents(), whole));
  }

  /** Nothing is asked for any more. */
  stop(): void {
    this.#resource.feed.stop();
    this.beside.stop();
  }

  /** Nobody wants it any more. Once. */
  close(): void {
    this.#resource.feed.close();
    this.beside.close();
  }

  #accept(contents: ReadonlyMap<Wanted, Content>, received: ReceivedResource, former?: ReceivedResource): void {
    if (isSameMessage(received, former)) {
      if (former === this.#unfit?.resource) throw new Error(this.#unfit!.reason);
      return;
    }
    this.#take(contents, received.message);
    this.#count('taken-over');
    this.#deps.log.info(`${this.#kind.name} ${this.name} has been taken over`);
  }

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; all is as before then. */
  #take(contents: ReadonlyMap<Wanted, Content>, message: Uint8Array): void {
    const { whole, done } = this.beside.begin(contents, message);
    this.#publish(this.#prepare(contents, whole));
    done();
  }

  #noteAbsence(isGone: boolean): readonly string[] {
    if (!isGone) return [];
    const { name, defaults } = this.#kind;
    this.#count('absent');
    const { log } = this.#deps;
    if (defaults === undefined) {
      const what = this.#resource.accepted === undefined ? 'there is none' : 'the one before it stays';
      log.info(`${name} ${this.name} is not among what its source has: ${what}`);
    } else if (this.#resource.forget()) {
      log.info(`${name} ${this.name} has been removed: defaults take its place`);
      for (const view of this.#views) this.#publishDefault(view);
    }
    return [];
  }

  /** For somebody who comes when it is perhaps there. */
  #fill(view: View<Wanted, Content, Published>): void {
    const { accepted, feed } = this.#resource;
    if (accepted !== undefined) this.#readFor(view, accepted);
    const isDefault = feed.isReady || this.#kind.defaults?.areFirst(view.wanted);
    if (view.inForce === null && isDefault) this.#publishDefault(view);
  }

  #readFor({ wanted }: View<Wanted, Content, Published>, accepted: ReceivedResource): void {
    const { read, field, withoutIt, defaults } = this.#kind;
    let { resource, errors } = rereadResource(read([wanted]), accepted.message, field);
    try {
      if (resource !== undefined) this.#take(resource, accepted.message);
    } catch (error) {
      errors = [errorMessage(error)];
    }
    if (errors.length === 0) return;
    this.#count('unfit');
    // With something in its place it is none that could not be had.
    if (defaults === undefined) this.#resource.refuse(accepted, errors);
    const text = `${this.#kind.name} ${this.name}: ${errors.join('; ')}`;
    this.#deps.log.warning(`${text}; requests of a listener that has just come ${withoutIt}`);
  }

  /** Where nothing has come for them. */
  #publishDefaults(): void {
    if (this.#resource.feed.isStopped) return;
    for (const view of this.#views) if (view.inForce === null) this.#publishDefault(view);
  }

  #publishDefault(view: View<Wanted, Content, Published>): void {
    const { name, defaults } = this.#kind;
    if (defaults === undefined) return;
    try {
      const content = defaults.of(view.wanted);
      this.#publish(this.#prepare(new Map([[view.wanted, content]]), (_, alone) => alone));
    } catch (error) {
      // The shared memory is full. What was before goes on.
      this.#deps.log.error(`${name} ${this.name}: the default is left out: ${errorMessage(error)}`);
    }
  }

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing has happened then. */
  #prepare(
    contents: ReadonlyMap<Wanted, Content>,
    whole: Whole<Wanted, Content>,
  ): readonly Prepared<Wanted, Content, Published>[] {
    const prepared: Prepared<Wanted, Content, Published>[] = [];
    const given: Holdings[] = [];
    try {
      for (const view of this.#views) {
        const { id, wanted } = view;
        const content = contents.get(wanted);
        if (content === undefined) continue;
        const holdings = new Holdings(this.#deps);
        given.push(holdings);
        const published = this.#kind.prepare(id, wanted, whole(wanted, content), holdings);
        prepared.push([view, { content, published, holdings }]);
      }
    } catch (error) {
      for (const holdings of given) holdings.close();
      throw error;
    }
    return prepared;
  }

  #publish(prepared: readonly Prepared<Wanted, Content, Published>[]): void {
    for (const [view, next] of prepared) {
      const former = view.inForce;
      view.inForce = next;
      this.#kind.publish(next.published, () => former?.holdings.close());
    }
  }

  #inForce(): Prepared<Wanted, Content, Published>[] {
    return [...this.#views].flatMap((view) => (view.inForce === null ? [] : [[view, view.inForce] as const]));
  }

  #forget({ id, inForce }: View<Wanted, Content, Published>): void {
    this.#ids.onGone(id);
    if (inForce !== null) this.#kind.remove(id, () => inForce.holdings.close());
  }
}
