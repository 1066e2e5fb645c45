// What one kind of resource has of its own that comes by discovery and goes to the workers: how it is read, how it is published, its stats
// and its words. All else is the same for all kinds (published-resource.ts). Main thread.

import type { Clock } from '../../base/clock.ts';
import type { ResourceType } from '../../config/index.ts';
import type { Scope } from '../../stats/index.ts';
import type { Holdings } from '../holdings.ts';

/** What is counted of a resource, beside its subscription. */
export type ResourceEvent =
  /** Another one is in force. */
  | 'taken-over'
  /** One may not be. */
  | 'refused'
  /** Its source has none of its name. */
  | 'absent'
  /** The one in force may not be for somebody who has come later. */
  | 'unfit';

/** What takes the place of a resource that is not there. */
export interface Defaults<Wanted, Content> {
  of(wanted: Wanted): Content;
  /** It holds from the beginning, and nobody waits for another. */
  areFirst(wanted: Wanted): boolean;
}

/**
 * @typeParam Wanted what it is wanted as, in data: all who say the same share a view of it, which workers know by an id of its own.
 * @typeParam Content what it is read as for one view.
 * @typeParam Published what workers are told of one view.
 */
export interface PublishedKind<
  Wanted extends object,
  Content,
  Published,
  Beside extends Companion<Wanted, Content> = Companion<Wanted, Content>,
> {
  /** As messages name one: `route configuration`. */
  readonly name: string;
  /** As listings say before the name of one that it is waited for. */
  readonly target: string;
  /** As faults name one that is read again for somebody who has come later: `route_config`. */
  readonly field: string;
  /** What becomes of requests of somebody who has come later, and for whom it may not be. */
  readonly withoutIt: string;
  /** Absent where the one before stays when its source has none any more. */
  readonly defaults?: Defaults<Wanted, Content>;
  /** For one response; one that is refused for one view is refused for all. */
  read(views: readonly Wanted[]): ResourceType<ReadonlyMap<Wanted, Content>>;
  /** @param holdings of this one alone. @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  prepare(id: number, wanted: Wanted, content: Content, holdings: Holdings): Published;
  /** @param onGone called once, when no request uses what was of its id before it. */
  publish(published: Published, onGone: () => void): void;
  /** Nobody refers to it any more. @param onGone as for `publish`. */
  remove(id: number, onGone: () => void): void;
  /** Allocates the stats of one resource. @param scope that of its subscription. @returns what counts. */
  counter(scope: Scope, clock: Clock): (event: ResourceEvent) => void;
  /** Made once for each resource. @param statPrefix of its stats. */
  beside(resource: MainResource<Wanted, Content>, statPrefix: string): Beside;
}

/** What there is for a view of a resource together with what belongs to it. @param content the resource alone. */
export type Whole<Wanted, Content> = (wanted: Wanted, content: Content) => Content;

/** What comes for itself, and belongs to a resource all the same. */
export interface Companion<Wanted, Content> {
  /** It has come, or is waited for no longer. */
  readonly isReady: boolean;
  /** As it is now. */
  whole(wanted: Wanted, content: Content): Content;
  /** Another resource is about to take effect. @returns `whole` as it will be then, and what makes it so. */
  begin(
    contents: ReadonlyMap<Wanted, Content>,
    message: Uint8Array,
  ): { readonly whole: Whole<Wanted, Content>; done(): void };
  /** A resource in its binary form, together with what belongs to it. */
  wholeMessage(message: Uint8Array): Uint8Array;
  /** Nothing is asked for any more. */
  stop(): void;
  /** Nobody wants it any more. Once. */
  close(): void;
}

/** What its companion may know and ask of a resource. */
export interface MainResource<Wanted, Content> {
  readonly name: string;
  /** In force, in its binary form. */
  readonly message: Uint8Array;
  /** One object for each view, for as long as there is that. */
  views(): readonly Wanted[];
  /** Of each view that has one: the resource alone. */
  contents(): ReadonlyMap<Wanted, Content>;
  /** Its companion is another. @throws WeirError WEIR_SHARED_MEMORY_FULL; all is as before then. */
  publishAgain(): void;
  /** Its companion may have become ready. */
  checkReady(): void;
}

/** Of kinds all of which stands in the resource. */
export function nothingBeside<Wanted, Content>(): Companion<Wanted, Content> {
  const whole: Whole<Wanted, Content> = (_, content) => content;
  return {
    isReady: true,
    whole,
    begin: () => ({ whole, done() {} }),
    wholeMessage: (message) => message,
    stop() {},
    close() {},
  };
}
